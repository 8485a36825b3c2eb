"""Trains the experiment of a Gin file: python -m zoo.train --gin_file=gin/resnet_tpu.gin

The same command continues what is in the workdir. See README.md.
"""

import os
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported: its notes bury our own lines

from absl import app, flags, logging

from zoo.guards import INTERRUPTED, UserError
from zoo.launch import launch

GIN_FILE = flags.DEFINE_multi_string(
    "gin_file", [], "A Gin file, from here, from the checkout or from the installed package; of several the later wins."
)
GIN_BINDINGS = flags.DEFINE_multi_string(
    "gin_bindings", [], "A Gin binding, quoted for the shell: 'Experiment.seed = 1'. Wins over the files."
)
WORKDIR = flags.DEFINE_string(
    "workdir", None, "Where checkpoints and metrics go. Default: runs/<stem of the first Gin file>."
)
DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where the data are; fake data are written below it on first use.")
DRY_RUN = flags.DEFINE_bool("dry_run", False, "Build everything, run one step, print the plan, write nothing.")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise UserError(f"{' '.join(argv[1:])!r} is left over: flags look like --gin_file=gin/resnet_cpu.gin.")
    if not GIN_FILE.value:
        raise UserError("--gin_file is missing. For example: --gin_file=gin/resnet_tpu.gin --gin_file=gin/smoke.gin")
    logging.set_verbosity(logging.WARNING)
    launch(
        GIN_FILE.value,
        GIN_BINDINGS.value,
        workdir=WORKDIR.value,
        data_dir=DATA_DIR.value,
        dry_run=DRY_RUN.value,
        command=_command(),
    )


def _parse_flags(argv: list[str]) -> list[str]:
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        raise UserError(f"{error}. See --help.") from error


def _command() -> list[str]:
    """The command line as the user gave it."""
    program = ["zoo-train"] if os.path.basename(sys.argv[0]) == "zoo-train" else ["python", "-m", "zoo.train"]
    return [*program, *sys.argv[1:]]


def _interrupt(*_) -> None:
    # Not by way of SIGINT, which a shell makes background jobs ignore.
    raise KeyboardInterrupt


def run() -> None:
    """Entry point of the console script `zoo-train`. The exit codes are listed in docs/running.md."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app.run(main, flags_parser=_parse_flags)
    except UserError as error:
        print(f"zoo.train: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("zoo.train: interrupted. The same command goes on from the last checkpoint.", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
