"""Networks: functions of their hyperparameters that return plain `keras.Model`s, from raw inputs to float32 logits."""

import difflib
import inspect
import numbers

import keras

from zoo.guards import check
from zoo.models.bilstm import bilstm
from zoo.models.inception_v3 import inception_v3
from zoo.models.resnet import resnet18, resnet34, resnet50, resnet101, resnet152

MODELS = (resnet18, resnet34, resnet50, resnet101, resnet152, inception_v3, bilstm)


def list_models() -> list[str]:
    """Names of the networks, for `create_model`."""
    return [model.__name__ for model in MODELS]


def create_model(name: str, *, init_from: str | None = None, **options) -> keras.Model:
    """A network of Keras's own layers, to `compile`, `fit`, `save` and load without zoo.

    Args:
      name: one of `list_models()`.
      init_from: weights to start from: a `.keras` file or 'keras.applications'; see `zoo.init_from`. What was loaded is printed.
      **options: of its function: `num_classes`, `input_size` of images; `sequence_length`, `vocabulary_size` of texts; …

    Returns:
      A model with one output, float32 logits `[batch, num_classes]`: losses need `from_logits=True`. Images come in as uint8
      `[batch, input_size, input_size, 3]`, RGB; texts as int32 token ids `[batch, sequence_length]`, 0 for padding. What an
      experiment's own loop adds to a network (auxiliary loss, averaged weights, dropout by position) is not in it.

    Raises:
      UserError: if there is no such network, or the weights do not fit.
    """
    from zoo.experiment import SIZES
    from zoo.init_from import load_weights
    from zoo.saving import to_stock_layers

    functions = {model.__name__: model for model in MODELS}
    close = difflib.get_close_matches(name, functions, 1)
    check(
        name in functions,
        f"{name!r}: no such model{f'; did you mean {close[0]}?' if close else ''}. There are {', '.join(functions)}.",
    )
    function = inspect.unwrap(functions[name])  # not what Gin files bind: a plain function's defaults
    known = inspect.signature(function).parameters
    for option, value in options.items():
        check(option in known, f"{name}: no option {option!r}; there are {', '.join(known)}.")
        size = option in ("num_classes", *SIZES)
        check(
            not size or (isinstance(value, numbers.Integral) and value >= 1),
            f"{option} = {value!r}: must be a positive integer.",
        )
    model = function(**options)
    if init_from is not None:
        print(f"Init from:  {load_weights([model], init_from)}")
    return to_stock_layers(model)
