"""The numbers of a run, derived in one place, and its start-up summary."""

import collections
import dataclasses
import functools
import hashlib
import math

import gin
import keras

from zoo import gin_checks
from zoo.experiment import Experiment, Program
from zoo.input_pipelines.pipeline import Data
from zoo.strategy import Choice

ACTIVATION_BYTES = {"float32": 4, "mixed_bfloat16": 2, "mixed_float16": 2}


@dataclasses.dataclass(frozen=True)
class Plan:
    """The numbers of steps of a run."""

    global_batch_size: int
    total_steps: int
    steps_per_epoch: float
    eval_every_epochs: float
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
            eval_every_epochs=experiment.eval_every_epochs,
            checkpoint_every_steps=experiment.checkpoint_every_steps,
            steps_per_loop=experiment.steps_per_loop,
        )

    def loop_end(self, step: int) -> int:
        """The end of the device loop that starts at `step`.

        A function of the step alone: a continued run has the same loops, and so the same rows, as an uninterrupted one.
        """
        every = (self.steps_per_loop, self.checkpoint_every_steps)
        return min(self.total_steps, self._evaluation_after(step), *((step // n + 1) * n for n in every))

    def evaluates_at(self, step: int) -> bool:
        return step == self._evaluation_after(step - 1) or step == self.total_steps

    def _evaluation_after(self, step: int) -> int:
        """The first evaluation after `step`: the ends of epochs, each rounded by itself, so that the last is the run's."""
        count = max(1, int((step + 1) / (self.eval_every_epochs * self.steps_per_epoch)))
        ends = (int(n * self.eval_every_epochs * self.steps_per_epoch) for n in (count, count + 1, count + 2))
        return next((end for end in ends if end > step), step + 1)

    def saves_at(self, step: int) -> bool:
        return step % self.checkpoint_every_steps == 0 or step == self.total_steps


def parameters(model: keras.Model) -> int:
    """Number of trainable parameters."""
    return sum(math.prod(v.shape) for v in model.trainable_variables)


def checkpoint_bytes(program: Program) -> int:
    """Size of one checkpoint: weights, statistics, their averages and the optimizer's slots, float32."""
    state = program.state
    variables = [*state.model.weights, *state.optimizer.variables]
    if state.averaged is not state.model:
        variables += state.averaged.weights
    return 4 * sum(math.prod(v.shape) for v in variables)


def memory_bytes(experiment: Experiment, program: Program) -> tuple[int, int]:
    """Estimates what one replica needs: (weights, slots and gradients; activations kept for the backward pass).

    The second is an upper bound: the outputs of all layers of one microbatch, though XLA fuses some away.
    """
    model = program.state.model
    fixed = checkpoint_bytes(program) + 4 * parameters(model)
    rows = program.batch_spec[0].shape[0] // experiment.microbatches
    elements = sum(math.prod(tensor.shape[1:]) for layer in model.layers for tensor in _outputs(layer))
    elements += sum(getattr(layer, "kept_elements", 0) for layer in model.layers)
    return fixed, rows * elements * ACTIVATION_BYTES[experiment.precision]


def describe(experiment: Experiment, choice: Choice, data: Data, plan: Plan, program: Program) -> str:
    """The start-up summary."""
    model = program.state.model
    xla = "forward and backward" if program.jit_compile else "off"
    if choice.accelerator == "tpu":
        xla = "the whole step"
    epochs = plan.total_steps / plan.steps_per_epoch
    per_replica = plan.global_batch_size // choice.replicas
    fixed, activations = memory_bytes(experiment, program)
    lines = [
        f"Model:      {model.name}, {parameters(model):,} trainable parameters, input {tuple(model.input.shape[1:])}, "
        f"{experiment.num_classes} classes",
        f"Training:   {data.train.description}",
        f"Evaluation: {data.evaluation.description}",
        f"Batch:      {plan.global_batch_size} over {choice.replicas} replica(s), {per_replica} each"
        + (f", in {experiment.microbatches} microbatches" if experiment.microbatches > 1 else ""),
        f"Length:     {plan.total_steps:,} steps = {epochs:.4g} epochs; evaluation every {plan.eval_every_epochs:g} epoch(s), "
        f"checkpoint every {plan.checkpoint_every_steps:,}, {plan.steps_per_loop:,} steps per device loop",
        f"Precision:  {experiment.precision}; XLA: {xla}; seed {experiment.seed}",
        f"Kernels:    {kernels(model)}",
        f"Memory:     about {_gb(fixed)} per replica for weights, slots and gradients, and up to {_gb(activations)} for "
        "activations (estimated)",
    ]
    if experiment.rehearsal:
        lines.insert(0, "REHEARSAL:  a shrunken run; its speed and accuracy are not those of the experiment.")
    return "\n".join(lines + [f"Warning:    {warning}" for warning in warnings(plan, model)])


def warnings(plan: Plan, model: keras.Model) -> list[str]:
    """What is allowed, but seldom meant."""
    momenta = [
        layer.momentum
        for layer in model.layers
        if hasattr(layer, "moving_mean") and not getattr(layer, "warmup", False)
    ]
    left = max(momenta, default=0) ** plan.total_steps
    if left <= 0.05:
        return []
    return [
        f"batch normalization with momentum {max(momenta)} keeps {left:.0%} of its initial statistics after {plan.total_steps} "
        "steps: evaluation will be worse than training. Lower the momentum or train for longer."
    ]


# What may change between two starts of one run: it changes nothing of the training but where and how it is shown.
FREE = {
    *("accelerator", "allow_cpu", "cpu_replicas", "tpu", "tpu_zone", "tpu_project", "xla", "microbatches"),
    *(
        "checkpoint_every_steps",
        "keep_checkpoints",
        "steps_per_loop",
        "eval_every_epochs",
        "target_top1",
        "usd_per_hour",
    ),
    *("global_batch_size", "per_replica_batch_size", "train_examples", "train_epochs", "train_steps"),  # see `record`
}


def record(experiment: Experiment, plan: Plan, data: Data, program: Program) -> dict[str, str]:
    """What makes a run this run and no other: all that its training follows from, by name, as text."""
    values = {f"Experiment.{name}": value for name, value in vars(experiment).items() if name not in FREE}
    values |= {"global batch": plan.global_batch_size, "total steps": plan.total_steps}
    values |= {"training examples": data.train.num_examples, "classes": _digest(data.labels)}
    values |= {
        "vocabulary": _digest(data.vocabulary),
        "examples normalized together": _normalized(experiment, plan, program),
    }
    operative = gin_checks.read_text(gin.operative_config_str()).bindings
    values |= {b.key: b.value for b in operative if b.configurable != gin_checks.ROOT}
    return {name: _text(value) for name, value in values.items()}


def _normalized(experiment: Experiment, plan: Plan, program: Program) -> int | None:
    """Examples that share their statistics in batch normalization: fewer on more replicas and in more microbatches."""
    synchronized = {layer.synchronized for layer in program.state.model.layers if hasattr(layer, "synchronized")}
    if not synchronized:
        return None
    together = program.batch_spec[0].shape[0] if False in synchronized else plan.global_batch_size
    return together // experiment.microbatches


def _digest(words: tuple[str, ...] | None) -> str:
    """Number of words and a hash of them."""
    if words is None:
        return "none"
    return f"{len(words)} ({hashlib.sha256(chr(10).join(words).encode()).hexdigest()[:16]})"


def _text(value) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, functools.partial):
        options = [*map(_text, value.args), *(f"{name}={_text(option)}" for name, option in value.keywords.items())]
        return f"{_text(value.func)}({', '.join(options)})"
    return f"@{value.__name__}" if callable(value) else gin_checks.shown(value)


def kernels(model: keras.Model) -> str:
    """The special kernels of zoo's own layers."""
    counts = collections.Counter(
        layer.kernel for layer in model.layers if hasattr(layer, "kernel") and hasattr(layer, "stock")
    )
    own = [f"{kernel} in {count} layers" for kernel, count in counts.items()]
    return "; ".join([*own, "those of Keras elsewhere"])


def _outputs(layer: keras.layers.Layer) -> list[keras.KerasTensor]:
    output = layer.output
    return output if isinstance(output, list) else [output]


def _gb(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
