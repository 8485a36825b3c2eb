"""What a set of fake data was made with, as JSON beside its files: another set is never taken for it."""

import json
import os

import tensorflow as tf

from zoo.guards import UserError, check, first_line


def read_manifest(path: str) -> dict | None:
    """The manifest at `path`; None if there is none.

    Raises:
      UserError: if it is damaged.
    """
    if not tf.io.gfile.exists(path):
        return None
    try:
        with tf.io.gfile.GFile(path) as file:
            found = json.loads(file.read())
    except (ValueError, tf.errors.OpError) as error:
        raise UserError(f"{path}: damaged ({first_line(error)}). Delete {os.path.dirname(path)}.") from error
    check(isinstance(found, dict), f"{path}: damaged (no JSON object). Delete {os.path.dirname(path)}.")
    return found


def check_manifest(path: str, found: dict, wanted: dict, what: str) -> None:
    """Checks that a set on disk is the one that is wanted; `what` names its kind.

    Raises:
      UserError: naming what differs.
    """
    names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    check(
        not names,
        f"{os.path.dirname(path)} holds another {what}: "
        + "; ".join(f"{name} is {found.get(name)} there, {wanted.get(name)} here" for name in names)
        + ". Choose another directory, or delete this one.",
    )


def write_manifest(path: str, manifest: dict) -> None:
    """Writes it whole or not at all."""
    with tf.io.gfile.GFile(path + ".part", "w") as file:
        file.write(json.dumps(manifest, indent=2) + "\n")
    tf.io.gfile.rename(path + ".part", path, overwrite=True)
