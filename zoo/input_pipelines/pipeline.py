"""The input pipeline, written once for all data.

    seeded raw stream → this host's share → decode and augment → (inputs, label, mask) → static batch → prefetch

The position in the stream *is* the optimizer step: what comes at position p follows from (seed, p) alone. So a resumed
run needs no iterator to be saved, and any number of hosts and replicas sees the same global batches in the same order.
"""

import dataclasses
from collections.abc import Callable, Iterator

import keras
import tensorflow as tf

from zoo.guards import check

Record = tf.Tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What an experiment asks of its data.

    Attributes:
      data_dir: folder or gs:// address where they are.
      num_classes: labels run from 0 to `num_classes` - 1.
      input_size: height and width of images, in pixels; this and the next two are None where the network takes none.
      sequence_length: tokens of a text, padding included.
      vocabulary_size: number of token ids, padding (0) and unknown words (1) included.
      train_examples: how many there are in an epoch, the first so many; None leaves it to the data.
      eval_examples: how many there are in an evaluation, the first so many; None leaves it to the data.
      write: whether fake data may be written where they are not there yet; without it, noise of their shape stands in.
    """

    data_dir: str
    num_classes: int
    input_size: int | None = None
    sequence_length: int | None = None
    vocabulary_size: int | None = None
    train_examples: int | None = None
    eval_examples: int | None = None
    write: bool = True

    def need(self, name: str) -> int:
        """The value of a field that these data can't do without.

        Raises:
          UserError: if it is None.
        """
        check(
            getattr(self, name) is not None,
            f"These data need {name}, which the network does not take. Bind Experiment.model and Experiment.data to ones that go "
            "together: images, or texts.",
        )
        return getattr(self, name)

    def in_directory(self, data_dir: str) -> "Request":
        """The same in another directory."""
        return dataclasses.replace(self, data_dir=data_dir)


@dataclasses.dataclass(frozen=True)
class Source:
    """The examples of one split.

    Attributes:
      description: where they come from, for people.
      num_examples: how many there are in an epoch.
      epoch: `epoch(seed, number)` is the dataset of all raw records in the order of that epoch; int64 scalar tensors.
      in_order: `in_order()` is the dataset of all raw records in their order on disk.
      decode_train: `decode_train(record, key)` is the augmented `(inputs, label)`, drawn from `key` (int64 `[2]`) alone.
      decode_eval: `decode_eval(record)` is `(inputs, label)`, with the label an int32 scalar from 0.
      resident: hold one training batch on the device and repeat it: no host work at all.
    """

    description: str
    num_examples: int
    epoch: Callable[[tf.Tensor, tf.Tensor], tf.data.Dataset]
    in_order: Callable[[], tf.data.Dataset]
    decode_train: Callable[[Record, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    decode_eval: Callable[[Record], tuple[tf.Tensor, tf.Tensor]]
    resident: bool = False


@dataclasses.dataclass(frozen=True)
class Data:
    """What a run trains on and what it is evaluated on.

    Attributes:
      train: the training split.
      evaluation: the other one.
      labels: names of the classes, where the data have any.
      vocabulary: the word of each token id, where words are tokens.
    """

    train: Source
    evaluation: Source
    labels: tuple[str, ...] | None = None
    vocabulary: tuple[str, ...] | None = None


def raw_stream(source: Source, seed: int, start: int) -> tf.data.Dataset:
    """The endless stream of `(position, raw record)` of training from position `start` on, epoch after epoch."""
    first = start // source.num_examples
    epochs = tf.data.Dataset.range(first, tf.int64.max)

    def records(epoch):
        # Shuffles mix in the seed of the graph that they stand in, which is TensorFlow's global one if it is not set.
        tf.compat.v1.set_random_seed(1)
        dataset = source.epoch(tf.constant(seed, tf.int64), epoch)
        return dataset.apply(tf.data.experimental.assert_cardinality(source.num_examples))

    stream = epochs.flat_map(records).skip(start - first * source.num_examples)
    return tf.data.Dataset.zip(tf.data.Dataset.range(start, tf.int64.max), stream)


def train_dataset(
    source: Source, *, seed: int, start_step: int, global_batch_size: int, context: tf.distribute.InputContext
) -> tf.data.Dataset:
    """Batches of one replica, `(inputs, labels, mask)`, from step `start_step` on, for the host that `context` names."""
    stream = raw_stream(source, seed, start_step * global_batch_size)
    stream = _share_of_host(stream, global_batch_size, context)

    def decode(position, record):
        inputs, label = source.decode_train(record, tf.stack([tf.constant(seed, tf.int64), position]))
        return inputs, label, tf.ones([])

    return _batches(stream.map(decode, tf.data.AUTOTUNE, deterministic=True), global_batch_size, context)


def eval_dataset(source: Source, *, global_batch_size: int, context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Batches of one replica for an evaluation: every example once, the last batch filled up with examples of mask 0."""
    records = source.in_order().apply(tf.data.experimental.assert_cardinality(source.num_examples))
    mask = tf.data.Dataset.from_tensors(1.0).repeat(source.num_examples)
    mask = mask.concatenate(tf.data.Dataset.from_tensors(0.0).repeat())
    padding = records.take(1).repeat(-source.num_examples % global_batch_size)
    masked = tf.data.Dataset.zip(records.concatenate(padding), mask)
    masked = _share_of_host(masked, global_batch_size, context)

    def decode(record, mask):
        inputs, label = source.decode_eval(record)
        return inputs, label, mask

    return _batches(masked.map(decode, tf.data.AUTOTUNE, deterministic=True), global_batch_size, context)


