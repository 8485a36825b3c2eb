"""One measurement: a network under an experiment's own step and loop, timed in windows; the input alone; or both.

In this order: build, compile, warm up, time windows, tell what they mean. What is compiled and warmed up does not count.
"""

import contextlib
import dataclasses
import hashlib
import math
import statistics
import time
from collections.abc import Callable

import gin
import tensorflow as tf

from zoo import guards, timing
from zoo.experiment import Experiment, Program
from zoo.input_pipelines import pipeline
from zoo.input_pipelines.pipeline import Data
from zoo.input_pipelines.synthetic import synthetic
from zoo.loop import make_eval_loop, make_train_loop
from zoo.plan import Plan
from zoo.strategy import Choice
from zoo.train_and_evaluate import prepare

PROFILED_STEPS = 5


@dataclasses.dataclass(frozen=True)
class Windows:
    """Timed windows of equally many steps.

    Attributes:
      steps: in each.
      examples: of each step.
      seconds: of each window.
    """

    steps: int
    examples: int
    seconds: tuple[float, ...]

    def __post_init__(self):
        if self.steps <= 0 or not self.seconds:
            raise ValueError(f"{len(self.seconds)} windows of {self.steps} steps: nothing was timed.")

    def summary(self) -> dict[str, float]:
        """The figures of a row: the rate is all examples over all time, jitter is 1.4826 × the median absolute deviation."""
        rates = [self.steps * self.examples / seconds for seconds in self.seconds]
        step_seconds = [seconds / self.steps for seconds in self.seconds]
        median = statistics.median(step_seconds)
        deviation = statistics.stdev(rates) if len(rates) > 1 else math.nan
        return {
            "windows": len(self.seconds),
            "steps_per_window": self.steps,
            "window_seconds": [round(seconds, 6) for seconds in self.seconds],
            "seconds": sum(self.seconds),
            "examples_per_second": self.steps * self.examples * len(self.seconds) / sum(self.seconds),
            "standard_error": deviation / math.sqrt(len(rates)),
            "step_seconds_median": median,
            "step_seconds_jitter": 1.4826 * statistics.median(abs(s - median) for s in step_seconds),
        }


def timed_windows(
    call: Callable[[int], None],
    *,
    steps: int,
    examples: int,
    min_windows: int,
    min_seconds: float,
) -> Windows:
    """Calls `call(steps)`, which ends when the device has, until there are enough windows and enough time in them."""
    seconds = []
    while len(seconds) < min_windows or sum(seconds) < min_seconds:
        with timing.window() as window:
            call(steps)
        seconds.append(window.seconds)
    return Windows(steps, examples, tuple(seconds))


def measure(
    experiment: Experiment,
    choice: Choice,
    *,
    feed: str,
    mode: str,
    data_dir: str,
    min_windows: int,
    min_seconds: float,
    profile_dir: str | None = None,
) -> tuple[dict, Program]:
    """Measures an experiment on the devices of `choice`.

    Args:
      experiment: what to measure.
      choice: its devices.
      feed: 'device' (one batch that lies there already), 'input' (the data without a network) or 'both'.
      mode: 'train' or 'inference'.
      data_dir: where the data are.
      min_windows: how many windows there are at least.
      min_seconds: how long they are at least, together.
      profile_dir: where a TensorBoard trace goes after the timed part; None makes none.

    Returns:
      The figures of a row; and the program that was built.

    Raises:
      UserError: if the experiment can't run, or its loss is not finite.
    """
    guards.check_experiment(experiment)
    if feed == "device":
        experiment = dataclasses.replace(experiment, data=synthetic)
    data, plan, program = prepare(experiment, choice, data_dir)
    with choice.strategy.scope():
        call = _input(experiment, choice, data, plan, mode)
        if feed != "input":
            call = _steps(experiment, choice, data, plan, program, mode)
        started = time.perf_counter()
        call(1)
        first_call = time.perf_counter() - started
        call(plan.steps_per_loop)
        _forget_memory(choice)
        windows = timed_windows(
            call,
            steps=plan.steps_per_loop,
            examples=plan.global_batch_size,
            min_windows=min_windows,
            min_seconds=min_seconds,
        )
        figures = windows.summary()
        figures["compile_seconds"] = max(0.0, first_call - figures["step_seconds_median"])
        figures["warmup_steps"] = 1 + plan.steps_per_loop
        figures |= _memory(choice)
        if profile_dir:
            figures["profile"] = _profile(call, min(PROFILED_STEPS, plan.steps_per_loop), profile_dir)
    source = data.train if mode == "train" else data.evaluation
    figures |= {"data": source.description, "global_batch_size": plan.global_batch_size}
    figures["operative_config_sha256"] = hashlib.sha256(gin.operative_config_str().encode()).hexdigest()
    return figures, program


