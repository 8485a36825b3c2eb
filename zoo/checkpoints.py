"""Checkpoints of a run: save, keep the newest few, restore."""

import os
import re
import sys

import keras
import tensorflow as tf

from zoo import timing
from zoo.guards import UserError, check, first_line
from zoo.step import State


class Checkpoints:
    """The checkpoints under `<workdir>/checkpoints`, each named after its step, `ckpt-<step>`.

    Which there are, the files themselves say; TensorFlow's list of them, the file `checkpoint`, is written for others alone.
    """

    def __init__(self, state: State, workdir: str, keep: int):
        self._state, self._keep = state, keep
        self._workdir, self._folder = workdir, os.path.join(workdir, "checkpoints")
        self._checkpoint = state.checkpoint()
        self._checkpoint.save_counter.assign(0)  # TensorFlow's own: to restore makes it, to write does not
        self.latest = next(reversed(self.paths()), None)

    latest: str | None
    """Path of the newest checkpoint, or of the one that was restored or saved last; None in a new run."""

    def paths(self) -> list[str]:
        """The checkpoints that lie here, the newest last."""
        return checkpoint_paths(self._workdir)

    def restore(self) -> int:
        """Restores the newest checkpoint that is sound, if there is any; returns the step to go on from.

        Raises:
          UserError: if the checkpoint is of another network or optimizer, or if all are damaged.
        """
        paths = self.paths()
        for path in reversed(paths):
            try:
                self._read(path)
            except (IndexError, tf.errors.OpError) as error:
                print(f"Warning:    {path} is damaged ({first_line(error)}) and left out.", file=sys.stderr, flush=True)
                continue
            self.latest = path
            return self.step()
        check(
            not paths,
            f"{self._folder}: damaged, all {len(paths)} checkpoints. Put sound ones there, or choose another --workdir to "
            "start anew.",
        )
        return self.step()

    def _read(self, path: str) -> None:
        status = None
        try:
            status = self._checkpoint.restore(path)
            status.assert_consumed()
        except (AssertionError, ValueError) as error:
            if status is not None:
                status.expect_partial()  # else TensorFlow logs a line for every value
            raise UserError(
                f"{path}: does not fit this experiment ({first_line(error)}). The workdir holds another experiment; choose "
                "another --workdir."
            ) from error

    def save(self) -> str:
        """Writes a checkpoint of the current step, deletes the oldest beyond those to keep; returns its path."""
        timing.not_in_window("a checkpoint")
        path = os.path.join(self._folder, f"ckpt-{self.step()}")
        self._checkpoint.write(path)
        paths = [*(other for other in self.paths() if other != path), path]
        self._list(paths[-self._keep :])
        for other in paths[: -self._keep]:
            for file in tf.io.gfile.glob([other + ".index", other + ".data-?????-of-?????"]):
                tf.io.gfile.remove(file)
        self.latest = path
        return path

    def _list(self, paths: list[str]) -> None:
        *_, newest = names = [os.path.basename(path) for path in paths]
        lines = [f'model_checkpoint_path: "{newest}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
        path = os.path.join(self._folder, "checkpoint")
        with tf.io.gfile.GFile(path + ".part", "w") as file:
            file.write("".join(line + "\n" for line in lines))
        tf.io.gfile.rename(path + ".part", path, overwrite=True)

    def step(self) -> int:
        """Updates made so far."""
        return int(tf.distribute.get_strategy().experimental_local_results(self._state.step)[0])


def checkpoint_paths(workdir: str) -> list[str]:
    """The checkpoints of a run, the newest last."""
    folder = os.path.join(workdir, "checkpoints")
    names = (os.path.basename(path) for path in tf.io.gfile.glob(os.path.join(folder, "ckpt-*.index")))
    steps = sorted(int(found[1]) for name in names if (found := re.fullmatch(r"ckpt-(\d+)\.index", name)))
    return [os.path.join(folder, f"ckpt-{step}") for step in steps]


def find_checkpoint(workdir: str, name: str | None = None) -> str:
    """The path of a checkpoint of a run.

    Args:
      workdir: of the run.
      name: 'ckpt-100', or '100'; None takes the newest.

    Raises:
      UserError: if it is not there, naming those that are.
    """
    there = {os.path.basename(path): path for path in checkpoint_paths(workdir)}
    check(bool(there), f"{workdir}: no checkpoint in it. Name the --workdir of a run that has written one.")
    wanted = list(there)[-1] if name is None else f"ckpt-{name.removeprefix('ckpt-')}"
    check(wanted in there, f"{workdir}: no {wanted} in it; there are {', '.join(there)}.")
    return there[wanted]


def restore_network(model: keras.Model, path: str) -> None:
    """Restores the evaluated network (averaged weights, where they are averaged) of a checkpoint.

    Raises:
      UserError: if the checkpoint is of another network.
    """
    status = None
    try:
        status = tf.train.Checkpoint(averaged=model).read(path)  # restore would ask for a save counter
        status.assert_existing_objects_matched()
    except (AssertionError, ValueError) as error:
        raise UserError(f"{path}: does not fit {model.name} ({first_line(error)}).") from error
    except (IndexError, tf.errors.OpError) as error:
        raise UserError(f"{path}: damaged ({first_line(error)}). Name another with --checkpoint.") from error
    finally:
        if status is not None:
            status.expect_partial()


def step_of(path: str) -> int:
    """The step of a checkpoint, from its name."""
    return int(path.rpartition("-")[2])
