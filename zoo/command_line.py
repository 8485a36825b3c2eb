"""What the command lines of zoo share: flags of a run, and mistakes as messages."""

import argparse
import os
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported: its notes bury our own lines

from zoo.guards import UserError


def run_parser(program: str, description: str) -> argparse.ArgumentParser:
    """A parser with the flags that name a run and a checkpoint of it."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--workdir", required=True, help="of the run")
    parser.add_argument("--checkpoint", help="for instance ckpt-100; the newest if not given")
    return parser


def run(parser: argparse.ArgumentParser, main: Callable[[argparse.Namespace], None]) -> None:
    """Parses the command line and runs `main`. The exit codes are listed in docs/running.md."""
    args = parser.parse_args()
    program = parser.prog.removeprefix("python -m ")
    try:
        main(args)
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # else Python complains of it once more at its end
        sys.exit(1)
    except KeyboardInterrupt:
        print(f"{program}: interrupted.", file=sys.stderr)
        sys.exit(130)
