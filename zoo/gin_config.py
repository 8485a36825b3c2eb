"""Gin files: where they are found, how they are read, and what the workdir keeps of them."""

import importlib
import logging
import os
import tempfile
from collections.abc import Sequence

import gin

from zoo import gin_checks
from zoo.guards import UserError, check

# Where a file is looked for, in this order: as given, from the root of a checkout, and inside an installed package.
PACKAGE = os.path.dirname(os.path.abspath(__file__))
SEARCH_PATHS = ("", os.path.dirname(PACKAGE), PACKAGE)


def find_file(name: str) -> str:
    """The path that a --gin_file means.

    Raises:
      UserError: if there is none, naming those that zoo brings along.
    """
    for path in SEARCH_PATHS:
        candidate = os.path.join(path, name)
        if os.path.isfile(candidate):
            return candidate
    raise UserError(f"--gin_file={name}: no such file. zoo brings {', '.join(shipped_files())}.")


def shipped_files() -> list[str]:
    """The runnable `.gin` files that zoo brings along, as they are given to --gin_file."""
    for path in SEARCH_PATHS[1:]:
        folder = os.path.join(path, "gin")
        if os.path.isdir(folder):
            return [f"gin/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".gin")]
    return []


def devices_asked(gin_files: Sequence[str], bindings: Sequence[str]) -> dict:
    """`accelerator`, `allow_cpu` and `tpu` of the experiment, read without TensorFlow.

    Raises:
      UserError: if a file is missing or can't be parsed.
    """
    statements = gin_checks.read([find_file(name) for name in gin_files], bindings, find_file)
    final = gin_checks.effective(statements.bindings)
    asked = {"accelerator": "auto", "allow_cpu": False, "tpu": "local"}
    for name in asked:
        if f"Experiment.{name}" in final:
            value = final[f"Experiment.{name}"].value
            macro = final.get(value.name) if isinstance(value, gin_checks.Macro) else None
            asked[name] = macro.value if macro else value
    return asked


def parse(gin_files: Sequence[str], bindings: Sequence[str] = (), written: bool = False) -> list[str]:
    """Reads files, then bindings, into Gin's configuration; what comes later wins.

    Everything is checked first, strictly; see `zoo.gin_checks`.

    Args:
      gin_files: see `find_file`.
      bindings: one per string.
      written: whether the files are of a workdir, and so may hold what nothing uses any more.

    Returns:
      Lines for a person: the files and bindings received, and what overrides what.

    Raises:
      UserError: if a file is missing or anything in it is wrong.
    """
    paths = [find_file(name) for name in gin_files]
    statements = gin_checks.read(paths, bindings, find_file)
    # Imported for what they register with Gin.
    import zoo.experiment
    import zoo.input_pipelines.synthetic
    import zoo.input_pipelines.text
    import zoo.input_pipelines.tfrecords
    import zoo.models
    import zoo.optimizers  # noqa: F401

    for module in statements.imports:
        importlib.import_module(module)
    gin_checks.check_bindings(statements.bindings, paths if written else ())
    gin.clear_config()
    for path in SEARCH_PATHS[1:]:
        gin.add_config_file_search_path(path)
    # Gin logs an error for each place where an include is not; all of them were found above.
    logging.disable(logging.ERROR)
    try:
        for path in paths:
            gin.parse_config_file(path)
        gin.parse_config(list(bindings))
    finally:
        logging.disable(logging.NOTSET)
    return [
        "Gin files:  " + ", ".join(map(gin_checks.relative, paths)),
        *(f"Gin flag:   {binding}" for binding in bindings),
        *(f"Overridden: {line}" for line in gin_checks.overrides(statements.bindings)),
    ]


def written_config(workdir: str) -> str:
    """The path of the configuration of the run in a workdir, as it was parsed; of a remote one, of a copy here.

    Raises:
      UserError: if there is none.
    """
    path = os.path.join(workdir, "config.gin")
    if "://" in workdir:
        import tensorflow as tf

        if tf.io.gfile.exists(path):
            copy = os.path.join(tempfile.mkdtemp(prefix="zoo-"), "config.gin")
            tf.io.gfile.copy(path, copy)
            path = copy
    check(
        os.path.isfile(path),
        f"--workdir={workdir}: no run in it ({path} is missing). Name the --workdir of a training.",
    )
    return path


def write(workdir: str) -> None:
    """Writes the configuration as parsed and as operative so far into the workdir."""
    import tensorflow as tf

    tf.io.gfile.makedirs(workdir)
    for name, text in (("config.gin", gin.config_str()), ("operative_config.gin", gin.operative_config_str())):
        with tf.io.gfile.GFile(os.path.join(workdir, name), "w") as file:
            file.write(text)


def default_workdir(gin_files: Sequence[str], rehearsal: bool) -> str:
    """`runs/<stem of the first file>`, with `-smoke` behind it in a rehearsal."""
    stem = os.path.splitext(os.path.basename(gin_files[0]))[0]
    return os.path.join("runs", stem + ("-smoke" if rehearsal else ""))
