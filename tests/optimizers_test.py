"""Learning rates by hand."""

import math

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.optimizers import cosine_decay, exponential_decay, rmsprop, step_decay


class ScheduleTest(parameterized.TestCase):
    @parameterized.parameters(
        (0, 0.0),
        (625, 0.04),  # half an epoch of 1,250 steps: a tenth of the warm-up
        (3_125, 0.2),
        (6_250, 0.4),  # 0.1 per 256 images at 1024
        (37_499, 0.4),
        (37_500, 0.04),
        (75_000, 0.004),
        (100_000, 0.0004),
        (112_499, 0.0004),
    )
    def test_step_decay(self, step, expected):
        rate = step_decay(1024, 90 * 1_250)
        np.testing.assert_allclose(rate(tf.constant(step, tf.int64)), expected, rtol=1e-5, atol=1e-9)

    def test_cosine_decay(self):
        rate = cosine_decay(512, 900, base_learning_rate=0.1, warmup_epochs=5)
        for step in (0, 25, 50, 300, 899, 900):
            epoch = step / 10
            cosine = 0.5 * (1 + math.cos(math.pi * min(max((epoch - 5) / 85, 0), 1)))
            np.testing.assert_allclose(
                rate(tf.constant(step, tf.int64)), 0.2 * min(epoch / 5, 1) * cosine, rtol=1e-4, atol=1e-7
            )

    @parameterized.parameters(
        (0, 0.66), (2_999, 0.66), (3_000, 0.66 * 0.94), (150_000, 0.66 * 0.94**50), (199_999, 0.66 * 0.94**66)
    )
    def test_exponential_decay(self, step, expected):
        rate = exponential_decay(1024, 200_000, recipe_epochs=200)
        np.testing.assert_allclose(rate(tf.constant(step, tf.int64)), expected, rtol=1e-4)

    def test_exponential_decay_has_a_floor(self):
        rate = exponential_decay(256, 1_000, decay=0.1, decay_epochs=1)
        np.testing.assert_allclose(rate(tf.constant(999, tf.int64)), 0.165 * 1e-4, rtol=1e-4)

    def test_a_short_run_has_the_shape_of_the_recipe(self):
        full, short = step_decay(256, 90_000), step_decay(256, 90)
        for epoch in (0, 3, 10, 45, 70, 85):
            np.testing.assert_allclose(
                full(tf.constant(epoch * 1_000, tf.int64)), short(tf.constant(epoch, tf.int64)), rtol=1e-6
            )

    def test_no_warmup(self):
        self.assertAlmostEqual(float(step_decay(256, 90, warmup_epochs=0)(tf.constant(0, tf.int64))), 0.1, places=6)

    def test_exact_at_ten_million_steps(self):
        rate = step_decay(256, 90_000_000)
        below, at = (float(rate(tf.constant(30_000_000 + i, tf.int64))) for i in (-100, 0))
        self.assertAlmostEqual(below, 0.1, places=6)
        self.assertAlmostEqual(at, 0.01, places=6)


class RMSpropTest(absltest.TestCase):
    def test_by_hand(self):
        """s starts at 1; epsilon is under the root."""
        variable = keras.Variable([2.0, -1.0])
        optimizer = rmsprop(decay=0.9, momentum=0.5, epsilon=1.0)
        optimizer.build([variable])
        w, s, m = np.array([2.0, -1.0]), np.ones(2), np.zeros(2)
        for g in (np.array([1.0, 3.0]), np.array([-2.0, 0.5])):
            optimizer.update_step(tf.constant(g, tf.float32), variable, 0.1)
            s = 0.9 * s + 0.1 * g**2
            m = 0.5 * m + 0.1 * g / np.sqrt(s + 1.0)
            w = w - m
        np.testing.assert_allclose(variable, w, rtol=1e-6)


if __name__ == "__main__":
    absltest.main()
