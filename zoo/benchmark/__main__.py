"""Measures how fast an experiment trains: python -m zoo.benchmark --gin_file=gin/resnet_cpu.gin

Each measurement runs in a process of its own and adds a row to a file. See docs/measuring.md.
"""

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from zoo import command_line, gin_checks, gin_config
from zoo.benchmark import rows
from zoo.benchmark.one import FEEDS, add_flags
from zoo.guards import check

COLUMNS = {
    "model": "{model}",
    "feed": "{feed}",
    "batch": "{global_batch_size}",
    "replicas": "{replicas}",
    "precision": "{precision}",
    "examples/s": "{examples_per_second:,.1f} ± {standard_error:.1f}",
    "step, ms": "{step_seconds_median_ms:,.1f} ± {step_seconds_jitter_ms:.1f}",
    "compile, s": "{compile_seconds:.1f}",
    "of peak": "{utilisation_of_peak:.0%}",
    "of a product": "{utilisation_of_matrix_product:.0%}",
    "memory, GB": "{host_memory_gb:.1f}",
    "$ per million": "{usd_per_million_examples:.2f}",
    "status": "{status}",
}


def main(args: argparse.Namespace) -> None:
    check(args.min_windows > 0 and args.min_seconds >= 0, "--min_windows and --min_seconds: must be positive.")
    out_rows = rows.read(args.out) if os.path.exists(args.out) else []
    done = {row["request"] for row in out_rows if row["status"] == "ok"} if args.sweep else set()
    requests = []
    for swept in points(args.sweep):
        bindings = [*args.gin_bindings, *swept]
        statements = gin_checks.read(
            [gin_config.find_file(name) for name in args.gin_file], bindings, gin_config.find_file
        )
        for feed in feeds(args, statements):
            requests.append(request := identify(args, statements, feed))
            if request in done:
                print(f"Measured before: {', '.join(swept)} {feed}")
            else:
                measure(args, bindings, feed, request)
    found = {row["request"]: row for row in rows.read(args.out)}
    latest = [found[request] for request in requests if request in found]
    print("\n" + table(latest) + "\n" + "\n".join(limits(latest)) + f"\nRows: {args.out}")
    if any(row["status"] != "ok" for row in latest):
        sys.exit(1)


def points(sweeps: list[str]) -> Iterator[list[str]]:
    """The bindings of each point of a sweep: every value of one with every value of the others.

    Raises:
      UserError: if one is no 'NAME = VALUE | VALUE'.
    """
    axes = []
    for sweep in sweeps:
        name, equals, values = sweep.partition("=")
        check(
            bool(equals and values.strip()),
            f"--sweep={sweep!r}: must look like 'Experiment.global_batch_size = 64 | 128'.",
        )
        axes.append([f"{name.strip()} = {value.strip()}" for value in values.split("|")])
    return (list(point) for point in itertools.product(*axes))


def feeds(args: argparse.Namespace, statements: gin_checks.Statements) -> list[str]:
    """What is measured: all three, or the device alone where the experiment's data are synthetic."""
    data = gin_checks.effective(statements.bindings).get("Experiment.data")
    if data is not None and getattr(data.value, "name", None) == "synthetic":
        check(
            not args.feed or args.feed == ["device"],
            f"--feed={args.feed[-1] if args.feed else ''}: there is no input to measure (Experiment.data = @synthetic).",
        )
        return ["device"]
    return args.feed or list(FEEDS)


def identify(args: argparse.Namespace, statements: gin_checks.Statements, feed: str) -> str:
    """A hash of all that a measurement follows from."""
    bindings = {key: b.text.partition("=")[2].strip() for key, b in gin_checks.effective(statements.bindings).items()}
    text = json.dumps([sorted(bindings.items()), args.mode, feed, args.data_dir])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measure(args: argparse.Namespace, bindings: list[str], feed: str, request: str) -> None:
    """One measurement in a fresh process; a process that is killed leaves a row that says so.

    Raises:
      UserError: if the process ended with a mistake of the user, before it measured anything.
    """
    flags = [f"--gin_file={name}" for name in args.gin_file] + [f"--gin_bindings={text}" for text in bindings]
    flags += [f"--{name}={getattr(args, name)}" for name in ("mode", "data_dir", "out", "min_windows", "min_seconds")]
    flags += [f"--{name}={value}" for name in ("profile", "accelerator") if (value := getattr(args, name))]
    before = len(rows.read(args.out)) if os.path.exists(args.out) else 0
    command = [sys.executable, "-m", "zoo.benchmark.one", *flags, f"--feed={feed}", f"--request={request}"]
    code = subprocess.run(command).returncode
    if code == 130:
        raise KeyboardInterrupt
    if os.path.exists(args.out) and len(rows.read(args.out)) > before:
        return
    if code >= 0:
        sys.exit(code)
    error = f"The process was killed by signal {-code}" + (
        ", as a system does that is out of memory." if code == -9 else "."
    )
    row = {
        "kind": "throughput",
        "request": request,
        "mode": args.mode,
        "feed": feed,
        "gin_files": args.gin_file,
        "gin_bindings": bindings,
    }
    rows.append(args.out, row | {"status": "failed", "error": error})
    print(error, file=sys.stderr)


def table(found: list[dict]) -> str:
    """Rows for people, as Markdown."""
    shown = []
    for row in found:
        milliseconds = {
            f"{name}_ms": 1e3 * row[name] for name in ("step_seconds_median", "step_seconds_jitter") if name in row
        }
        memory = row.get("host_memory_peak_bytes")
        shown.append(row | milliseconds | ({"host_memory_gb": memory / 1e9} if memory else {}))
    return rows.table(shown, COLUMNS)


def limits(found: list[dict]) -> list[str]:
    """Which of device and input bounds each experiment of which all three rates are there, and what makes no dollars."""
    lines = []
    for row in found:
        if row["status"] != "ok":
            lines.append(f"Failed: {row['error']}")
            continue
        same = [r for r in found if r["status"] == "ok" and r["gin_bindings"] == row["gin_bindings"]]
        rates = {r["feed"]: r["examples_per_second"] for r in same}
        if row["feed"] == "both" and len(rates) == len(FEEDS):
            limit = min(("device", "input"), key=rates.get)
            lines.append(
                f"Limit: the {limit}. The device alone {rates['device']:,.1f}, the input alone {rates['input']:,.1f}, both "
                f"{rates['both']:,.1f} examples/s: {rates['both'] / rates[limit]:.0%} of the {limit}'s."
            )
    notes = {row["price_note"] for row in found if row.get("price_note")}
    return lines + [f"Price: {note}" for note in sorted(notes)]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m zoo.benchmark", description=__doc__.splitlines()[0])
    add_flags(top)
    top.add_argument(
        "--feed", action="append", choices=FEEDS, help="what to measure; may be repeated; all if not given"
    )
    top.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="'NAME = VALUE | VALUE'",
        help="a binding with each of these values; may be repeated. Points that --out has are not measured again",
    )
    return top


if __name__ == "__main__":
    command_line.run(parser(), main)
