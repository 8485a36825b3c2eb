"""Checks before launch: every mistake of a person becomes one message with the value, the rule and the fix."""

import contextlib
import json
import os
import re
import shutil


class UserError(ValueError):
    """A mistake that its user can mend; entry points print its message alone, without a traceback."""

    exit_code = 2


class NoDevice(UserError):
    """The devices that an experiment asks for are not here."""

    exit_code = 3


class Diverged(UserError):
    """Loss or gradients are not finite any more."""

    exit_code = 4


PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
RECORD = "experiment.json"
# What a run writes, and what a folder must not hold that is no run's: some of it is overwritten, some deleted.
WRITTEN = {
    *(
        "checkpoints",
        "metrics.jsonl",
        "timing.jsonl",
        "tensorboard",
        "model.keras",
        "labels.txt",
        "vocabulary.txt",
        "result.json",
    ),
    *("config.gin", "operative_config.gin"),
}
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
        e.precision in PRECISIONS,
        f"Experiment.precision = {e.precision!r}: must be one of {', '.join(map(repr, PRECISIONS))}. Pure 16-bit training, "
        "weights included, loses small updates and ends in NaN.",
    )
    for name in ("microbatches", "checkpoint_every_steps", "keep_checkpoints", "steps_per_loop"):
        check(getattr(e, name) >= 1, f"Experiment.{name} = {getattr(e, name)}: must be at least 1.")
    check(e.num_classes >= 2, f"Experiment.num_classes = {e.num_classes}: must be at least 2.")
    optional = ("global_batch_size", "per_replica_batch_size", "train_examples", "eval_examples", "train_epochs")
    for name in (
        *optional,
        "input_size",
        "sequence_length",
        "vocabulary_size",
        "train_steps",
        "clip_norm",
        "eval_every_epochs",
        "usd_per_hour",
    ):
        value = getattr(e, name)
        check(value is None or value > 0, f"Experiment.{name} = {value}: must be positive.")
    check(e.weight_decay >= 0, f"Experiment.weight_decay = {e.weight_decay}: must not be negative.")
    check(0 <= e.seed < 2**31 - 1, f"Experiment.seed = {e.seed}: must lie between 0 and 2**31 - 2.")
    check(
        e.average_decay is None or 0 < e.average_decay < 1,
        f"Experiment.average_decay = {e.average_decay}: must lie between 0 and 1, or be None.",
    )
    check(
        e.target_top1 is None or 0 < e.target_top1 <= 1,
        f"Experiment.target_top1 = {e.target_top1}: must be a share, such as 0.759, or None.",
    )
    check(e.aux_loss_weight >= 0, f"Experiment.aux_loss_weight = {e.aux_loss_weight}: must not be negative.")
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


def check_plan(plan, train_examples: int) -> None:
    """Checks a `Plan` against the data."""
    check(
        plan.global_batch_size <= train_examples,
        f"A global batch of {plan.global_batch_size}, but only {train_examples} training examples: some would be in one batch "
        f"twice. Bind Experiment.global_batch_size to at most {train_examples}.",
    )


