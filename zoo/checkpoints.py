"""Checkpoints of a run: save, keep the newest few, restore."""

import os

import tensorflow as tf

from zoo.guards import UserError
from zoo.step import State


class Checkpoints:
    """The checkpoints under `<workdir>/checkpoints`, each named after its step, `ckpt-<step>`."""

    def __init__(self, state: State, workdir: str, keep: int):
        self._state = state
        self._manager = tf.train.CheckpointManager(
            state.checkpoint(), os.path.join(workdir, "checkpoints"), max_to_keep=keep
        )

    @property
    def latest(self) -> str | None:
        """Path of the newest checkpoint; None in a new run."""
        return self._manager.latest_checkpoint

    def restore(self) -> int:
        """Restores the newest checkpoint, if there is one; returns the step to go on from.

        Raises:
          UserError: if the checkpoint is of another network or optimizer.
        """
        if self.latest:
            status = None
            try:
                status = self._manager.checkpoint.restore(self.latest)
                status.assert_consumed()
            except (AssertionError, ValueError, tf.errors.OpError) as error:
                if status is not None:
                    status.expect_partial()  # else TensorFlow logs a line for every value
                raise UserError(
                    f"{self.latest}: does not fit this experiment ({str(error).strip().splitlines()[0][:300]}). The workdir "
                    "holds another experiment; choose another --workdir."
                ) from error
        return self.step()

    def save(self) -> str:
        """Writes a checkpoint of the current step; returns its path."""
        return self._manager.save(checkpoint_number=self.step())

    def step(self) -> int:
        """Updates made so far."""
        return int(tf.distribute.get_strategy().experimental_local_results(self._state.step)[0])
