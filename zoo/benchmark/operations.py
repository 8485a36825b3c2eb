"""Floating-point operations of a network, counted from its layers: what the mathematics needs, whatever a kernel does."""

import math

import keras
import tensorflow as tf

from zoo.models.lstm import BidirectionalLSTM

RECURRENT = (keras.layers.LSTM, keras.layers.Bidirectional, BidirectionalLSTM)


def forward(model: keras.Model) -> int:
    """Operations of an inference with one example: of its first output, as evaluation and export take it.

    Counted are the products of convolutions, dense and recurrent layers, a multiply-add as two operations; recurrent ones
    for every step of the (static) time dimension. Additions of biases, normalization and activations are left out, as in
    the counts that papers give.

    Raises:
      ValueError: if a layer has a matrix of weights and is none of the above.
    """
    return 2 * sum(count for count, _ in _products(model, model.outputs[:1]))


def training(model: keras.Model) -> int:
    """Operations of forward and backward pass with one example, all outputs included.

    Twice those of the forward pass come on top: the gradients of a layer's weights and of its inputs. The latter are not
    needed where the inputs depend on no weights. What a program computes again to save memory is not counted.

    Raises:
      ValueError: see `forward`.
    """
    return 2 * sum(
        count * (3 if has_input_gradient else 2) for count, has_input_gradient in _products(model, model.outputs)
    )


def _products(model: keras.Model, outputs: list[keras.KerasTensor]) -> list[tuple[int, bool]]:
    """Multiply-adds of each layer on the way to `outputs`, and whether its inputs depend on weights."""
    trained, found = set(), []
    for layer in keras.Model(model.inputs, outputs).layers:
        dependent = any(id(tensor) in trained for tensor in tf.nest.flatten(layer.input))
        if dependent or layer.trainable_weights:
            trained |= {id(tensor) for tensor in tf.nest.flatten(layer.output)}
        count = _multiply_adds(layer)
        if count:
            found.append((count, dependent))
    return found


def _multiply_adds(layer: keras.layers.Layer) -> int:
    if isinstance(layer, keras.Model):
        return sum(count for count, _ in _products(layer, layer.outputs))
    if isinstance(layer, keras.layers.Embedding):
        return 0
    matrices = [weight for weight in layer.weights if len(weight.shape) > 1]
    if not matrices:
        return 0
    if isinstance(layer, RECURRENT):
        return tf.nest.flatten(layer.input)[0].shape[1] * sum(math.prod(weight.shape) for weight in matrices)
    if isinstance(layer, keras.layers.Dense | keras.layers.Conv2D):
        positions = math.prod(layer.output.shape[1:-1])
        return positions * math.prod(layer.kernel.shape)
    raise ValueError(f"{layer.name} ({type(layer).__name__}): its operations can't be counted.")
