"""Batch normalization on TensorFlow's fused kernel."""

import keras
import tensorflow as tf

from zoo.models import position


@keras.saving.register_keras_serializable(package="zoo")
class BatchNorm(keras.layers.Layer):
    """Normalizes the channels of `[batch, height, width, channels]` images (Ioffe and Szegedy, 2015, arXiv:1502.03167).

    Keras 3 builds its own layer from moments; this one is the fused kernel of `tf.compat.v1.layers`, which is faster
    on every device. Weights and statistics are float32 whatever the compute precision. Each replica normalizes with the
    statistics of its own rows; the training step averages the moving statistics over replicas. As in the fused
    kernel (and in PyTorch), the moving variance is that of the unbiased estimate.

    Attributes:
      momentum: share of the old moving statistics that each step keeps.
      epsilon: added to the variance.
      warmup: let the momentum grow as min(momentum, (1 + step) / (10 + step)) in training.
      scale: whether there is a gamma.
      synchronized: normalize with the statistics of the whole global batch instead. This needs an all-reduce inside the
        forward pass, which XLA cannot compile under MirroredStrategy.
    """

    def __init__(
        self,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        synchronized: bool = False,
        warmup: bool = False,
        scale: bool = True,
        gamma_initializer: str = "ones",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon
        self.synchronized = synchronized
        self.warmup = warmup
        self.scale = scale
        self.gamma_initializer = gamma_initializer

    @property
    def kernel(self) -> str:
        """What computes it, for the start-up summary."""
        return "batch normalization over all replicas" if self.synchronized else "FusedBatchNormV3"

    def build(self, input_shape):
        def weight(name, initializer, trainable):
            return self.add_weight(
                name=name,
                shape=(input_shape[-1],),
                dtype="float32",
                initializer=initializer,
                trainable=trainable,
                autocast=False,
            )

        self.gamma = weight("gamma", self.gamma_initializer, True) if self.scale else tf.ones([input_shape[-1]])
        self.beta = weight("beta", "zeros", True)
        self.moving_mean = weight("moving_mean", "zeros", False)
        self.moving_variance = weight("moving_variance", "ones", False)

    def call(self, inputs, training=False):
        if not training:
            return self._fused(inputs, self.moving_mean, self.moving_variance, is_training=False).y
        context = tf.distribute.get_replica_context()
        if self.synchronized and context and context.num_replicas_in_sync > 1:
            outputs, mean, variance = self._normalize_over_replicas(inputs, context)
        else:
            nothing = tf.zeros([0], tf.float32)
            fused = self._fused(inputs, nothing, nothing, is_training=True)
            outputs, mean, variance = fused.y, fused.batch_mean, fused.batch_variance
        where = position.current()
        momentum = position.warmed(self.momentum, where.step) if self.warmup and where else self.momentum
        for moving, batch in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(momentum * moving + (1 - momentum) * tf.stop_gradient(batch))
        return outputs

    def _fused(self, inputs, mean, variance, is_training):
        return tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=tf.convert_to_tensor(self.gamma),
            offset=tf.convert_to_tensor(self.beta),
            mean=tf.convert_to_tensor(mean),
            variance=tf.convert_to_tensor(variance),
            epsilon=self.epsilon,
            is_training=is_training,
        )

    def _normalize_over_replicas(self, inputs, context):
        x = tf.cast(inputs, tf.float32)
        moments = tf.stack([tf.reduce_mean(x, [0, 1, 2]), tf.reduce_mean(tf.square(x), [0, 1, 2])])
        moments = context.all_reduce(tf.distribute.ReduceOp.MEAN, moments)
        mean, variance = moments[0], tf.maximum(moments[1] - tf.square(moments[0]), 0)
        y = tf.nn.batch_normalization(
            x, mean, variance, self.beta.value, tf.convert_to_tensor(self.gamma), self.epsilon
        )
        count = tf.cast(tf.size(x) // x.shape[-1] * context.num_replicas_in_sync, tf.float32)
        return tf.cast(y, inputs.dtype), mean, variance * count / tf.maximum(count - 1, 1)

    def compute_output_shape(self, input_shape):
        return input_shape

    def stock(self) -> keras.layers.Layer:
        """The layer of Keras with the same weights, in the same order, and the same output in inference."""
        return keras.layers.BatchNormalization(
            momentum=self.momentum, epsilon=self.epsilon, scale=self.scale, name=self.name, dtype=self.dtype_policy
        )

    def get_config(self):
        options = ("momentum", "epsilon", "synchronized", "warmup", "scale", "gamma_initializer")
        return super().get_config() | {name: getattr(self, name) for name in options}
