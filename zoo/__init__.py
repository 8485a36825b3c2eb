"""zoo: a Keras/TensorFlow model zoo and accelerator benchmark. Importing it does not import TensorFlow."""

from collections.abc import Sequence

__version__ = "0.1.0"


def train(gin_files: Sequence[str], bindings: Sequence[str] = (), workdir: str | None = None, data_dir: str = "data"):
    """Trains in this process what `python -m zoo.train` trains; see `zoo.launch.launch`.

    It may be called again and again, with other devices and precisions: nothing of one run is left for the next.

    Returns:
      A `zoo.train_and_evaluate.Result`: the last rows of metrics, and where checkpoints and the `.keras` file are.

    Raises:
      zoo.guards.UserError: on a mistake; its text says the value, the rule and the fix.
    """
    from zoo.launch import launch

    return launch(
        [gin_files] if isinstance(gin_files, str) else gin_files, bindings, workdir=workdir, data_dir=data_dir
    )


def list_models() -> list[str]:
    """Names of the networks, for `create_model`."""
    from zoo import models

    return models.list_models()


def create_model(name: str, **options):
    """A network of Keras's own layers, to `compile` and `fit`; see `zoo.models.create_model`."""
    from zoo import models

    return models.create_model(name, **options)
