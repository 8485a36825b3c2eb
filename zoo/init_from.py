"""Weights to start from: of another run, of a `.keras` file, or of `keras.applications`."""

import ast
import dataclasses
import functools
import inspect
import json
import os
from collections.abc import Sequence

import gin
import keras
import numpy as np
import tensorflow as tf

from zoo.checkpoints import find_checkpoint, restore_network
from zoo.experiment import SIZES, Experiment, create_model
from zoo.guards import UserError, check
from zoo.models.resnet import MEAN_RGB, STDDEV_RGB
from zoo.saving import read_words

APPLICATIONS = "keras.applications"
CAFFE_MEAN_RGB = (123.68, 116.779, 103.939)  # what `keras.applications`' ResNets subtract, after swapping red and blue

Weights = dict[str, list[np.ndarray]]  # of each layer, by its name
Words = tuple[str, ...] | None
# What must be equal in two layers for the weights of one to mean the same in the other.
MEANING = ("strides", "padding", "dilation_rate", "groups", "activation")


@dataclasses.dataclass(frozen=True)
class Source:
    """Weights to start from; and, where they are known, their network, their vocabulary and the names of their classes."""

    weights: Weights
    model: keras.Model | None = None
    vocabulary: Words = None
    labels: Words = None


def load_weights(
    models: Sequence[keras.Model],
    source: str,
    *,
    experiment: Experiment | None = None,
    vocabulary: Words = None,
    labels: Words = None,
) -> str:
    """Copies into each of `models`, all of one kind, the layers of `source` that have the same name and shapes.

    Args:
      models: to be changed.
      source: a `.keras` file; a workdir or a checkpoint of one; or 'keras.applications', whose ImageNet weights Keras
        downloads (ResNet-50, 101 and 152 with `variant = 'v1'`, InceptionV3).
      experiment: that `models` are of; without it no workdir is read, and token ids and classes are taken to be the same.
      vocabulary: word of each token id of `models`. The embedding is taken word by word.
      labels: names of the classes of `models`. Where the source has others, the head is drawn anew.

    Returns:
      What was loaded, and what was not and why, for a person.

    Raises:
      UserError: if there is no such source, nothing of it fits, or it is another network.
    """
    target = models[0]
    found = _read(target, source, experiment)
    weights, without = dict(found.weights), {}
    notes = []
    if labels and found.labels and labels != found.labels:
        without |= {name: "other classes" for name in weights if name.endswith("logits")}
    if experiment is not None and "embedding" in weights:
        if vocabulary and found.vocabulary:
            fresh = target.get_layer("embedding").get_weights()[0]
            weights["embedding"], known = _by_word(fresh, vocabulary, weights["embedding"], found.vocabulary)
            notes.append(f"{known:,} of {len(vocabulary) - 2:,} words of the embedding were there")
            if not known:
                without["embedding"] = "no word in common"
        elif vocabulary or found.vocabulary:
            without["embedding"] = "its vocabulary is not known"
    loaded, fresh = [], [f"{name} ({reason})" for name, reason in without.items()]
    for layer in (layer for layer in target.layers if layer.weights and layer.name not in without):
        shapes = [tuple(weight.shape) for weight in layer.weights]
        theirs = [weight.shape for weight in weights.get(layer.name, [])]
        if theirs == shapes:
            loaded.append(layer.name)
        else:
            fresh.append(f"{layer.name} ({f'{theirs} there, {shapes} here' if theirs else 'not there'})")
    check(
        bool(loaded),
        f"init_from = {source!r}: no layer of it has the name and the shapes of a layer of {target.name}. It holds "
        f"{', '.join(list(weights)[:5])}, …",
    )
    _check_meaning(target, found.model, loaded, source)
    for model in models:
        for name in loaded:
            model.get_layer(name).set_weights(weights[name])
    return "; ".join([f"{len(loaded)} layers from {source}", *notes, f"newly drawn: {', '.join(fresh) or 'none'}"])


