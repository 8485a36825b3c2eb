"""Device loops: many steps in one call of the device, their sums read by the host once per call."""

from collections.abc import Callable

import tensorflow as tf

SUMS = ("loss", "top1", "examples", "skipped")
LAST = ("learning_rate", "gradient_norm", "loss_scale")


def make_train_loop(strategy: tf.distribute.Strategy, train_step: Callable) -> Callable:
    """Builds `train_loop(iterator, steps) -> totals`.

    `steps` is an int32 tensor, so that loops of any length share one compiled program. Of the totals, `loss` is the sum
    of the global losses of the steps, `top1` and `examples` count over all steps and replicas, `skipped` counts steps whose
    update was left out (their loss does not count), `learning_rate`, `gradient_norm` and `loss_scale` are those of the last
    step, and `sound_steps` counts the steps before the first that diverged (it equals `steps` in a sound run).
    """

    @tf.function
    def train_loop(iterator, steps):
        totals = {name: tf.zeros([]) for name in SUMS + LAST}
        sound_steps = tf.zeros([], tf.int32)
        for i in tf.range(steps):
            result = strategy.run(train_step, args=next(iterator))
            new = {name: strategy.reduce("SUM", result[name], axis=None) for name in ("loss", "top1", "examples")}
            same = {name: strategy.experimental_local_results(result[name])[0] for name in (*LAST, "skipped", "sound")}
            skipped = same["skipped"] > 0
            sound = (same["sound"] > 0) & (tf.math.is_finite(new["loss"]) | skipped)
            sound_steps += tf.cast(sound & (sound_steps == i), tf.int32)
            new = new | {"loss": tf.where(skipped, 0.0, new["loss"]), "skipped": same["skipped"]}
            totals = {name: totals[name] + new[name] for name in SUMS} | {name: same[name] for name in LAST}
        return totals | {"sound_steps": sound_steps}

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
