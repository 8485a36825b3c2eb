"""One run, top to bottom in the order in which things happen."""

import dataclasses
import math
import time
from collections.abc import Iterator

import tensorflow as tf

from zoo import gin_config, guards
from zoo.checkpoints import Checkpoints
from zoo.experiment import Experiment, Program, build
from zoo.export import export_keras, export_path
from zoo.input_pipelines import pipeline
from zoo.input_pipelines.pipeline import Data, Source
from zoo.loop import make_eval_loop, make_train_loop
from zoo.progress import Bar, Metrics
from zoo.strategy import Choice


@dataclasses.dataclass(frozen=True)
class Plan:
    """The numbers of steps of a run, all derived here."""

    global_batch_size: int
    total_steps: int
    steps_per_epoch: float
    eval_every_steps: int
    checkpoint_every_steps: int
    steps_per_loop: int

    @classmethod
    def of(cls, experiment: Experiment, data: Data, replicas: int) -> "Plan":
        batch = experiment.batch_size(replicas)
        steps_per_epoch = data.train.num_examples / batch
        return cls(
            global_batch_size=batch,
            total_steps=experiment.train_steps or max(1, int(experiment.train_epochs * steps_per_epoch)),
            steps_per_epoch=steps_per_epoch,
            eval_every_steps=max(1, round(experiment.eval_every_epochs * steps_per_epoch)),
            checkpoint_every_steps=experiment.checkpoint_every_steps,
            steps_per_loop=experiment.steps_per_loop,
        )

    def loop_end(self, step: int) -> int:
        """The end of the device loop that starts at `step`.

        A function of the step alone: a continued run has the same loops, and so the same rows, as an uninterrupted one.
        """
        every = (self.steps_per_loop, self.eval_every_steps, self.checkpoint_every_steps)
        return min(self.total_steps, *((step // n + 1) * n for n in every))

    def evaluates_at(self, step: int) -> bool:
        return step % self.eval_every_steps == 0 or step == self.total_steps

    def saves_at(self, step: int) -> bool:
        return step % self.checkpoint_every_steps == 0 or step == self.total_steps


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
    choice, data, plan, program = prepare(experiment, data_dir)
    gin_config.write(workdir)
    with choice.strategy.scope():
        checkpoints = Checkpoints(program.state, workdir, experiment.keep_checkpoints)
        start = checkpoints.restore()
    guards.check(
        start <= plan.total_steps,
        f"{workdir} is at step {start} already, beyond the {plan.total_steps} steps of this experiment. Choose another "
        "--workdir, or train for longer.",
    )
    print(describe(experiment, choice, data, plan, program) + f"\nWorkdir:    {workdir}")
    if start:
        print(f"Resumed at step {start} of {plan.total_steps} from {checkpoints.latest}.")
    metrics = Metrics(workdir, start)
    try:
        with choice.strategy.scope():
            _train(experiment, choice.strategy, data, plan, program, checkpoints, metrics)
    except tf.errors.OpError as error:
        explained = guards.explain_data_error(error)
        if explained is None:
            raise
        raise explained from error
    finally:
        metrics.close()
    gin_config.write(workdir)
    keras_file = export_path(workdir)
    export_keras(program.state.averaged, keras_file)
    result = Result(
        plan.total_steps, metrics.last("train"), metrics.last("validation"), workdir, checkpoints.latest, keras_file
    )
    print(summarize(experiment, result))
    return result


def prepare(experiment: Experiment, data_dir: str, write: bool = True) -> tuple[Choice, Data, Plan, Program]:
    """Everything before the first step: devices, data, numbers of steps, model."""
    guards.check_experiment(experiment)
    choice = experiment.create_strategy()
    print(f"Strategy:   {choice}", flush=True)
    guards.check_batch(experiment, choice.replicas)
    data = experiment.create_data(data_dir, write)
    plan = Plan.of(experiment, data, choice.replicas)
    program = build(experiment, choice.strategy, total_steps=plan.total_steps)
    return choice, data, plan, program


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
    if step == plan.total_steps:
        return
    batches = pipeline.train_iterator(
        data.train, strategy, seed=experiment.seed, start_step=step, global_batch_size=plan.global_batch_size
    )
    train_loop, eval_loop = make_train_loop(strategy, program.train_step), make_eval_loop(strategy, program.eval_step)
    bar = Bar(plan.total_steps, step, plan.global_batch_size)
    bar.note("Compiling the first steps ...")
    compiled = False
    while step < plan.total_steps:
        end = plan.loop_end(step)
        started = time.perf_counter()
        totals = {name: value.numpy() for name, value in train_loop(batches, tf.constant(end - step)).items()}
        seconds = time.perf_counter() - started if compiled else None
        values = _train_values(step, end, totals, plan, checkpoints)
        metrics.write(end, "train", values)
        if seconds is not None:
            rate = (end - step) * plan.global_batch_size / seconds
            metrics.write_timing(end, {"seconds": seconds, "examples_per_second": rate})
        bar.advance(end, end - step, seconds, {name: values[name] for name in ("loss", "top1")})
        step, compiled = end, True
        if plan.evaluates_at(step):
            bar.note(f"Evaluating at step {step} ...")
            result = evaluate(data.evaluation, strategy, eval_loop, plan)
            metrics.write(step, "validation", result)
            bar.note(f"step {step}: validation " + _words(result))
        if plan.saves_at(step):
            checkpoints.save()
    bar.close()


def _train_values(step: int, end: int, totals: dict, plan: Plan, checkpoints: Checkpoints) -> dict[str, float]:
    """The row of one device loop; raises if its loss or gradient was not finite."""
    bad = step + int(totals["finite_steps"])
    if bad < end:
        raise guards.Diverged(
            f"Step {bad + 1}: loss or gradient is not finite; the run has diverged. The last good checkpoint is "
            f"{checkpoints.latest}. A lower learning rate, a longer warm-up or Experiment.clip_norm may help."
        )
    return {
        "epoch": end / plan.steps_per_epoch,
        "loss": float(totals["loss"]) / (end - step),
        "top1": float(totals["top1"]) / float(totals["examples"]),
        "learning_rate": float(totals["learning_rate"]),
        "gradient_norm": float(totals["gradient_norm"]),
    }


def evaluate(source: Source, strategy: tf.distribute.Strategy, eval_loop, plan: Plan) -> dict[str, float]:
    """Mean loss, top-1 and top-5 over every example of `source` once, and their number."""
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
    """Builds everything, runs one step on one batch, prints the plan, and writes nothing."""
    choice, data, plan, program = prepare(experiment, data_dir, write=False)
    print(describe(experiment, choice, data, plan, program), flush=True)
    with choice.strategy.scope():
        batches = pipeline.train_iterator(
            data.train, choice.strategy, seed=experiment.seed, start_step=0, global_batch_size=plan.global_batch_size
        )
        started = time.perf_counter()
        totals = make_train_loop(choice.strategy, program.train_step)(batches, tf.constant(1))
    loss, seconds = float(totals["loss"]), time.perf_counter() - started
    print(f"Dry run:    one step, compilation included, took {seconds:.1f} s; loss {loss:.4f}. Nothing was written.")


def describe(experiment: Experiment, choice: Choice, data: Data, plan: Plan, program: Program) -> str:
    """The start-up summary."""
    model = program.state.model
    xla = "forward and backward" if program.jit_compile else "off"
    if choice.accelerator == "tpu":
        xla = "the whole step"
    epochs = plan.total_steps / plan.steps_per_epoch
    per_replica = plan.global_batch_size // choice.replicas
    lines = [
        f"Model:      {model.name}, {sum(math.prod(v.shape) for v in model.trainable_variables):,} trainable parameters, "
        f"input {tuple(model.input.shape[1:])}, {experiment.num_classes} classes",
        f"Training:   {data.train.description}",
        f"Evaluation: {data.evaluation.description}",
        f"Batch:      {plan.global_batch_size} over {choice.replicas} replica(s), {per_replica} each"
        + (f", in {experiment.microbatches} microbatches" if experiment.microbatches > 1 else ""),
        f"Length:     {plan.total_steps:,} steps = {epochs:.4g} epochs; evaluation every {plan.eval_every_steps:,} steps, "
        f"checkpoint every {plan.checkpoint_every_steps:,}, {plan.steps_per_loop:,} steps per device loop",
        f"Precision:  {experiment.precision}; XLA: {xla}; seed {experiment.seed}",
    ]
    if experiment.rehearsal:
        lines.insert(0, "REHEARSAL:  a shrunken run; its speed and accuracy are not those of the experiment.")
    return "\n".join(lines)


def summarize(experiment: Experiment, result: Result) -> str:
    """The last words of a run."""
    lines = [
        f"Finished {result.steps:,} steps. Validation: {_words(result.validation)}.",
        f"Checkpoint:  {result.checkpoint}",
        f"Keras file:  {result.keras_file}",
        f"Metrics:     {result.workdir}/metrics.jsonl, timing.jsonl; tensorboard --logdir={result.workdir}/tensorboard",
    ]
    if experiment.rehearsal:
        lines.append("This was a REHEARSAL: drop the smoke overlay for the real run.")
    return "\n".join(lines)


def _words(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if name not in ("step", "split"))
