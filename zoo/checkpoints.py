"""Checkpoints of a run: save, keep the newest few, restore."""

import os

import keras
import tensorflow as tf

from zoo.guards import UserError, check
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


def has_checkpoint(workdir: str) -> bool:
    """Whether a run has written one there."""
    return bool(tf.io.gfile.glob(_pattern(workdir)))


def find_checkpoint(workdir: str, name: str | None = None) -> str:
    """The path of a checkpoint of a run.

    Args:
      workdir: of the run.
      name: 'ckpt-100', or '100'; None takes the newest.

    Raises:
      UserError: if it is not there, naming those that are.
    """
    steps = sorted(step_of(path.removesuffix(".index")) for path in tf.io.gfile.glob(_pattern(workdir)))
    check(bool(steps), f"{workdir}: no checkpoint in it. Name the --workdir of a run that has written one.")
    wanted = f"ckpt-{steps[-1]}" if name is None else f"ckpt-{name.removeprefix('ckpt-')}"
    there = [f"ckpt-{step}" for step in steps]
    check(wanted in there, f"{workdir}: no {wanted} in it; there are {', '.join(there)}.")
    return os.path.join(workdir, "checkpoints", wanted)


def restore_network(model: keras.Model, path: str) -> None:
    """Restores the evaluated network (averaged weights, where they are averaged) of a checkpoint.

    Raises:
      UserError: if the checkpoint is of another network.
    """
    status = None
    try:
        status = tf.train.Checkpoint(averaged=model).restore(path)
        status.assert_existing_objects_matched()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        first = str(error).strip().splitlines()[0][:300]
        raise UserError(f"{path}: does not fit {model.name} ({first}).") from error
    finally:
        if status is not None:
            status.expect_partial()


def _pattern(workdir: str) -> str:
    return os.path.join(workdir, "checkpoints", "ckpt-*.index")


def step_of(path: str) -> int:
    """The step of a checkpoint, from its name."""
    return int(path.rpartition("-")[2])
