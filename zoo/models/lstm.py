"""A bidirectional LSTM that reads padded texts as if each stood alone."""

import keras
import tensorflow as tf

from zoo.models.cudnn_lstm import cudnn_lstm


@keras.saving.register_keras_serializable(package="zoo")
class BidirectionalLSTM(keras.layers.Layer):
    """The last states of an LSTM (Hochreiter and Schmidhuber, 1997) that reads forwards and of one that reads backwards.

    From `[batch, time, features]`, with a static time, and a mask `[batch, time]` to `[batch, 2 · units]`. A step whose mask
    is False leaves both states as they are and gets no gradient: the backward direction starts at the last real token,
    wherever the padding stands, and a row without any real token gives zeros. Cells and the arithmetic of gates are float32
    whatever the compute precision.

    Equal to `keras.layers.Bidirectional(keras.layers.LSTM(units))`, with the same weights in the same order, but with a
    gradient of its own: the input projection of all steps is one product before the loop, and the gradient of the
    recurrent weights one product after it, where autodiff makes one of each in every step.

    Attributes:
      units: of each direction.
      cudnn: compute it with cuDNN, on a GPU, in float32 or float16, and not under XLA; the loop runs everywhere.
    """

    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.cudnn = False
        self.supports_masking = True

    @property
    def kernel(self) -> str:
        """What computes it, for the start-up summary."""
        return "cuDNN LSTM" if self.cudnn else "LSTM as a loop over time"

    def build(self, input_shape):
        shapes = {
            "kernel": ([input_shape[-1], 4 * self.units], "glorot_uniform"),
            "recurrent_kernel": ([self.units, 4 * self.units], "orthogonal"),
            "bias": ([4 * self.units], _forget_bias),
        }
        # States, cells and gates of both directions, kept for the backward pass: for the estimate of memory.
        self.kept_elements = 12 * self.units * input_shape[1]
        for direction in ("forward", "backward"):
            for part, (shape, initializer) in shapes.items():
                name = f"{direction}_{part}"
                # Attributes of their own: a checkpoint does not see weights in a list.
                setattr(self, name, self.add_weight(name=name, shape=shape, initializer=initializer))

    def call(self, inputs, mask=None, training=False):
        if mask is None:
            mask = tf.ones(tf.shape(inputs)[:2], tf.bool)
        inputs = tf.transpose(inputs, [1, 0, 2])  # time first, as the loop takes it
        mask = tf.transpose(mask)
        weights = [tf.convert_to_tensor(v) for v in self.weights]
        weights = [weights[:3], weights[3:]]

        def loop():
            return tf.concat(
                [
                    lstm(inputs, *direction, mask, backwards=i == 1, keep=training)
                    for i, direction in enumerate(weights)
                ],
                -1,
            )

        if not self.cudnn:
            return loop()
        # cuDNN knows lengths, not masks: padding that does not stand at the end is left to the loop.
        lengths = tf.math.count_nonzero(mask, 0, dtype=tf.int32)
        at_the_end = tf.reduce_all(mask == tf.transpose(tf.sequence_mask(lengths, inputs.shape[0])))
        return tf.cond(at_the_end, lambda: cudnn_lstm(inputs, weights, lengths), loop)

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], 2 * self.units)

    def stock(self) -> keras.layers.Layer:
        """The layer of Keras with the same weights, in the same order, and the same output."""
        lstm_layer = keras.layers.LSTM(self.units, dtype=self.dtype_policy)
        return keras.layers.Bidirectional(lstm_layer, name=self.name, dtype=self.dtype_policy)

    def get_config(self):
        return super().get_config() | {"units": self.units}


