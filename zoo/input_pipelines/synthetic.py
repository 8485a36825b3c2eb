"""Synthetic images: one batch that stays on the device, the ceiling of every speed."""

import tensorflow as tf

import gin
from zoo.input_pipelines.pipeline import Data, Source


@gin.configurable(denylist=["data_dir", "input_size", "num_classes", "train_examples", "eval_examples", "write"])
def synthetic(
    *,
    data_dir: str,
    input_size: int,
    num_classes: int,
    train_examples: int | None = None,
    eval_examples: int | None = None,
    write: bool = True,
    default_train_examples: int = 1_281_167,
    default_eval_examples: int = 50_000,
) -> Data:
    """Uniform noise with random labels. Training repeats one batch that lies on the device, without any host work.

    Args:
      data_dir: not read.
      input_size: height and width of the images.
      num_classes: labels run from 0 to `num_classes` - 1.
      train_examples: what an epoch counts as.
      eval_examples: examples of an evaluation.
      write: not used; nothing is ever written.
      default_train_examples: where the experiment does not say; ImageNet's.
      default_eval_examples: where the experiment does not say; ImageNet's.
    """

    def decode(index):
        image = tf.random.stateless_uniform([input_size, input_size, 3], [1, index], 0, 256, tf.int32)
        label = tf.random.stateless_uniform([], [2, index], 0, num_classes, tf.int32)
        return tf.cast(image, tf.uint8), label

    def source(count):
        return Source(
            description=f"{count} synthetic examples",
            num_examples=count,
            epoch=lambda seed, number: tf.data.Dataset.range(count),
            in_order=lambda: tf.data.Dataset.range(count),
            decode_train=lambda index, key: decode(index),
            decode_eval=decode,
            resident=True,
        )

    return Data(source(train_examples or default_train_examples), source(eval_examples or default_eval_examples))
