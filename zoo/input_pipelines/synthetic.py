"""Synthetic images: one batch that stays on the device, the ceiling of every speed."""

import gin
import tensorflow as tf

from zoo.input_pipelines.pipeline import Data, Request, Source


@gin.configurable(denylist=["request"])
def synthetic(
    request: Request, *, default_train_examples: int = 1_281_167, default_eval_examples: int = 50_000
) -> Data:
    """Uniform noise with random labels. Training repeats one batch that lies on the device, without any host work.

    Args:
      request: of the experiment; its directory is not read.
      default_train_examples: what an epoch counts as where the experiment does not say; as in ImageNet.
      default_eval_examples: examples of an evaluation where the experiment does not say; as in ImageNet.
    """
    shape = [request.input_size, request.input_size, 3]

    def decode(index):
        image = tf.random.stateless_uniform(shape, [1, index], 0, 256, tf.int32)
        label = tf.random.stateless_uniform([], [2, index], 0, request.num_classes, tf.int32)
        return tf.cast(image, tf.uint8), label

    def source(count):
        return Source(
            description=f"{count:,} synthetic examples",
            num_examples=count,
            epoch=lambda seed, number: tf.data.Dataset.range(count),
            in_order=lambda: tf.data.Dataset.range(count),
            decode_train=lambda index, key: decode(index),
            decode_eval=decode,
            resident=True,
        )

    return Data(
        source(request.train_examples or default_train_examples),
        source(request.eval_examples or default_eval_examples),
    )