def _forget_bias(shape, dtype=None):
    """Zeros, but ones for the forget gate (Jozefowicz et al., 2015), as in Keras."""
    return tf.repeat(tf.constant([0, 1, 0, 0], dtype), shape[0] // 4)


def lstm(
    inputs: tf.Tensor,
    kernel: tf.Tensor,
    recurrent: tf.Tensor,
    bias: tf.Tensor,
    mask: tf.Tensor,
    *,
    backwards: bool = False,
    keep: bool = True,
) -> tf.Tensor:
    """The last state `[batch, units]` of an LSTM that starts at zero.

    Args:
      inputs: `[time, batch, features]`, with a static time.
      kernel: `[features, 4 · units]`, gates in Keras's order: input, forget, cell, output.
      recurrent: `[units, 4 · units]`.
      bias: `[4 · units]`.
      mask: bool `[time, batch]`; a False step changes nothing.
      backwards: whether to read from the last step to the first.
      keep: whether to keep what the gradient needs; without it there is none.
    """
    projected = tf.linalg.matmul(inputs, kernel) + bias
    mask = mask[..., tf.newaxis]
    if not keep:
        return _forward(projected, recurrent, mask, backwards, keep=False)[0]

    @tf.custom_gradient
    def recurrence(projected, recurrent):
        last, kept = _forward(projected, recurrent, mask, backwards, keep=True)
        return last, lambda upstream: _backward(upstream, recurrent, mask, backwards, kept)

    return recurrence(projected, recurrent)


def _forward(projected, recurrent, mask, backwards, keep):
    """The last state; and of each step the states before it and its gates, each `[time, batch, …]`, if `keep`."""
    steps, units, dtype = projected.shape[0], recurrent.shape[0], projected.dtype
    rows = tf.shape(projected)[1]
    columns = ((dtype, units), (tf.float32, units), (dtype, 4 * units)) if keep else ()
    kept = _arrays(steps, projected.shape[1], *columns)

    def step(i, h, c, kept):
        t = steps - 1 - i if backwards else i
        z = tf.cast(projected[t], tf.float32) + tf.cast(tf.linalg.matmul(h, recurrent), tf.float32)
        z_in, z_forget, z_cell, z_out = tf.split(z, 4, -1)
        gate_in, gate_forget, gate_out = tf.sigmoid(z_in), tf.sigmoid(z_forget), tf.sigmoid(z_out)
        candidate = tf.tanh(z_cell)
        if keep:
            gates = tf.cast(tf.concat([gate_in, gate_forget, candidate, gate_out], -1), dtype)
            kept = tuple(array.write(t, value) for array, value in zip(kept, (h, c, gates), strict=True))
        new_c = gate_forget * c + gate_in * candidate
        new_h = tf.cast(gate_out * tf.tanh(new_c), dtype)
        return i + 1, tf.where(mask[t], new_h, h), tf.where(mask[t], new_c, c), kept

    state = (tf.zeros([rows, units], dtype), tf.zeros([rows, units], tf.float32))
    _, h, _, kept = tf.while_loop(lambda i, *_: i < steps, step, (0, *state, kept), maximum_iterations=steps)
    return h, tuple(array.stack() for array in kept)


def _backward(upstream, recurrent, mask, backwards, kept):
    """Gradients of the projected inputs and of the recurrent weights."""
    states, cells, all_gates = kept
    steps, units, dtype = states.shape[0], recurrent.shape[0], states.dtype
    (d_projected,) = _arrays(steps, states.shape[1], (dtype, 4 * units))

    def step(i, d_h, d_c, d_projected):
        t = i if backwards else steps - 1 - i
        gate_in, gate_forget, candidate, gate_out = tf.split(tf.cast(all_gates[t], tf.float32), 4, -1)
        squashed = tf.tanh(gate_forget * cells[t] + gate_in * candidate)
        d_new = d_c + d_h * gate_out * (1 - tf.square(squashed))
        d_z = tf.concat(
            [
                d_new * candidate * gate_in * (1 - gate_in),
                d_new * cells[t] * gate_forget * (1 - gate_forget),
                d_new * gate_in * (1 - tf.square(candidate)),
                d_h * squashed * gate_out * (1 - gate_out),
            ],
            -1,
        )
        d_z = tf.cast(tf.where(mask[t], d_z, 0.0), dtype)
        before = tf.cast(tf.linalg.matmul(d_z, recurrent, transpose_b=True), tf.float32)
        d_h, d_c = tf.where(mask[t], before, d_h), tf.where(mask[t], d_new * gate_forget, d_c)
        return i + 1, d_h, d_c, d_projected.write(t, d_z)

    d_h = tf.cast(upstream, tf.float32)
    *_, d_projected = tf.while_loop(
        lambda i, *_: i < steps, step, (0, d_h, tf.zeros_like(d_h), d_projected), maximum_iterations=steps
    )
    d_projected = d_projected.stack()
    flat = [tf.reshape(x, [-1, x.shape[-1]]) for x in (states, d_projected)]
    return d_projected, tf.linalg.matmul(*flat, transpose_a=True)


def _arrays(steps, rows, *columns):
    """A tensor array of `steps` matrices of `rows` rows for each (dtype, columns)."""
    return tuple(
        tf.TensorArray(dtype, steps, element_shape=[rows, count], clear_after_read=False) for dtype, count in columns
    )