def _steps(
    experiment: Experiment, choice: Choice, data: Data, plan: Plan, program: Program, mode: str
) -> Callable[[int], None]:
    """A function that runs so many steps in one device loop, and reads their sums."""
    batches = _batches(experiment, choice, data, plan, mode)
    if mode == "train":
        loop = make_train_loop(choice.strategy, program.train_step)
    else:
        loop = make_eval_loop(choice.strategy, program.eval_step)

    def call(steps):
        totals = {name: float(value) for name, value in loop(batches, tf.constant(steps)).items()}
        sound = math.isfinite(totals["loss"]) and totals.get("sound_steps", steps) == steps
        if not sound:
            raise guards.Diverged(
                f"The loss is not finite within {steps} steps: a speed without a training is no figure. Lower the learning rate."
            )

    return call


def _input(experiment: Experiment, choice: Choice, data: Data, plan: Plan, mode: str) -> Callable[[int], None]:
    """A function that takes so many batches of the input, and does nothing with them."""
    batches = _batches(experiment, choice, data, plan, mode)

    @tf.function
    def loop(iterator, steps):
        rows = tf.zeros([])
        for _ in tf.range(steps):
            _, _, mask = next(iterator)
            rows += tf.reduce_sum(choice.strategy.experimental_local_results(mask)[0])
        return rows

    return lambda steps: float(loop(batches, tf.constant(steps)))


def _batches(experiment: Experiment, choice: Choice, data: Data, plan: Plan, mode: str):
    if mode == "train":
        return pipeline.train_iterator(
            data.train,
            choice.strategy,
            seed=experiment.seed,
            start_step=0,
            global_batch_size=plan.global_batch_size,
        )
    return pipeline.endless_eval_iterator(data.evaluation, choice.strategy, global_batch_size=plan.global_batch_size)


def _profile(call: Callable[[int], None], steps: int, folder: str) -> str | None:
    """Writes a trace of a few steps; a profiler that fails costs the trace, not the measurement."""
    timing.not_in_window("a profile")
    try:
        with tf.profiler.experimental.Profile(folder):
            call(steps)
    except Exception as error:
        print(f"Warning:    no profile ({guards.first_line(error)}).")
        return None
    return folder


def _forget_memory(choice: Choice) -> None:
    """Starts the peaks of memory anew, where the system lets us."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    if choice.accelerator == "gpu":
        for device in choice.strategy.extended.worker_devices:
            tf.config.experimental.reset_memory_stats(device)


def _memory(choice: Choice) -> dict[str, int | None]:
    """Peaks of memory in bytes, of this process and of the fullest device, where the device tells."""
    found = {"host_memory_peak_bytes": None, "device_memory_peak_bytes": None}
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
        found["host_memory_peak_bytes"] = int(lines["VmHWM"].split()[0]) * 1024
    if choice.accelerator == "gpu":
        peaks = [tf.config.experimental.get_memory_info(d)["peak"] for d in choice.strategy.extended.worker_devices]
        found["device_memory_peak_bytes"] = max(peaks)
    return found