def _check_meaning(target: keras.Model, theirs: keras.Model | None, names: list[str], source: str) -> None:
    for name in names if theirs else ():
        here, there = (model.get_layer(name).get_config() for model in (target, theirs))
        odd = [key for key in MEANING if key in here and key in there and _plain(here[key]) != _plain(there[key])]
        check(
            not odd,
            f"init_from = {source!r}: another network: {name} has {odd[:1]} {there.get(odd[0]) if odd else ''} there, "
            f"{here.get(odd[0]) if odd else ''} here. Bind {target.name} as it was there (its variant, for instance).",
        )


def _plain(value):
    return tuple(value) if isinstance(value, list) else value


def _read(target: keras.Model, source: str, experiment: Experiment | None) -> Source:
    if source == APPLICATIONS:
        return Source(_of_applications(target))
    if source.endswith(".keras"):
        try:
            model = keras.models.load_model(source, compile=False)
        except (ValueError, TypeError, OSError, KeyError) as error:
            raise UserError(f"init_from = {source!r}: {str(error).strip().splitlines()[0]}") from error
        return Source(_of_model(model), model, *(_words_beside(source, name) for name in ("vocabulary", "labels")))
    workdir, name = source, None
    if tf.io.gfile.exists(f"{source}.index"):
        workdir, name = os.path.dirname(os.path.dirname(source)), os.path.basename(source)
    record_path = os.path.join(workdir, "experiment.json")
    check(
        experiment is not None and tf.io.gfile.exists(record_path),
        f"init_from = {source!r}: not there. It must be a .keras file, {APPLICATIONS!r} or, in an experiment, the workdir of a "
        "run or a checkpoint in it.",
    )
    with tf.io.gfile.GFile(record_path) as file:
        model = create_model(_experiment_of(json.loads(file.read()), experiment))
    restore_network(model, find_checkpoint(workdir, name))
    words = (read_words(workdir, name) for name in ("vocabulary.txt", "labels.txt"))
    return Source(_of_model(model), model, *words)


def _words_beside(path: str, name: str) -> Words:
    """What `zoo.export` wrote beside a `.keras` file; of the one in a workdir, what the run did."""
    folder, stem = os.path.dirname(path), os.path.basename(path).removesuffix(".keras")
    in_workdir = tf.io.gfile.exists(os.path.join(folder, "experiment.json"))
    return read_words(folder, f"{name}.txt" if in_workdir else f"{stem}.{name}.txt")


def _experiment_of(record: dict[str, str], experiment: Experiment) -> Experiment:
    """An experiment with the network and the sizes of a run, as experiment.json has them."""
    sizes = {field: record.get(f"Experiment.{field}", "None") for field in ("num_classes", *SIZES)}
    sizes = {field: None if value == "None" else int(value) for field, value in sizes.items()}
    call = ast.parse(record["Experiment.model"].removeprefix("@"), mode="eval").body
    options = {}
    if isinstance(call, ast.Call):
        options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        call = call.func
    name = ast.unparse(call).rpartition("/")[2].strip()
    try:
        function = inspect.unwrap(gin.get_configurable(name))
    except ValueError:
        return dataclasses.replace(experiment, **sizes)  # not one that Gin knows: ours, with its sizes
    bound = {key.rpartition("/")[2].partition("."): value for key, value in record.items()}
    bound = {parameter: ast.literal_eval(v) for (own, _, parameter), v in bound.items() if own == name}
    return dataclasses.replace(experiment, **sizes, model=functools.partial(function, **bound | options))


def _of_model(model: keras.Model) -> Weights:
    return {layer.name: layer.get_weights() for layer in model.layers if layer.weights}


