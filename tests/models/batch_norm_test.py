"""The fused layer against Keras's own."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.models.batch_norm import BatchNorm


class BatchNormTest(parameterized.TestCase):
    def pair(self, **options):
        ours, theirs = BatchNorm(**options), keras.layers.BatchNormalization(**options)
        rng = np.random.default_rng(0)
        for layer in (ours, theirs):
            layer.build((None, 4, 4, 6))
        weights = [rng.uniform(0.5, 1.5, 6) for _ in range(4)]
        ours.set_weights(weights)
        theirs.set_weights(weights)
        return ours, theirs, tf.constant(rng.normal(2, 3, (8, 4, 4, 6)), tf.float32)

    def test_training_equals_keras(self):
        ours, theirs, x = self.pair(momentum=0.9, epsilon=1e-3)
        results = []
        for layer in (ours, theirs):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, training=True)
                loss = tf.reduce_sum(y**3)
            gradients = tape.gradient(loss, [x, layer.gamma.value, layer.beta.value])
            results.append([y, *gradients, layer.moving_mean])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)

    def test_moving_variance_is_unbiased(self):
        ours, _, x = self.pair(momentum=0.9, epsilon=1e-3)
        before = ours.moving_variance.numpy()
        ours(x, training=True)
        expected = 0.9 * before + 0.1 * x.numpy().reshape(-1, 6).var(0, ddof=1)
        np.testing.assert_allclose(ours.moving_variance, expected, rtol=1e-5)

    def test_inference_equals_keras_and_stock(self):
        ours, theirs, x = self.pair(momentum=0.9, epsilon=1e-3)
        np.testing.assert_allclose(ours(x, training=False), theirs(x, training=False), rtol=1e-5, atol=1e-5)
        stock = ours.stock()
        stock.build(x.shape)
        stock.set_weights(ours.get_weights())
        np.testing.assert_allclose(ours(x, training=False), stock(x, training=False), rtol=1e-5, atol=1e-5)

    @parameterized.parameters("mixed_bfloat16", "mixed_float16")
    def test_low_precision_keeps_float32_statistics(self, policy):
        layer = BatchNorm(dtype=policy)
        y = layer(tf.random.stateless_normal([8, 4, 4, 6], [1, 2], 100.0, 1.0), training=True)
        self.assertEqual(y.dtype, policy.removeprefix("mixed_"))
        self.assertEqual({v.dtype for v in layer.weights}, {"float32"})
        np.testing.assert_allclose(layer.moving_mean, np.full(6, 10.0), rtol=0.02)

    def test_synchronized_statistics_are_those_of_the_global_batch(self):
        strategy = tf.distribute.MirroredStrategy(
            ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
        )
        x = tf.random.stateless_normal([8, 2, 2, 3], [3, 4], 1.0, 2.0)
        with strategy.scope():
            layer = BatchNorm(synchronized=True)
            layer.build(x.shape)
        alone = BatchNorm()
        alone.build(x.shape)
        weights, statistics = (
            [v.numpy() for v in vs] for vs in (alone.trainable_variables, alone.non_trainable_variables)
        )

        def replica(part):
            y, new = layer.stateless_call(weights, statistics, part, training=True)
            return y, new

        parts = strategy.experimental_distribute_values_from_function(
            lambda context: x[context.replica_id_in_sync_group * 4 :][:4]
        )
        y, new = tf.function(lambda: strategy.run(replica, args=(parts,)))()
        expected, expected_new = alone.stateless_call(weights, statistics, x, training=True)
        np.testing.assert_allclose(tf.concat(strategy.experimental_local_results(y), 0), expected, rtol=1e-4, atol=1e-4)
        for a, b in zip(new, expected_new, strict=True):
            np.testing.assert_allclose(strategy.experimental_local_results(a)[0], b, rtol=1e-4)

    def test_config_round_trip(self):
        layer = BatchNorm(momentum=0.8, epsilon=1e-4, synchronized=True, gamma_initializer="zeros", name="n")
        again = BatchNorm.from_config(layer.get_config())
        self.assertEqual(again.get_config(), layer.get_config())


if __name__ == "__main__":
    absltest.main()
