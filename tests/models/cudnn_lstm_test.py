"""cuDNN's LSTM: traced, since no GPU is here to run it."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from zoo.models.cudnn_lstm import cudnn_lstm, packed
from zoo.models.lstm import BidirectionalLSTM

ROWS, TIME, FEATURES, UNITS = 6, 9, 6, 8


class CudnnTest(absltest.TestCase):
    def test_traces_and_packs(self):
        """Its shapes and types hold, and its weights are packed as Keras packs them."""
        from keras.src.backend.tensorflow.rnn import _standardize_cudnn_weights

        layer = BidirectionalLSTM(UNITS)
        layer.build((ROWS, TIME, FEATURES))
        kernel, recurrent, bias = (v.value for v in layer.weights[:3])
        theirs = _standardize_cudnn_weights(
            weights=tf.split(kernel, 4, axis=1) + tf.split(recurrent, 4, axis=1),
            biases=tf.split(tf.concat([tf.zeros_like(bias), bias], 0), 8),
            shape=tf.constant([-1]),
            transpose_weights=True,
        )
        np.testing.assert_array_equal(packed(kernel, recurrent, bias), theirs)
        weights = [[v.value for v in layer.weights[i : i + 3]] for i in (0, 3)]
        graph = tf.function(lambda x, lengths: cudnn_lstm(x, weights, lengths)).get_concrete_function(
            tf.TensorSpec([TIME, ROWS, FEATURES]), tf.TensorSpec([ROWS], tf.int32)
        )
        self.assertEqual(graph.output_shapes, [ROWS, 2 * UNITS])


if __name__ == "__main__":
    absltest.main()
