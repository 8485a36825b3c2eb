"""What a device loop reports."""

import tensorflow as tf
from absl.testing import absltest

from zoo.input_pipelines.pipeline import Resident
from zoo.loop import make_eval_loop, make_train_loop
from zoo.strategy import create_strategy


def result(loss, norm, skipped=0.0):
    return {
        "loss": loss,
        "top1": tf.ones([]),
        "examples": tf.constant(4.0),
        "learning_rate": tf.constant(0.5),
        "gradient_norm": norm,
        "loss_scale": tf.constant(8.0),
        "skipped": skipped,
        "sound": tf.cast(tf.math.is_finite(norm), tf.float32),
    }


class TrainLoopTest(absltest.TestCase):
    def run_loop(self, losses, norms, replicas=2):
        strategy = create_strategy("cpu", cpu_replicas=replicas).strategy
        with strategy.scope():
            step = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

        def train_step(batch):
            i = tf.convert_to_tensor(step)
            step.assign_add(1)
            return result(tf.gather(tf.constant(losses), i) + 0 * batch, tf.gather(tf.constant(norms), i))

        batch = strategy.experimental_distribute_values_from_function(lambda context: tf.ones([]))
        totals = make_train_loop(strategy, train_step)(Resident((batch,)), tf.constant(len(losses)))
        return {name: float(value) for name, value in totals.items()}

    def test_sums_over_steps_and_replicas(self):
        totals = self.run_loop([1.0, 2.0, 3.0], [7.0, 8.0, 9.0])
        self.assertEqual(totals["loss"], 12)  # each of 2 replicas holds its share of the global loss
        self.assertEqual((totals["top1"], totals["examples"]), (6, 24))
        self.assertEqual((totals["learning_rate"], totals["gradient_norm"]), (0.5, 9))
        self.assertEqual(totals["sound_steps"], 3)

    def test_names_the_first_step_that_is_not_finite(self):
        nan, inf = float("nan"), float("inf")
        self.assertEqual(self.run_loop([1.0, nan, 3.0], [1.0, 1.0, 1.0])["sound_steps"], 1)
        self.assertEqual(self.run_loop([1.0, 2.0, 3.0], [1.0, 1.0, inf])["sound_steps"], 2)
        self.assertEqual(self.run_loop([inf, 2.0, 3.0], [1.0, 1.0, 1.0])["sound_steps"], 0)


class EvalLoopTest(absltest.TestCase):
    def test_sums_over_steps_and_replicas(self):
        strategy = create_strategy("cpu", cpu_replicas=2).strategy
        batch = strategy.experimental_distribute_values_from_function(lambda context: tf.constant(2.0))
        loop = make_eval_loop(strategy, lambda x: {name: x for name in ("loss", "top1", "top5", "examples")})
        totals = loop(Resident((batch,)), tf.constant(3))
        self.assertEqual({name: float(v) for name, v in totals.items()}, dict.fromkeys(totals, 12.0))


if __name__ == "__main__":
    absltest.main()
