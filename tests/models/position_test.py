"""Layers are told where they stand, and only inside the block."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.models.position import Position, at, current, warmed


class PositionTest(parameterized.TestCase):
    def test_nested(self):
        outer, inner = (Position(tf.constant(i), tf.constant(0)) for i in (1, 2))
        self.assertIsNone(current())
        with at(outer):
            with self.assertRaises(KeyError), at(inner):
                self.assertIs(current(), inner)
                raise KeyError
            self.assertIs(current(), outer)
        self.assertIsNone(current())

    @parameterized.parameters((0, 0.1), (10, 0.55), (2_239, 2_240 / 2_249), (2_240, 0.996), (10**6, 0.996))
    def test_warmed(self, step, expected):
        np.testing.assert_allclose(warmed(0.996, tf.constant(step, tf.int64)), expected, rtol=1e-5)


if __name__ == "__main__":
    absltest.main()