def _by_word(
    fresh: np.ndarray, vocabulary: Words, theirs: list[np.ndarray], words: Words
) -> tuple[list[np.ndarray], int]:
    """Rows of an embedding for `vocabulary`, those of the other where it has the word; and how many words it has."""
    if fresh.shape[1:] != theirs[0].shape[1:]:
        return theirs, 0  # of another width: it will not be loaded
    rows = dict(zip(words, theirs[0], strict=False))
    known = np.stack([rows.get(word, row) for word, row in zip(vocabulary, fresh, strict=False)])
    return [np.concatenate([known, fresh[len(known) :]])], sum(word in rows for word in vocabulary[2:])


def _of_applications(target: keras.Model) -> Weights:
    """ImageNet weights of `keras.applications` under the names of our layers, turned to our way of normalizing pixels."""
    builders = {
        "resnet50": keras.applications.ResNet50,
        "resnet101": keras.applications.ResNet101,
        "resnet152": keras.applications.ResNet152,
        "inception_v3": keras.applications.InceptionV3,
    }
    name = target.name
    check(name in builders, f"init_from = {APPLICATIONS!r}: it has no {name}, but {', '.join(builders)}.")
    check(
        name == "inception_v3" or target.get_layer("stage2_block1_1_conv").strides == (2, 2),
        f"init_from = {APPLICATIONS!r}: its ResNets are of the first kind. Bind {name}.variant = 'v1'.",
    )
    try:
        theirs = builders[name](weights="imagenet", classifier_activation=None)
    except Exception as error:  # Keras raises a bare Exception where it can't download
        raise UserError(f"init_from = {APPLICATIONS!r}: {error}") from error
    return _inception(target, theirs) if name == "inception_v3" else _resnet(target, theirs)


def _inception(target: keras.Model, theirs: keras.Model) -> Weights:
    """Convolutions and normalizations in the order in which they were made, which the numbers behind their names tell."""
    weights = {"logits": theirs.get_layer("predictions").get_weights()}
    for kinds in (("Conv2D",), ("BatchNormalization", "BatchNorm")):
        pairs = zip(_numbered(target, kinds), _numbered(theirs, kinds), strict=True)
        weights |= {own.name: other.get_weights() for own, other in pairs}
    return weights


def _numbered(model: keras.Model, kinds: tuple[str, ...]) -> list[keras.layers.Layer]:
    numbers = {
        layer: int("0" + layer.name.rpartition("_")[2]) if layer.name[-1].isdigit() else 0
        for layer in model.layers
        if type(layer).__name__ in kinds and "aux" not in layer.name
    }
    return sorted(numbers, key=numbers.get)


def _resnet(target: keras.Model, theirs: keras.Model) -> Weights:
    """Their 'conv3_block1_0_conv' is our 'stage2_block1_0_conv'; the biases of their convolutions go into our moving means."""
    weights = {"logits": theirs.get_layer("predictions").get_weights()}
    for layer in target.layers:
        if not layer.weights or layer.name == "logits":
            continue
        stem, _, kind = layer.name.rpartition("_")
        other = "conv1" if stem == "stem" else f"conv{int(stem[5]) + 1}{stem[6:]}"
        kernel, bias = theirs.get_layer(f"{other}_conv").get_weights()
        if stem == "stem":
            kernel, bias = _for_our_pixels(kernel, bias)
        if kind == "conv":
            weights[layer.name] = [kernel]
        else:
            gamma, beta, mean, variance = theirs.get_layer(f"{other}_bn").get_weights()
            weights[layer.name] = [gamma, beta, mean - bias, variance]
    return weights


def _for_our_pixels(kernel: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first convolution on (RGB - mean) / deviation, from that on BGR - mean. Our padding is half a grey level off theirs."""
    kernel = kernel[:, :, ::-1]
    shift = np.array(MEAN_RGB) - np.array(CAFFE_MEAN_RGB)
    bias = bias + np.einsum("hwio,i->o", kernel, shift)
    return kernel * np.array(STDDEV_RGB)[:, None], bias
