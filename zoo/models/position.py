"""Where in the training a forward pass stands, for the layers that must know: dropout and warming averages.

The training step says so while it traces the network; outside of one, nothing is said.
"""

import contextlib
import contextvars
from typing import NamedTuple

import tensorflow as tf


class Position(NamedTuple):
    """Attributes:
    step: int64 scalar, the optimizer step.
    first_row: int64 scalar, the row of the global batch that the first row here is.
    """

    step: tf.Tensor
    first_row: tf.Tensor


_current: contextvars.ContextVar[Position | None] = contextvars.ContextVar("position", default=None)


@contextlib.contextmanager
def at(position: Position):
    """Says where the forward pass inside the block stands."""
    token = _current.set(position)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Position | None:
    """Where this forward pass stands; None outside of a training step."""
    return _current.get()


def warmed(decay: float, step: tf.Tensor) -> tf.Tensor:
    """The decay of a moving average at a step: min(decay, (1 + step) / (10 + step)), so that its start is soon forgotten."""
    n = tf.cast(step, tf.float32)
    return tf.minimum(decay, (1 + n) / (10 + n))
