"""A self-test for machines that we never touch: python -m zoo.doctor

Versions, devices, the rate of a matrix product, a few training steps against a trace from a CPU, and a run that is written,
continued and compared. It prints a verdict and one line of JSON to attach to a report.
"""

import argparse
import contextlib
import functools
import importlib.metadata
import importlib.resources
import io
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from zoo import __version__, devices
from zoo.guards import UserError

TRACE = "doctor_trace.json"
PACKAGES = (*devices.TENSORFLOW_BUILDS, "keras", "tensorflow-datasets", "gin-config", "absl-py", "numpy", "libtpu")
# Of the loss before and after one update: float32 on CPUs and GPUs; TPUs multiply float32 as bfloat16. From then on, rounding
# alone makes two sound machines differ: on one CPU, by 0.2% after one update, by 3% after three.
TOLERANCE = {"cpu": 0.01, "gpu": 0.02, "tpu": 0.05}
TRACED_STEPS = 2
RECURRENT_TOLERANCE = 0.02  # of the greatest value: GPUs multiply float32 as TF32


def versions() -> dict[str, str]:
    """Versions of Python and of what zoo stands on."""
    found = {"python": platform.python_version(), "zoo": __version__}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def small_run(model: Callable, base_learning_rate: float = 0.001, **changes):
    """An experiment of seconds on synthetic images or texts."""
    from zoo.experiment import Experiment
    from zoo.input_pipelines.synthetic import synthetic
    from zoo.optimizers import cosine_decay, sgd

    options = {
        "model": model,
        "data": synthetic,
        "optimizer": sgd,
        "learning_rate": functools.partial(cosine_decay, base_learning_rate=base_learning_rate, warmup_epochs=0),
        "input_size": 75,
        "sequence_length": 20,
        "vocabulary_size": 500,
        "num_classes": 10,
        "global_batch_size": 16,
        "train_examples": 160,
        "eval_examples": 16,
        "train_steps": 4,
        "steps_per_loop": 1,
        "weight_decay": 1e-4,
        "allow_cpu": True,
    }
    return Experiment(**options | changes)


def traces(choice) -> dict[str, list[float]]:
    """Losses of the first steps of each network."""
    import tensorflow as tf

    from zoo.experiment import build
    from zoo.input_pipelines.pipeline import train_iterator
    from zoo.loop import make_train_loop
    from zoo.models import bilstm, inception_v3, resnet50

    losses = {}
    # Rates at which one update changes the loss by more than rounding does.
    for model, rate in ((resnet50, 0.001), (inception_v3, 0.001), (bilstm, 10.0)):
        experiment = small_run(model, rate)
        program = build(experiment, choice.strategy, total_steps=experiment.train_steps)
        source = experiment.create_data("").train
        with choice.strategy.scope():
            batches = train_iterator(source, choice.strategy, seed=0, start_step=0, global_batch_size=16)
            loop = make_train_loop(choice.strategy, program.train_step)
            losses[model.__name__] = [float(loop(batches, tf.constant(1))["loss"]) for _ in range(TRACED_STEPS)]
    return losses


def compare_traces(found: dict[str, list[float]], accelerator: str) -> str:
    """What the first difference from the committed trace is; empty if there is none."""
    expected = json.loads(importlib.resources.files("zoo").joinpath(TRACE).read_text())
    for name, losses in expected.items():
        for step, (a, b) in enumerate(zip(found[name], losses, strict=True), start=1):
            if not abs(a - b) <= TOLERANCE[accelerator] * abs(b):
                return f"{name}, step {step}: loss {a:.4f}, on our CPU {b:.4f} (tolerance {TOLERANCE[accelerator]:.0%})"
    return ""


def compare_recurrent_kernels() -> str:
    """Outputs and gradients of the LSTM from cuDNN against those of the loop, on padded texts; says what differs."""
    import tensorflow as tf

    from zoo.models.lstm import BidirectionalLSTM

    layer = BidirectionalLSTM(64)
    inputs = tf.random.stateless_normal([16, 12, 32], [0, 1])
    mask = tf.sequence_mask(tf.range(16) % 13, 12)
    layer.build(inputs.shape)
    results = []
    for layer.cudnn in (False, True):
        with tf.GradientTape() as tape:
            outputs = layer(inputs, mask=mask, training=True)
            loss = tf.reduce_sum(outputs * tf.random.stateless_normal(outputs.shape, [2, 3]))
        results.append([outputs, *tape.gradient(loss, [v.value for v in layer.trainable_variables])])
    names = ("outputs", *(v.name for v in layer.trainable_variables))
    for name, loop, cudnn in zip(names, *results, strict=True):
        difference = float(tf.reduce_max(tf.abs(loop - cudnn)) / tf.reduce_max(tf.abs(loop)))
        if not difference <= RECURRENT_TOLERANCE:
            return (
                f"LSTM, {name}: cuDNN differs from the loop by {difference:.2%} (tolerance {RECURRENT_TOLERANCE:.0%})"
            )
    return ""


