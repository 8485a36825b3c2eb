"""Device loops: many steps in one call of the device, their sums read by the host once per call."""

from collections.abc import Callable

import tensorflow as tf

SUMS = ("loss", "top1", "examples")
LAST = ("learning_rate", "gradient_norm")


def make_train_loop(strategy: tf.distribute.Strategy, train_step: Callable) -> Callable:
    """Builds `train_loop(iterator, steps) -> totals`.

    `steps` is an int32 tensor, so that loops of any length share one compiled program. Of the totals, `loss` is the sum
    of the global losses of the steps, `top1` and `examples` count over all steps and replicas, `learning_rate` and
    `gradient_norm` are those of the last step, and `finite_steps` counts the steps before the first whose loss or
    gradient was not finite (it equals `steps` in a sound run).
    """

    @tf.function
    def train_loop(iterator, steps):
        totals = {name: tf.zeros([]) for name in SUMS + LAST}
        finite_steps = tf.zeros([], tf.int32)
        for i in tf.range(steps):
            result = strategy.run(train_step, args=next(iterator))
            new = {name: strategy.reduce("SUM", result[name], axis=None) for name in SUMS}
            last = {name: strategy.experimental_local_results(result[name])[0] for name in LAST}
            finite = tf.math.is_finite(new["loss"]) & tf.math.is_finite(last["gradient_norm"])
            finite_steps += tf.cast(finite & (finite_steps == i), tf.int32)
            totals = {name: totals[name] + new[name] for name in SUMS} | last
        return totals | {"finite_steps": finite_steps}

    return train_loop


def make_eval_loop(strategy: tf.distribute.Strategy, eval_step: Callable) -> Callable:
    """Builds `eval_loop(iterator, steps) -> totals`, the sums of `eval_step` over steps and replicas."""

    @tf.function
    def eval_loop(iterator, steps):
        totals = {name: tf.zeros([]) for name in ("loss", "top1", "top5", "examples")}
        for _ in tf.range(steps):
            result = strategy.run(eval_step, args=next(iterator))
            totals = {name: total + strategy.reduce("SUM", result[name], axis=None) for name, total in totals.items()}
        return totals

    return eval_loop
