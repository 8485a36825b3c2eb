"""Timed windows: device work that ends with a value read by the host, and nothing else in them."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

_open = []


@dataclasses.dataclass
class Window:
    """A stretch of device work. `seconds` is its length once it is over."""

    seconds: float | None = None


@contextlib.contextmanager
def window() -> Iterator[Window]:
    """Times what stands inside; it must end with a value of the device that the host has read.

    Raises:
      RuntimeError: from within, where something begins that has no place in a timed window (see `not_in_window`).
    """
    timed = Window()
    _open.append(timed)
    started = time.perf_counter()
    try:
        yield timed
        timed.seconds = time.perf_counter() - started
    finally:
        _open.remove(timed)


class Clock:
    """Seconds of a training, from the moment it first touches its data; time between two starts of one run is left out.

    Args:
      before: what it said when the run ended that is gone on with.
    """

    def __init__(self, before: float = 0.0):
        self._started = time.perf_counter() - before

    def __call__(self) -> float:
        return time.perf_counter() - self._started


def not_in_window(what: str) -> None:
    """Says that `what` begins; inside of a timed window that is an error, since it would be counted as training."""
    if _open:
        raise RuntimeError(f"{what} in a timed window: its time would count as that of the steps.")
