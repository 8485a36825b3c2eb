"""One measurement in a process of its own; `python -m zoo.benchmark` starts it, once for each."""

import argparse
import sys

from zoo import command_line, devices, gin_config, guards
from zoo.benchmark import rows
from zoo.guards import UserError

SAID = {
    "device": "the device alone, on synthetic data",
    "input": "the input alone",
    "both": "input and device together",
}
FEEDS = tuple(SAID)
MIN_WINDOWS, MIN_SECONDS = 10, 30.0  # fewer or less is marked as short in the row


def main(args: argparse.Namespace) -> None:
    flags = [f"--gin_file={name}" for name in args.gin_file] + [f"--gin_bindings={text}" for text in args.gin_bindings]
    command = ["python", "-m", "zoo.benchmark", *flags]
    asked = gin_config.devices_asked(args.gin_file, args.gin_bindings)
    found = devices.look()
    devices.check_devices(found, **asked, command=command)
    devices.check_environment(found, accelerator=asked["accelerator"])
    gin_config.parse(args.gin_file, args.gin_bindings)  # imports TensorFlow, which takes seconds

    from zoo.benchmark import hardware, measure, result
    from zoo.experiment import Experiment
    from zoo.train_and_evaluate import explaining

    experiment = Experiment()
    guards.check_experiment(experiment)
    choice = experiment.create_strategy()
    print(f"Measuring:  {args.mode}, {SAID[args.feed]}; {choice}", flush=True)
    machine = hardware.look(choice, args.accelerator)
    row = {"kind": "throughput", "request": args.request, "mode": args.mode, "feed": args.feed}
    row |= {"gin_files": args.gin_file, "gin_bindings": args.gin_bindings}
    row |= result.describe(experiment, choice, machine)
    try:
        with explaining(experiment, choice):
            figures, program = measure.measure(
                experiment,
                choice,
                feed=args.feed,
                mode=args.mode,
                data_dir=args.data_dir,
                min_windows=args.min_windows,
                min_seconds=args.min_seconds,
                profile_dir=args.profile,
            )
    except UserError as error:
        rows.append(args.out, row | {"status": "failed", "error": str(error)})
        raise
    row |= {"status": "ok"} | figures | result.describe_program(experiment, choice, program)
    rate = row["examples_per_second"]
    row |= result.cost(rate, row["usd_per_hour"])
    if args.feed != "input":
        with choice.strategy.scope():
            measured = hardware.matrix_product_peak(choice, experiment.precision)
        row |= result.utilisation(program, args.mode, rate, experiment.precision, row["tf32"], machine, measured)
    row["short"] = row["windows"] < MIN_WINDOWS or row["seconds"] < MIN_SECONDS
    rows.append(args.out, row)
    print(f"            {rate:,.1f} ± {row['standard_error']:.1f} examples/s", flush=True)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m zoo.benchmark", description=__doc__)
    add_flags(top)
    top.add_argument("--feed", required=True, choices=FEEDS)
    top.add_argument("--request", required=True, help="what identifies the measurement in a sweep")
    return top


def add_flags(top: argparse.ArgumentParser) -> None:
    """The flags that a measurement shares with the command that starts it."""
    top.add_argument("--gin_file", action="append", required=True, help="an experiment or an overlay, as for zoo.train")
    top.add_argument("--gin_bindings", action="append", default=[], help="a binding; may be repeated")
    top.add_argument("--mode", choices=("train", "inference"), default="train")
    top.add_argument("--data_dir", default="data", help="where the data are; fake data are written there on first use")
    top.add_argument("--out", default="results.jsonl", help="file that the rows are added to")
    top.add_argument("--min_windows", type=int, default=MIN_WINDOWS, help="timed windows at least; 10 if not given")
    top.add_argument(
        "--min_seconds", type=float, default=MIN_SECONDS, help="timed seconds at least, together; 30 if not given"
    )
    top.add_argument(
        "--profile", metavar="DIR", help="write a TensorBoard trace of a few steps there, after the timing"
    )
    top.add_argument(
        "--accelerator", metavar="NAME", help="what the accelerator is, where the machine does not say: tpu-v2-8"
    )


if __name__ == "__main__":
    sys.exit(command_line.run(parser(), main))
