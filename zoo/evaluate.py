"""Evaluates a checkpoint of a run: python -m zoo.evaluate --workdir=runs/mine"""

import argparse
import json
import sys
from collections.abc import Sequence

from zoo import command_line, devices, gin_config
from zoo.guards import check, check_batch, check_experiment, reading_data

SPLITS = ("validation", "train")


def evaluate(
    workdir: str,
    *,
    split: str = "validation",
    checkpoint: str | None = None,
    data_dir: str = "data",
    bindings: Sequence[str] = (),
    command: Sequence[str] | None = None,
) -> dict[str, float]:
    """Mean loss, top-1 and top-5 of a run's network (averaged, where it averages) over every example of a split once.

    Args:
      workdir: of the run.
      split: 'validation', or 'train', without augmentation. Others by bindings: 'tfds_images.eval_split = "test"'.
      checkpoint: for instance 'ckpt-100'; None takes the newest.
      data_dir: where the data are; fake data are written below it where they are missing.
      bindings: over the configuration of the run, for instance 'Experiment.accelerator = "cpu"'.
      command: the command line of the user, for the messages that complete it.

    Raises:
      UserError: if there is no such run or checkpoint, or the data have other classes or words.
    """
    check(split in SPLITS, f"--split={split}: must be one of {', '.join(SPLITS)}; bind others, see docs/library.md.")
    config = gin_config.written_config(workdir)
    asked = gin_config.devices_asked([config], bindings)
    found = devices.look()
    devices.check_devices(found, **asked, command=command or ["python", "-m", "zoo.evaluate"], dry_run=False)
    devices.check_environment(found, accelerator=asked["accelerator"])
    lines = gin_config.parse([config], bindings, written=True)

    from zoo import train_and_evaluate
    from zoo.checkpoints import find_checkpoint, restore_network, step_of
    from zoo.experiment import Experiment, build
    from zoo.input_pipelines import pipeline
    from zoo.loop import make_eval_loop
    from zoo.plan import Plan
    from zoo.saving import read_words

    path = find_checkpoint(workdir, checkpoint)
    experiment = Experiment()
    check_experiment(experiment)
    choice = experiment.create_strategy()
    check_batch(experiment, choice.replicas)
    with reading_data():
        data = experiment.create_data(data_dir)
    source = data.train if split == "train" else data.evaluation
    for name, words in (("labels.txt", data.labels), ("vocabulary.txt", data.vocabulary)):
        kept = read_words(workdir, name)
        check(
            kept == words,
            f"--data_dir={data_dir}: {workdir}/{name} says otherwise than these data. Take the data of the run.",
        )
    plan = Plan.of(experiment, data, choice.replicas)
    program = build(experiment, choice.strategy, total_steps=plan.total_steps)
    pipeline.check_inputs(source, program.state.averaged)
    lines += [f"Strategy:   {choice}", f"Checkpoint: {path}", f"Examples:   {source.description}"]
    print("\n".join(lines), file=sys.stderr)
    with train_and_evaluate.explaining(experiment, choice), choice.strategy.scope():
        restore_network(program.state.averaged, path)
        eval_loop = make_eval_loop(choice.strategy, program.eval_step)
        values = train_and_evaluate.evaluate(source, choice.strategy, eval_loop, plan)
    return {"step": step_of(path), "split": split} | values


def parser() -> argparse.ArgumentParser:
    top = command_line.run_parser("zoo.evaluate", "Prints loss, top-1 and top-5 of a checkpoint, as JSON.")
    top.add_argument("--split", default="validation", help="validation or train")
    top.add_argument("--data_dir", default="data", help="where the data are")
    top.add_argument(
        "--gin_bindings", action="append", default=[], help="over the configuration of the run; may be repeated"
    )
    return top


def main(args: argparse.Namespace) -> None:
    values = evaluate(
        args.workdir,
        split=args.split,
        checkpoint=args.checkpoint,
        data_dir=args.data_dir,
        bindings=args.gin_bindings,
        command=["python", "-m", "zoo.evaluate", *sys.argv[1:]],
    )
    print(json.dumps(values))


if __name__ == "__main__":
    command_line.run(parser(), main)
