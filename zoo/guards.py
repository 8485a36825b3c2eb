"""Checks before launch: every mistake of a person becomes one message with the value, the rule and the fix."""

import re


class UserError(ValueError):
    """A mistake that its user can mend; entry points print its message alone, without a traceback."""

    exit_code = 2


class NoDevice(UserError):
    """The devices that an experiment asks for are not here."""

    exit_code = 3


class Diverged(UserError):
    """Loss or gradients are not finite any more."""

    exit_code = 4


INTERRUPTED = 75  # EX_TEMPFAIL: the same command goes on from the last checkpoint


def check(condition: bool, message: str) -> None:
    """Raises `UserError(message)` unless `condition`."""
    if not condition:
        raise UserError(message)


def check_experiment(experiment) -> None:
    """Checks what an `Experiment` says by itself, before any device is touched."""
    e = experiment
    _exactly_one(e, "global_batch_size", "per_replica_batch_size")
    _exactly_one(e, "train_epochs", "train_steps")
    check(
        e.precision in ("float32", "mixed_bfloat16"),
        f"Experiment.precision = {e.precision!r}: must be 'float32' or 'mixed_bfloat16'.",
    )
    for name in ("input_size", "microbatches", "checkpoint_every_steps", "keep_checkpoints", "steps_per_loop"):
        check(getattr(e, name) >= 1, f"Experiment.{name} = {getattr(e, name)}: must be at least 1.")
    check(e.num_classes >= 2, f"Experiment.num_classes = {e.num_classes}: must be at least 2.")
    optional = ("global_batch_size", "per_replica_batch_size", "train_examples", "eval_examples", "train_epochs")
    for name in (*optional, "train_steps", "clip_norm", "eval_every_epochs"):
        value = getattr(e, name)
        check(value is None or value > 0, f"Experiment.{name} = {value}: must be positive.")
    check(e.weight_decay >= 0, f"Experiment.weight_decay = {e.weight_decay}: must not be negative.")
    check(0 <= e.seed < 2**31 - 1, f"Experiment.seed = {e.seed}: must lie between 0 and 2**31 - 2.")
    check(
        0 <= e.label_smoothing < 1,
        f"Experiment.label_smoothing = {e.label_smoothing}: must be at least 0 and below 1.",
    )


def check_batch(experiment, replicas: int) -> None:
    """Checks that the batch can be dealt out to `replicas` replicas and then to microbatches."""
    batch = experiment.batch_size(replicas)
    parts = replicas * experiment.microbatches
    check(
        batch % parts == 0,
        f"A global batch of {batch} can't be dealt out to {replicas} replica(s) × {experiment.microbatches} microbatch(es): "
        f"it must be a multiple of {parts}. Bind Experiment.global_batch_size = {max(1, round(batch / parts)) * parts}.",
    )


def explain_data_error(error: Exception) -> UserError | None:
    """What an error says that the input pipeline raised inside TensorFlow; None if it came from elsewhere."""
    text = str(error)
    label = re.search(r"\[label\] \[(-?\d+)\] \[(.*?)\]", text, re.DOTALL)
    if label:
        return UserError(f"A label of the data, {label[1]}, {label[2]}. Bind as many classes as the data have.")
    if "IteratorGetNext" not in text:
        return None
    cause = text[: text.find("[[{{node")].strip().splitlines()[-1]
    return UserError(f"The data can't be read: {cause}. Write or copy them again, then run the same command.")


def _exactly_one(experiment, first: str, second: str) -> None:
    one, other = getattr(experiment, first), getattr(experiment, second)
    check(
        (one is None) != (other is None),
        f"Experiment.{first} = {one} and Experiment.{second} = {other}: exactly one of them must be given; bind the other "
        "to None.",
    )
