"""Dropout whose mask follows from the seed, the step and the row of the global batch."""

import keras
import tensorflow as tf

from zoo.guards import UserError
from zoo.models import position


@keras.saving.register_keras_serializable(package="zoo")
class Dropout(keras.layers.Layer):
    """Dropout (Srivastava et al., 2014) that is the same on any number of replicas and microbatches, and after a resume.

    Keras's own draws the same mask on every replica, and keeps a state that is not in a checkpoint. Here the mask of a row
    is a function of (seed, layer name, step, row of the global batch); raw bits are compared, since TensorFlow's uniform
    floats differ under XLA.

    Attributes:
      rate: share of the units that are set to 0; the others are divided by 1 - rate.
      seed: of the masks.
    """

    def __init__(self, rate: float, seed: int = 0, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise UserError(f"dropout rate = {rate}: must be at least 0 and below 1.")
        self.rate = rate
        self.seed = seed
        self.supports_masking = True

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        where = position.current()
        if where is None:  # Keras's `fit` does not say where it is
            return tf.nn.dropout(inputs, self.rate)
        rows, units = tf.shape(inputs)[0], inputs.shape[1:].num_elements()
        # Four uint32 come from each count of the generator, and each row takes a whole number of counts.
        counts = -(-units // 4)
        key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(
            seed=tf.stack([tf.constant(self.seed * 2**31 + _hash(self.name), tf.int64), tf.cast(where.step, tf.int64)])
        )
        first = tf.cast(where.first_row * counts, tf.uint64)
        counter += tf.stack([first, tf.zeros_like(first)])
        bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=tf.stack([rows, 4 * counts]), key=key, counter=counter, alg=1, dtype=tf.uint32
        )
        keep = tf.reshape(bits[:, :units] >= tf.constant(int(self.rate * 2**32), tf.uint32), tf.shape(inputs))
        return tf.where(keep, inputs / (1 - self.rate), tf.zeros([], inputs.dtype))

    def compute_output_shape(self, input_shape):
        return input_shape

    def stock(self) -> keras.layers.Layer:
        """The layer of Keras that does the same in inference: nothing."""
        return keras.layers.Dropout(self.rate, name=self.name, dtype=self.dtype_policy)

    def get_config(self):
        return super().get_config() | {"rate": self.rate, "seed": self.seed}


def _hash(name: str) -> int:
    """31 bits of a name, the same in every process."""
    value = 0
    for byte in name.encode():
        value = (value * 31 + byte) % 2**31
    return value