def check_memory(needed: int, what: str, fix: str) -> None:
    """Checks that `needed` bytes are at most half of this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    check(
        needed <= memory / 2,
        f"{what} needs about {needed / 1e9:.1f} GB (estimated), this machine has {memory / 1e9:.1f} GB, half of which is for it. "
        f"{fix}",
    )


def check_disk(directory: str, needed: int, what: str) -> None:
    """Checks that `needed` bytes fit on the disk of a directory, which need not exist yet. Remote ones are not checked."""
    if "://" in directory:
        return
    existing = os.path.abspath(directory)
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    free = shutil.disk_usage(existing).free
    check(
        needed <= free,
        f"{directory}: {what} need about {needed / 1e9:.1f} GB (estimated), {free / 1e9:.1f} GB are free. Make room, or choose "
        "another directory.",
    )


def check_workdir(workdir: str, record: dict[str, str]) -> None:
    """Checks that a workdir holds this very run, as `plan.record` describes it, or none.

    Raises:
      UserError: naming what differs.
    """
    import tensorflow as tf

    path = os.path.join(workdir, RECORD)
    other = "choose another --workdir."
    try:
        names = {name.rstrip("/") for name in tf.io.gfile.listdir(workdir)} if tf.io.gfile.exists(workdir) else set()
        if RECORD not in names:
            ours = sorted(names & WRITTEN)
            check(
                not ours, f"{workdir} holds {', '.join(ours)}, but no {RECORD} to know them by: put it back, or {other}"
            )
            return
        with tf.io.gfile.GFile(path) as file:
            found = json.loads(file.read())
    except tf.errors.OpError as error:
        raise UserError(f"--workdir={workdir}: can't be used ({first_line(error)}); {other}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: damaged ({first_line(error)}). Put a sound one there, or {other}") from error
    check(isinstance(found, dict), f"{path}: damaged (no JSON object). Put a sound one there, or {other}")
    names = [name for name in {**found, **record} if found.get(name) != record.get(name)]
    check(
        not names,
        f"{workdir} holds another run: "
        + "; ".join(
            f"{name} is {found.get(name, 'not used')} there, {record.get(name, 'not used')} here" for name in names[:5]
        )
        + (f"; and {len(names) - 5} more" if len(names) > 5 else "")
        + ". Choose another --workdir.",
    )


def claim_workdir(workdir: str, record: dict[str, str]) -> None:
    """Makes a workdir that `check_workdir` has passed this run's, before anything else is written there."""
    import tensorflow as tf

    path = os.path.join(workdir, RECORD)
    try:
        tf.io.gfile.makedirs(workdir)
        with tf.io.gfile.GFile(path + ".part", "w") as file:
            file.write(json.dumps(record, indent=2) + "\n")
        tf.io.gfile.rename(path + ".part", path, overwrite=True)
    except tf.errors.OpError as error:
        raise UserError(f"--workdir={workdir}: can't be used ({first_line(error)}). Choose another.") from error


@contextlib.contextmanager
def reading_data():
    """Turns TensorFlow's errors inside, which come of the data, into errors for users."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise _explain_anywhere(error) or _unreadable(error) from error


def explain(error: Exception, experiment, rows: int) -> UserError | None:
    """What an error of TensorFlow or of the system says to a user; None if it is not one for users.

    Args:
      error: raised by a run.
      experiment: the `Experiment` that runs.
      rows: examples of one replica's batch.
    """
    known = _explain_anywhere(error)
    if known:
        return known
    if type(error).__name__ == "ResourceExhaustedError":
        parts = next((k for k in range(experiment.microbatches + 1, rows + 1) if rows % k == 0), None)
        fix = f"Bind Experiment.microbatches = {parts}" if parts else "Lower the input size"
        return UserError(
            f"Out of memory with {rows} examples per replica in {experiment.microbatches} microbatch(es), input size "
            f"{experiment.input_size}, {experiment.precision}. {fix}, and the training stays the same, or lower the batch."
        )
    return _unreadable(error) if "IteratorGetNext" in str(error) else None


def first_line(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _explain_anywhere(error: Exception) -> UserError | None:
    """What an error says wherever it is raised."""
    text = str(error)
    label = re.search(r"\[label\] \[(-?\d+)\] \[(.*?)\]", text, re.DOTALL)
    if label:
        return UserError(f"A label of the data, {label[1]}, {label[2]}. Bind as many classes as the data have.")
    # TensorFlow has one and the same error for memory and for disks.
    if re.search("No space left on device|Disk quota exceeded", text):
        return UserError(f"The disk is full ({first_line(error)}). Make room, then run the same command.")
    return None


def _unreadable(error: Exception) -> UserError:
    text = re.sub(r"^\{\{.*?\}\} ?", "", str(error).strip())
    cause = text.split("[[{{node")[0].split(" [Op:")[0].strip().splitlines()[-1]
    return UserError(
        f"The data can't be read: {cause}. Point --data_dir at sound ones, or write or copy them again, then run the same "
        "command."
    )


def _exactly_one(experiment, first: str, second: str) -> None:
    one, other = getattr(experiment, first), getattr(experiment, second)
    check(
        (one is None) != (other is None),
        f"Experiment.{first} = {one} and Experiment.{second} = {other}: exactly one of them must be given; bind the other "
        "to None.",
    )
