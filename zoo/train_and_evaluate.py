"""One run, top to bottom in the order in which things happen."""

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Iterator

import tensorflow as tf

from zoo import convergence, gin_config, guards, timing
from zoo.checkpoints import Checkpoints, checkpoint_paths
from zoo.experiment import Experiment, Program, build
from zoo.init_from import load_weights
from zoo.input_pipelines import pipeline
from zoo.input_pipelines.pipeline import Data, Source
from zoo.loop import make_eval_loop, make_train_loop
from zoo.plan import Plan, checkpoint_bytes, describe, record
from zoo.progress import Bar, Metrics
from zoo.saving import export_keras, export_path, write_names
from zoo.strategy import Choice, create_strategy


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run came to: its last rows of metrics, and where things are."""

    steps: int
    train: dict[str, float]
    validation: dict[str, float]
    workdir: str
    checkpoint: str
    keras_file: str


def train_and_evaluate(experiment: Experiment, *, workdir: str, data_dir: str = "data") -> Result:
    """Trains an experiment to its end, or continues the run that `workdir` holds.

    Raises:
      UserError: on a mistake in the experiment, the data or the workdir, or when the training diverges.
    """
    guards.check_experiment(experiment)
    choice = experiment.create_strategy()
    print(f"Strategy:   {choice}", flush=True)
    with explaining(experiment, choice):
        data, plan, program = prepare(experiment, choice, data_dir)
        guards.check_disk(workdir, (experiment.keep_checkpoints + 1) * checkpoint_bytes(program), "checkpoints")
        if not checkpoint_paths(workdir):
            _initialize(experiment, choice.strategy, data, program)
        run = record(experiment, plan, data, program)
        guards.check_workdir(workdir, run)
        guards.claim_workdir(workdir, run)
        gin_config.write(workdir)
        write_names(os.path.join(workdir, ""), data.labels, data.vocabulary)
        with choice.strategy.scope():
            checkpoints = Checkpoints(program.state, workdir, experiment.keep_checkpoints)
            start = checkpoints.restore()
        print(describe(experiment, choice, data, plan, program) + f"\nWorkdir:    {workdir}")
        if start:
            print(f"Resumed at step {start} of {plan.total_steps} from {checkpoints.latest}.")
        metrics = _open_metrics(experiment, data, workdir, start)
        try:
            with choice.strategy.scope():
                _train(experiment, choice.strategy, data, plan, program, checkpoints, metrics)
        finally:
            metrics.close()
        gin_config.write(workdir)
        found = convergence.row(experiment, choice, plan, program, metrics)
        convergence.write(workdir, found)
        keras_file = export_path(workdir)
        export_keras(program.state.averaged, keras_file)
    last = metrics.last("validation")
    result = Result(last["step"], metrics.last("train"), last, workdir, checkpoints.latest, keras_file)
    print(summarize(experiment, result, found))
    return result


def _initialize(experiment: Experiment, strategy: tf.distribute.Strategy, data: Data, program: Program) -> None:
    """Gives a new run the weights that it asks for, and says which."""
    if experiment.init_from is None:
        return
    networks = [program.state.model, program.state.averaged]
    with strategy.scope():
        loaded = load_weights(
            networks, experiment.init_from, experiment=experiment, vocabulary=data.vocabulary, labels=data.labels
        )
    print(f"Init from:  {loaded}")


@contextlib.contextmanager
def explaining(experiment: Experiment, choice: Choice):
    """Turns errors of TensorFlow and of the system inside that a user can mend into a `UserError`."""
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        rows = experiment.batch_size(choice.replicas) // choice.replicas
        raise guards.explain(error, experiment, rows) or error from error


def prepare(experiment: Experiment, choice: Choice, data_dir: str, write: bool = True) -> tuple[Data, Plan, Program]:
    """Opens the data and builds the steps, each checked against the other. Fake data are written if `write`.

    Raises:
      UserError: if they do not go together.
    """
    guards.check_batch(experiment, choice.replicas)
    with guards.reading_data():
        data = experiment.create_data(data_dir, write)
    plan = Plan.of(experiment, data, choice.replicas)
    guards.check_plan(plan, data.train.num_examples)
    program = build(experiment, choice.strategy, total_steps=plan.total_steps)
    with guards.reading_data():
        pipeline.check_inputs(data.train, program.state.model)
    return data, plan, program


def _open_metrics(experiment: Experiment, data: Data, workdir: str, start: int) -> Metrics:
    with guards.reading_data():
        inputs = pipeline.some_inputs(data.train, experiment.seed, 8)
    metrics = Metrics(workdir, start)
    metrics.show_configuration()
    if inputs.dtype == tf.uint8:
        metrics.show_images(inputs)
    return metrics


def _train(
    experiment: Experiment,
    strategy: tf.distribute.Strategy,
    data: Data,
    plan: Plan,
    program: Program,
    checkpoints: Checkpoints,
    metrics: Metrics,
) -> None:
    """Runs device loops until the plan is fulfilled. At each boundary, in this order: log, evaluate, checkpoint."""
    step = checkpoints.step()
    if _over(experiment, plan, metrics, step):
        return
    clock = timing.Clock(metrics.seconds_before)
    batches = pipeline.train_iterator(
        data.train, strategy, seed=experiment.seed, start_step=step, global_batch_size=plan.global_batch_size
    )
    train_loop, eval_loop = make_train_loop(strategy, program.train_step), make_eval_loop(strategy, program.eval_step)
    bar = Bar(plan.total_steps, step, plan.global_batch_size)
    compiled = False
    while not _over(experiment, plan, metrics, step):
        end = plan.loop_end(step)
        waiting = bar.waiting("Compiling the first steps") if not compiled else contextlib.nullcontext()
        with timing.window() as window, waiting:
            totals = {name: value.numpy() for name, value in train_loop(batches, tf.constant(end - step)).items()}
        values = _train_values(experiment, step, end, totals, plan, checkpoints)
        metrics.write(end, "train", values)
        rate = {"examples_per_second": (end - step) * plan.global_batch_size / window.seconds}
        timed = {"steps": end - step, "seconds": window.seconds, "clock": clock()}
        metrics.write_timing(end, "train", timed | (rate if compiled else {"compiles": True}))
        shown = {name: values[name] for name in ("loss", "top1")}
        bar.advance(end, end - step, window.seconds if compiled else None, shown)
        step, compiled = end, True
        if plan.evaluates_at(step):
            bar.note(f"Evaluating at step {step} ...")
            started = clock()
            result = evaluate(data.evaluation, strategy, eval_loop, plan)
            if not math.isfinite(result["loss"]):
                raise _diverged(step, f"the validation loss is {result['loss']}", checkpoints)
            metrics.write(step, "validation", result)
            metrics.write_timing(step, "validation", {"seconds": clock() - started, "clock": clock()})
            bar.note(f"step {step}: validation " + _words(result))
        if plan.saves_at(step) or _over(experiment, plan, metrics, step):
            checkpoints.save()
    bar.close()


def _over(experiment: Experiment, plan: Plan, metrics: Metrics, step: int) -> bool:
    """Whether the training is over at `step`: at the end of its plan, or where an evaluation reached the target."""
    last = metrics.last("validation")
    reached = experiment.target_top1 is not None and last.get("top1", 0) >= experiment.target_top1
    return step == plan.total_steps or (reached and last["step"] == step)


def _train_values(
    experiment: Experiment, step: int, end: int, totals: dict, plan: Plan, checkpoints: Checkpoints
) -> dict[str, float]:
    """The row of one device loop; raises `Diverged` if its loss or gradient was not finite."""
    bad = step + int(totals["sound_steps"])
    if bad < end:
        raise _diverged(bad + 1, "loss or gradient is not finite", checkpoints)
    skipped = int(totals["skipped"])
    values = {
        "epoch": end / plan.steps_per_epoch,
        "loss": float(totals["loss"]) / max(1, end - step - skipped),
        "top1": float(totals["top1"]) / float(totals["examples"]),
        "learning_rate": float(totals["learning_rate"]),
        "gradient_norm": float(totals["gradient_norm"]),
    }
    if experiment.precision == "mixed_float16":
        values |= {"loss_scale": float(totals["loss_scale"]), "skipped_steps": skipped}
    return values


def _diverged(step: int, sign: str, checkpoints: Checkpoints) -> guards.Diverged:
    return guards.Diverged(
        f"Step {step}: {sign}; the run has diverged. The last good checkpoint is {checkpoints.latest}. A lower learning "
        "rate, a longer warm-up or Experiment.clip_norm may help."
    )


def evaluate(source: Source, strategy: tf.distribute.Strategy, eval_loop, plan: Plan) -> dict[str, float]:
    """Mean loss, top-1 and top-5 over every example of `source` once, and their number."""
    timing.not_in_window("an evaluation")
    batches: Iterator = pipeline.eval_iterator(source, strategy, global_batch_size=plan.global_batch_size)
    left, sums = pipeline.eval_steps(source, plan.global_batch_size), {}
    while left:
        steps = min(left, plan.steps_per_loop)
        for name, value in eval_loop(batches, tf.constant(steps)).items():
            sums[name] = sums.get(name, 0.0) + float(value)
        left -= steps
    examples = int(sums.pop("examples"))
    return {name: value / examples for name, value in sums.items()} | {"examples": examples}


def dry_run(experiment: Experiment, data_dir: str) -> None:
    """Builds everything, prints the plan, runs one step on one batch, and writes nothing.

    Where the devices that the experiment asks for are not here, the plan is all.
    """
    guards.check_experiment(experiment)
    missing = None
    try:
        choice = experiment.create_strategy()
        print(f"Strategy:   {choice}", flush=True)
    except guards.NoDevice as error:
        missing = error
        choice = create_strategy("cpu")
        print("Strategy:   not decided, for want of a device; the figures below are those of a single replica")
    with explaining(experiment, choice):
        data, plan, program = prepare(experiment, choice, data_dir, write=False)
        _initialize(experiment, choice.strategy, data, program)
        print(describe(experiment, choice, data, plan, program), flush=True)
        if missing:
            print(f"Dry run:    the plan alone. {missing} Nothing was written.")
            return
        with choice.strategy.scope():
            batches = pipeline.train_iterator(
                data.train,
                choice.strategy,
                seed=experiment.seed,
                start_step=0,
                global_batch_size=plan.global_batch_size,
            )
            started = time.perf_counter()
            totals = make_train_loop(choice.strategy, program.train_step)(batches, tf.constant(1))
        loss, seconds = float(totals["loss"]), time.perf_counter() - started
    print(f"Dry run:    one step, compilation included, took {seconds:.1f} s; loss {loss:.4f}. Nothing was written.")


def summarize(experiment: Experiment, result: Result, found: dict) -> str:
    """The last words of a run; `found` is its row of results."""
    lines = [
        f"Finished {result.steps:,} steps. Validation: {_words(result.validation)}.",
        f"Time:        {convergence.in_words(found)}",
        f"Checkpoint:  {result.checkpoint}",
        f"Keras file:  {result.keras_file}",
        f"Metrics:     {result.workdir}/metrics.jsonl, timing.jsonl; tensorboard --logdir={result.workdir}/tensorboard",
    ]
    if experiment.rehearsal:
        lines.append("This was a REHEARSAL: drop the smoke overlay for the real run.")
    return "\n".join(lines)


def _words(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if name not in ("step", "split"))
