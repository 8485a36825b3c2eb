"""What a training came to, as a row of results: the time, the examples and the dollars to its accuracy."""

import json
import os
import statistics

import tensorflow as tf

from zoo.benchmark import hardware, result
from zoo.benchmark.rows import SCHEMA
from zoo.experiment import Experiment, Program
from zoo.plan import Plan
from zoo.progress import Metrics
from zoo.strategy import Choice

FILE = "result.json"


def row(experiment: Experiment, choice: Choice, plan: Plan, program: Program, metrics: Metrics) -> dict:
    """The row of a training that has ended, at its target or at its last step.

    The clock runs from the first touch of the data to the end of the last evaluation, over all starts of the run; work that was
    lost with a killed process counts, as far as it was logged, the time between two starts does not. Compilation is in it, and
    given apart: the first loop of each start beyond what so many steps take otherwise.
    """
    last = metrics.last("validation")
    evaluated = next(t for t in reversed(metrics.timing) if t["split"] == "validation")
    loops = [t for t in metrics.timing if t["split"] == "train"]
    steady = [t["seconds"] / t["steps"] for t in loops if not t.get("compiles")]
    compile_seconds = None
    if steady:
        step_seconds = statistics.median(steady)
        compile_seconds = sum(t["seconds"] - t["steps"] * step_seconds for t in loops if t.get("compiles"))
    target = experiment.target_top1
    described = result.describe(experiment, choice, hardware.look(choice))
    usd = described["usd_per_hour"]
    return {
        "kind": "convergence",
        "status": "ok",
        **described,
        **result.describe_program(experiment, choice, program),
        "target_top1": target,
        "reached": target is not None and last["top1"] >= target,
        "top1": last["top1"],
        "top5": last["top5"],
        "steps": last["step"],
        "epochs": last["step"] / plan.steps_per_epoch,
        "examples": last["step"] * plan.global_batch_size,
        "hours": evaluated["clock"] / 3600,
        "compile_seconds": compile_seconds,
        "usd": usd and usd * evaluated["clock"] / 3600,
    }


def in_words(found: dict) -> str:
    """A row in one line."""
    parts = [f"{found['hours']:.3g} hours to top-1 {found['top1']:.4g} ({found['epochs']:.4g} epochs)"]
    if found["target_top1"] is not None:
        parts.append(f"the target of {found['target_top1']:g} was {'' if found['reached'] else 'not '}reached")
    if found["compile_seconds"] is not None:
        parts.append(f"{found['compile_seconds']:.0f} s of it compilation")
    if found["usd"] is not None:
        parts.append(f"${found['usd']:.2f} at ${found['usd_per_hour']:.2f} an hour")
    return ", ".join(parts)


def write(workdir: str, found: dict) -> None:
    """Writes the row into the workdir."""
    with tf.io.gfile.GFile(os.path.join(workdir, FILE), "w") as file:
        file.write(json.dumps({"schema": SCHEMA} | found, indent=2) + "\n")
