"""Optimizers, and learning rates as functions of the step.

A learning-rate function of this file takes `(global_batch_size, total_steps)` and returns a function from the step (an
int64 scalar tensor) to the learning rate (a float32 scalar tensor). Its epochs are those of the published recipe: a
run of another length stretches or compresses the whole recipe, warm-up included, so that a short run still ends where
the recipe ends.
"""

import math
from collections.abc import Callable

import gin
import keras
import tensorflow as tf

Schedule = Callable[[tf.Tensor], tf.Tensor]


@gin.configurable
def sgd(momentum: float = 0.9, nesterov: bool = True) -> keras.optimizers.Optimizer:
    """Stochastic gradient descent with momentum: v = momentum·v - lr·g; w = w + v (Nesterov: w + momentum·v - lr·g)."""
    # The step hands over the learning rate with every update; the optimizer's own is never read.
    return keras.optimizers.SGD(learning_rate=0.0, momentum=momentum, nesterov=nesterov)


class RMSprop(keras.optimizers.RMSprop):
    """Keras's RMSprop, whose mean square starts at 1 as in TensorFlow 1 (and so in the published Inception runs), not at 0."""

    def build(self, variables):
        super().build(variables)
        for velocity in self._velocities:
            velocity.assign(tf.ones(velocity.shape))


@gin.configurable
def rmsprop(decay: float = 0.9, momentum: float = 0.9, epsilon: float = 1.0) -> keras.optimizers.Optimizer:
    """s = decay·s + (1 - decay)·g²; m = momentum·m + lr·g / √(s + epsilon); w = w - m, with s = 1 at the start (Tieleman and
    Hinton, 2012; constants of Szegedy et al., 2015, arXiv:1512.00567, section 8)."""
    return RMSprop(learning_rate=0.0, rho=decay, momentum=momentum, epsilon=epsilon)


@gin.configurable
def adam(beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-8) -> keras.optimizers.Optimizer:
    """Adam (Kingma and Ba, 2014, arXiv:1412.6980): steps of the rate times a ratio of moving averages of g and √g²."""
    return keras.optimizers.Adam(learning_rate=0.0, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)


@gin.configurable(denylist=["global_batch_size", "total_steps"])
def step_decay(
    global_batch_size: int,
    total_steps: int,
    *,
    base_learning_rate: float = 0.1,
    base_batch_size: int = 256,
    warmup_epochs: float = 5,
    boundaries_epochs: tuple[float, ...] = (30, 60, 80),
    decay: float = 0.1,
    recipe_epochs: float = 90,
) -> Schedule:
    """Linear scaling, linear warm-up and steps (Goyal et al., 2017, arXiv:1706.02677; the Cloud TPU reference).

    Args:
      global_batch_size: examples per step.
      total_steps: steps of the run, which `recipe_epochs` are laid over.
      base_learning_rate: learning rate at `base_batch_size`; in proportion at other batch sizes.
      base_batch_size: see `base_learning_rate`.
      warmup_epochs: the rate rises from 0 over these.
      boundaries_epochs: the rate is multiplied by `decay` at each of these.
      decay: see `boundaries_epochs`.
      recipe_epochs: length of the whole recipe.
    """
    peak = base_learning_rate * global_batch_size / base_batch_size

    def learning_rate(step: tf.Tensor) -> tf.Tensor:
        epoch = _recipe_epoch(step, total_steps, recipe_epochs)
        drops = tf.add_n([tf.cast(epoch >= boundary, tf.float32) for boundary in boundaries_epochs])
        return peak * _warmup(epoch, warmup_epochs) * tf.pow(tf.constant(decay, tf.float32), drops)

    return learning_rate


@gin.configurable(denylist=["global_batch_size", "total_steps"])
def cosine_decay(
    global_batch_size: int,
    total_steps: int,
    *,
    base_learning_rate: float = 0.1,
    base_batch_size: int = 256,
    batch_exponent: float = 1.0,
    warmup_epochs: float = 5,
    recipe_epochs: float = 90,
) -> Schedule:
    """Scaling with the batch, linear warm-up, then half a cosine down to 0 (Loshchilov and Hutter, 2016, arXiv:1608.03983).

    See `step_decay` for the other arguments.

    Args:
      batch_exponent: the rate goes with this power of the batch: 1 for gradient descent with momentum, 0.5 for Adam (Malladi et
        al., 2022, arXiv:2205.10287).
    """
    peak = base_learning_rate * (global_batch_size / base_batch_size) ** batch_exponent

    def learning_rate(step: tf.Tensor) -> tf.Tensor:
        epoch = _recipe_epoch(step, total_steps, recipe_epochs)
        progress = tf.clip_by_value((epoch - warmup_epochs) / (recipe_epochs - warmup_epochs), 0.0, 1.0)
        return peak * _warmup(epoch, warmup_epochs) * 0.5 * (1 + tf.cos(math.pi * progress))

    return learning_rate


@gin.configurable(denylist=["global_batch_size", "total_steps"])
def exponential_decay(
    global_batch_size: int,
    total_steps: int,
    *,
    base_learning_rate: float = 0.165,
    base_batch_size: int = 256,
    decay: float = 0.94,
    decay_epochs: float = 3,
    floor: float = 1e-4,
    recipe_epochs: float = 170,
) -> Schedule:
    """Linear scaling, then times `decay` at every `decay_epochs` (Szegedy et al., 2015; the Cloud TPU reference).

    See `step_decay` for the other arguments.

    Args:
      decay: factor of each drop.
      decay_epochs: epochs between drops.
      floor: the least rate, as a share of the first.
    """
    peak = base_learning_rate * global_batch_size / base_batch_size

    def learning_rate(step: tf.Tensor) -> tf.Tensor:
        drops = tf.floor(_recipe_epoch(step, total_steps, recipe_epochs) / decay_epochs)
        return peak * tf.maximum(tf.pow(tf.constant(decay, tf.float32), drops), floor)

    return learning_rate


def _recipe_epoch(step: tf.Tensor, total_steps: int, recipe_epochs: float) -> tf.Tensor:
    # In float64: at 10 million steps float32 counts in whole steps only.
    return tf.cast(tf.cast(step, tf.float64) * (recipe_epochs / total_steps), tf.float32)


def _warmup(epoch: tf.Tensor, warmup_epochs: float) -> tf.Tensor:
    return tf.minimum(epoch / warmup_epochs, 1.0) if warmup_epochs > 0 else tf.ones(())