def eval_steps(source: Source, global_batch_size: int) -> int:
    """Steps of one evaluation."""
    return -(-source.num_examples // global_batch_size)


def train_iterator(
    source: Source, strategy: tf.distribute.Strategy, *, seed: int, start_step: int, global_batch_size: int
) -> Iterator:
    """The endless iterator of a training loop; each `next` gives every replica its batch of the next step."""

    # The one batch of a resident source is the same wherever a run goes on.
    start_step = 0 if source.resident else start_step

    def dataset(context):
        return train_dataset(
            source, seed=seed, start_step=start_step, global_batch_size=global_batch_size, context=context
        )

    batches = iter(strategy.distribute_datasets_from_function(dataset))
    return Resident(next(batches)) if source.resident else batches


def eval_iterator(source: Source, strategy: tf.distribute.Strategy, *, global_batch_size: int) -> Iterator:
    """The iterator of one evaluation, `eval_steps` long."""
    return iter(
        strategy.distribute_datasets_from_function(
            lambda context: eval_dataset(source, global_batch_size=global_batch_size, context=context)
        )
    )


def endless_eval_iterator(source: Source, strategy: tf.distribute.Strategy, *, global_batch_size: int) -> Iterator:
    """One evaluation after the other, for measuring; a resident source repeats its first batch, which lies on the device."""

    def dataset(context):
        return eval_dataset(source, global_batch_size=global_batch_size, context=context).repeat()

    batches = iter(strategy.distribute_datasets_from_function(dataset))
    return Resident(next(batches)) if source.resident else batches


def check_inputs(source: Source, model: keras.Model) -> None:
    """Checks that a network takes what the data give.

    Raises:
      UserError: naming both.
    """
    raw = source.in_order().take(1)
    found, _ = raw.map(source.decode_eval).element_spec
    wanted = model.input
    check(
        found.dtype.name == wanted.dtype and tuple(found.shape) == tuple(wanted.shape[1:]),
        f"The data give {found.dtype.name} {list(found.shape)}, {model.name} takes {wanted.dtype} {list(wanted.shape[1:])}. Bind "
        "Experiment.model and Experiment.data to ones that go together: images, or texts.",
    )


def some_inputs(source: Source, seed: int, count: int) -> tf.Tensor:
    """The inputs of the first examples of the training, augmented as they are there."""
    context = tf.distribute.InputContext(num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1)
    inputs, _, _ = next(
        iter(train_dataset(source, seed=seed, start_step=0, global_batch_size=count, context=context).take(1))
    )
    return inputs


class Resident:
    """An iterator that gives one and the same batch, which lies on the devices already."""

    def __init__(self, batch):
        self.batch = batch

    def __next__(self):
        return self.batch


def _share_of_host(stream: tf.data.Dataset, global_batch_size: int, context) -> tf.data.Dataset:
    """This host's contiguous block of every global batch."""
    hosts = context.num_input_pipelines
    if hosts == 1:
        return stream
    blocks = stream.batch(global_batch_size // hosts, drop_remainder=True)
    return blocks.shard(hosts, context.input_pipeline_id).unbatch()


def _batches(examples: tf.data.Dataset, global_batch_size: int, context) -> tf.data.Dataset:
    rows = global_batch_size // context.num_replicas_in_sync
    return examples.batch(rows, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
