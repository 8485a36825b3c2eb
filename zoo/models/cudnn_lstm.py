"""The last states of LSTMs in cuDNN: the fastest there is on an NVIDIA GPU, through TensorFlow's `CudnnRNNV3`.

XLA cannot compile this kernel, and it takes lengths instead of masks; `zoo.models.lstm` chooses.
"""

import tensorflow as tf


def cudnn_lstm(inputs: tf.Tensor, weights: list[list[tf.Tensor]], lengths: tf.Tensor) -> tf.Tensor:
    """The last states `[batch, 2 · units]` of an LSTM that reads forwards and of one that reads backwards.

    Args:
      inputs: `[time, batch, features]`, float32 or float16, padded at the end.
      weights: of both directions, `[kernel, recurrent_kernel, bias]` as in Keras.
      lengths: int32 `[batch]`; a row of length 0 gives zeros.
    """
    some = tf.maximum(lengths, 1)  # cuDNN refuses rows without a step
    backwards = tf.reverse_sequence(inputs, some, seq_axis=0, batch_axis=1)
    states = [_last_state(x, direction, some) for x, direction in zip((inputs, backwards), weights, strict=True)]
    return tf.where(lengths[:, tf.newaxis] > 0, tf.concat(states, -1), tf.zeros([], inputs.dtype))


def _last_state(inputs: tf.Tensor, weights: list[tf.Tensor], lengths: tf.Tensor) -> tf.Tensor:
    recurrent = weights[1]
    zeros = tf.zeros([1, tf.shape(inputs)[1], recurrent.shape[0]], inputs.dtype)
    return tf.raw_ops.CudnnRNNV3(
        input=inputs,
        input_h=zeros,
        input_c=zeros,
        params=packed(*weights),
        sequence_lengths=lengths,
        rnn_mode="lstm",
        is_training=True,
        time_major=True,
    ).output_h[0]


def packed(kernel: tf.Tensor, recurrent: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Weights in cuDNN's order: the matrices of the gates i, f, c, o, each transposed, for the input and then for the state;
    then two sets of biases, of which Keras has the second alone."""
    matrices = [tf.reshape(tf.transpose(gate), [-1]) for w in (kernel, recurrent) for gate in tf.split(w, 4, axis=1)]
    return tf.concat([*matrices, tf.zeros_like(bias), bias], 0)
