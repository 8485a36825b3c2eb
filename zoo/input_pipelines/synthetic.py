"""Synthetic images and texts: one batch that stays on the device, the ceiling of every speed."""

from collections.abc import Callable

import gin
import tensorflow as tf

from zoo.input_pipelines.pipeline import Data, Request, Source


@gin.configurable(denylist=["request"])
def synthetic(
    request: Request, *, default_train_examples: int = 1_281_167, default_eval_examples: int = 50_000
) -> Data:
    """Uniform noise with random labels. Training repeats one batch that lies on the device, without any host work.

    Images of `input_size`; or, where the network takes a `vocabulary_size`, texts of `sequence_length` tokens, unpadded.

    Args:
      request: of the experiment; its directory is not read.
      default_train_examples: what an epoch counts as where the experiment does not say; as in ImageNet.
      default_eval_examples: examples of an evaluation where the experiment does not say; as in ImageNet.
    """
    counts = (request.train_examples or default_train_examples, request.eval_examples or default_eval_examples)
    make = synthetic_images if request.vocabulary_size is None else synthetic_tokens
    return make(request, *counts, "synthetic examples")


def synthetic_images(request: Request, train_examples: int, eval_examples: int, what: str) -> Data:
    """Uint8 images of noise; `what` describes them to people."""
    size = request.need("input_size")

    def inputs(index):
        return tf.cast(tf.random.stateless_uniform([size, size, 3], [1, index], 0, 256, tf.int32), tf.uint8)

    return _data(inputs, request.num_classes, train_examples, eval_examples, what)


def synthetic_tokens(request: Request, train_examples: int, eval_examples: int, what: str) -> Data:
    """Int32 ids of random words; `what` describes them to people."""
    length, vocabulary_size = request.need("sequence_length"), request.need("vocabulary_size")

    def inputs(index):
        return tf.random.stateless_uniform([length], [1, index], 1, vocabulary_size, tf.int32)

    return _data(inputs, request.num_classes, train_examples, eval_examples, what)


def _data(inputs: Callable, num_classes: int, train_examples: int, eval_examples: int, what: str) -> Data:
    def decode(index):
        return inputs(index), tf.random.stateless_uniform([], [2, index], 0, num_classes, tf.int32)

    def source(count):
        return Source(
            description=f"{count:,} {what}",
            num_examples=count,
            epoch=lambda seed, number: tf.data.Dataset.range(count),
            in_order=lambda: tf.data.Dataset.range(count),
            decode_train=lambda index, key: decode(index),
            decode_eval=decode,
            resident=True,
        )

    return Data(source(train_examples), source(eval_examples))