def resumed_equals_uninterrupted(folder: str) -> str:
    """Trains 4 steps at once and in two goes, the second from a checkpoint; says what differs."""
    import tensorflow as tf

    from zoo.models.resnet import resnet18
    from zoo.train_and_evaluate import train_and_evaluate

    small = {"input_size": 32, "checkpoint_every_steps": 2, "keep_checkpoints": 5}
    results = []
    for name in ("whole", "resumed"):
        workdir = os.path.join(folder, name)
        if name == "resumed":
            # As a kill would leave it after step 2: the later checkpoint is gone.
            tf.io.gfile.makedirs(workdir)
            train_and_evaluate(small_run(resnet18, **small), workdir=workdir)
            for path in tf.io.gfile.glob(os.path.join(workdir, "checkpoints", "ckpt-4*")):
                tf.io.gfile.remove(path)
        results.append(train_and_evaluate(small_run(resnet18, **small), workdir=workdir))
    a, b = (result.train["loss"] for result in results)
    return "" if abs(a - b) <= 1e-3 * abs(a) else f"loss {a} uninterrupted, {b} resumed"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m zoo.doctor", description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", help="where to try writing and resuming; a temporary folder if not given")
    args = parser.parse_args()
    report, failed = {"versions": versions(), "machine": platform.platform(), "cpus": os.cpu_count()}, []

    def step(name: str, check: Callable[[], str | None]) -> None:
        started = time.perf_counter()
        try:
            fault = check() or ""
        except Exception as error:  # whatever it is, the report is what this program is for
            fault = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300]}"
        seconds = time.perf_counter() - started
        report[name] = {"fault": fault, "seconds": round(seconds, 1)} | report.get(name, {})
        print(f"{'FAILED' if fault else 'ok':6} {name} ({seconds:.1f} s){': ' + fault if fault else ''}", flush=True)
        if fault:
            failed.append(name)

    def environment():
        found = devices.look()
        report["environment"] = {"nodes": str(found)}
        print(f"       {found}; {', '.join(f'{k} {v}' for k, v in report['versions'].items())}")
        devices.check_environment(found, accelerator="auto")

    def strategy():
        from zoo.strategy import create_strategy

        chosen.append(create_strategy("auto", allow_cpu=True))
        report["strategy"] = {"strategy": str(chosen[0])}
        print(f"       {chosen[0]}")

    def products():
        from zoo.benchmark.hardware import matrix_product_rate

        size = 1024 if chosen[0].accelerator == "cpu" else 8192
        with chosen[0].strategy.scope():
            rates = {dtype: matrix_product_rate(size, dtype) for dtype in ("float32", "bfloat16")}
        report["matrix products"] = {"size": size, "flops_per_second": rates}
        print("       " + ", ".join(f"{dtype}: {rate / 1e9:,.0f} GFLOP/s" for dtype, rate in rates.items()))

    def training():
        found = traces(chosen[0])
        report["training steps"] = {"losses": found}
        return compare_traces(found, chosen[0].accelerator)

    def recurrent():
        if chosen[0].accelerator == "gpu":
            return compare_recurrent_kernels()
        print("       no GPU, so no cuDNN to compare")
        return ""

    def resuming():
        quiet = io.StringIO()
        with (
            tempfile.TemporaryDirectory() as scratch,
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
        ):
            return resumed_equals_uninterrupted(args.workdir or scratch)

    chosen = []
    step("environment", environment)
    step("strategy", strategy)
    if chosen:
        step("matrix products", products)
        step("training steps", training)
        step("recurrent kernels", recurrent)
        step("write and resume", resuming)
    print(f"VERDICT: {'FAILED: ' + ', '.join(failed) if failed else 'all is well'}")
    print(json.dumps(report))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        print(f"zoo.doctor: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
