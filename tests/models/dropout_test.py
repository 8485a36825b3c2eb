"""Masks follow from seed, name, step and row alone."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.guards import UserError
from zoo.models.dropout import Dropout
from zoo.models.position import Position, at


def mask(rows=8, units=10, step=3, first_row=0, rate=0.4, seed=1, name="d", jit_compile=False):
    layer = Dropout(rate, seed=seed, name=name)

    @tf.function(jit_compile=jit_compile)
    def call(x, step, first_row):
        with at(Position(step, first_row)):
            return layer(x, training=True)

    return call(tf.ones([rows, units]), tf.constant(step, tf.int64), tf.constant(first_row, tf.int64)).numpy()


class DropoutTest(parameterized.TestCase):
    @parameterized.parameters(1, 3, 4, 10, 1024)
    def test_rows_of_the_global_batch(self, units):
        whole = mask(units=units)
        parts = [mask(rows=2, units=units, first_row=row) for row in (0, 2, 4, 6)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        np.testing.assert_array_equal(mask(units=units, jit_compile=True), whole)

    def test_everything_in_the_key_counts(self):
        base = mask()
        for change in ({"step": 4}, {"seed": 2}, {"name": "e"}, {"first_row": 8}):
            self.assertFalse(np.array_equal(mask(**change), base), change)

    def test_rate_and_scale(self):
        values, counts = np.unique(mask(rows=200, units=500), return_counts=True)
        np.testing.assert_allclose(values, [0, 1 / 0.6], rtol=1e-6)
        self.assertAlmostEqual(counts[0] / counts.sum(), 0.4, delta=0.01)

    def test_rows_and_columns_are_independent(self):
        kept = mask(rows=300, units=300) > 0
        for a, b in ((kept[:-1], kept[1:]), (kept[:, :-1], kept[:, 1:]), (kept[:-1], mask(300, 300, step=4)[1:] > 0)):
            self.assertAlmostEqual(np.mean(a & b), 0.36, delta=0.01)

    def test_inference_and_rate_zero_change_nothing(self):
        x = tf.ones([2, 3])
        np.testing.assert_array_equal(Dropout(0.5)(x, training=False), x)
        np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)
        np.testing.assert_array_equal(Dropout(0.5).stock()(x, training=False), x)

    def test_in_keras_fit_too(self):
        self.assertEqual(np.unique(Dropout(0.5)(tf.ones([100, 10]), training=True)).tolist(), [0, 2])

    def test_a_rate_out_of_range(self):
        with self.assertRaisesRegex(UserError, "rate = 1.0: must be at least 0 and below 1"):
            Dropout(1.0)


if __name__ == "__main__":
    absltest.main()
