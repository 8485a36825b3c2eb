"""The LSTM says what Keras's own says, whatever the padding."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.models.lstm import BidirectionalLSTM

ROWS, TIME, FEATURES, UNITS = 6, 9, 6, 8
# Whole, right-padded, one token, nothing but padding, left-padded, padded in the middle.
MASK = np.array(
    [[1] * 9, [1] * 5 + [0] * 4, [1] + [0] * 8, [0] * 9, [0] * 3 + [1] * 6, [0, 0, 1, 1, 0, 1, 1, 0, 0]], bool
)


def gradients(layer, inputs, mask, upstream, xla=False):
    """Outputs, and gradients of the inputs and of all weights."""

    @tf.function(jit_compile=xla)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, mask=mask, training=True)
            loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * upstream)
        return outputs, *tape.gradient(loss, [x, *[v.value for v in layer.trainable_variables]])

    return [tensor.numpy() for tensor in run(tf.constant(inputs))]


class LstmTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(0)
        self.inputs = rng.normal(size=(ROWS, TIME, FEATURES)).astype("float32")
        self.upstream = rng.normal(size=(ROWS, 2 * UNITS)).astype("float32")
        self.ours = BidirectionalLSTM(UNITS)
        self.ours.build(self.inputs.shape)
        self.ours.set_weights([rng.normal(0, 0.5, v.shape) for v in self.ours.weights])

    @parameterized.parameters(False, True)
    def test_equals_keras(self, xla):
        keras_layer = self.ours.stock()
        keras_layer.build(self.inputs.shape)
        keras_layer.set_weights(self.ours.get_weights())
        ours = gradients(self.ours, self.inputs, tf.constant(MASK), self.upstream, xla)
        theirs = gradients(keras_layer, self.inputs, tf.constant(MASK), self.upstream)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(ours[0][3], np.zeros(2 * UNITS))
        np.testing.assert_array_equal(ours[1][~MASK], 0)  # padding gets no gradient

    def test_training_and_inference_agree(self):
        call = [self.ours(self.inputs, mask=tf.constant(MASK), training=t).numpy() for t in (True, False)]
        np.testing.assert_allclose(*call, rtol=1e-6, atol=1e-7)

    def test_starts_as_keras_does(self):
        layer = BidirectionalLSTM(UNITS)
        layer.build(self.inputs.shape)
        names = ["kernel", "recurrent_kernel", "bias"]
        self.assertEqual([v.name for v in layer.weights], [f"{d}_{n}" for d in ("forward", "backward") for n in names])
        np.testing.assert_array_equal(layer.weights[2], [0] * UNITS + [1] * UNITS + [0] * 2 * UNITS)
        self.assertFalse(np.array_equal(layer.weights[0], layer.weights[3]))
        recurrent = layer.weights[1].numpy()
        np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(UNITS), atol=1e-5)

    @parameterized.parameters(("mixed_bfloat16", 0.03), ("mixed_float16", 0.004))
    def test_mixed_precision(self, policy, tolerance):
        """Outputs and gradients within the rounding of 16 bits of those in float32."""
        mixed = BidirectionalLSTM(UNITS, dtype=policy)
        mixed.build(self.inputs.shape)
        mixed.set_weights(self.ours.get_weights())
        exact = gradients(self.ours, self.inputs, tf.constant(MASK), self.upstream)
        rounded = gradients(mixed, self.inputs, tf.constant(MASK), self.upstream)
        self.assertEqual(mixed(self.inputs).dtype, mixed.compute_dtype)
        for a, b in zip(rounded, exact, strict=True):
            self.assertLess(np.abs(a - b).max(), tolerance * np.abs(b).max())


if __name__ == "__main__":
    absltest.main()
