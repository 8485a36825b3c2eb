"""Weights to start from: of another run, of a `.keras` file, or of `keras.applications`."""

import dataclasses
import json
import os
from collections.abc import Sequence

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


def load_weights(
    models: Sequence[keras.Model], source: str, *, experiment: Experiment | None = None, vocabulary: Words = None
) -> str:
    """Copies into each of `models`, all of one kind, the layers of `source` that have the same name and shapes.

    Args:
      models: to be changed.
      source: a `.keras` file; a workdir or a checkpoint of one; or 'keras.applications', whose ImageNet weights Keras
        downloads (ResNet-50, 101 and 152 with `variant = 'v1'`, InceptionV3).
      experiment: that `models` are of; without it no workdir is read.
      vocabulary: word of each token id of `models`. Where the source has another, the embedding is taken word by word.

    Returns:
      What was loaded, and what was not and why, for a person.

    Raises:
      UserError: if there is no such source, or nothing of it fits.
    """
    target = models[0]
    weights, words = _read(target, source, experiment)
    if words and vocabulary and words != vocabulary:
        fresh = target.get_layer("embedding").get_weights()[0]
        weights["embedding"] = [_by_word(fresh, vocabulary, weights["embedding"][0], words)]
    loaded, fresh = [], []
    for layer in (layer for layer in target.layers if layer.weights):
        shapes = [tuple(weight.shape) for weight in layer.weights]
        found = [weight.shape for weight in weights.get(layer.name, [])]
        if found == shapes:
            loaded.append(layer.name)
        else:
            fresh.append(f"{layer.name} ({f'{found} there, {shapes} here' if found else 'not there'})")
    check(
        bool(loaded),
        f"init_from = {source!r}: no layer of it has the name and the shapes of a layer of {target.name}. It holds "
        f"{', '.join(list(weights)[:5])}, …",
    )
    for model in models:
        for name in loaded:
            model.get_layer(name).set_weights(weights[name])
    return f"{len(loaded)} layers from {source}; newly drawn: {', '.join(fresh) or 'none'}"


def _read(target: keras.Model, source: str, experiment: Experiment | None) -> tuple[Weights, Words]:
    """The weights of a source and, where it has one, its vocabulary."""
    if source == APPLICATIONS:
        return _of_applications(target), None
    if source.endswith(".keras"):
        try:
            model = keras.models.load_model(source, compile=False)
        except (ValueError, TypeError, OSError, KeyError) as error:
            raise UserError(f"init_from = {source!r}: {str(error).strip().splitlines()[0]}") from error
        return _of_model(model), read_words(os.path.dirname(source), "vocabulary.txt")
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
        record = json.loads(file.read())
    sizes = {field: record.get(f"Experiment.{field}", "None") for field in ("num_classes", *SIZES)}
    sizes = {field: None if value == "None" else int(value) for field, value in sizes.items()}
    other = create_model(dataclasses.replace(experiment, **sizes))
    restore_network(other, find_checkpoint(workdir, name))
    return _of_model(other), read_words(workdir, "vocabulary.txt")


def _of_model(model: keras.Model) -> Weights:
    return {layer.name: layer.get_weights() for layer in model.layers if layer.weights}


def _by_word(fresh: np.ndarray, vocabulary: Words, found: np.ndarray, words: Words) -> np.ndarray:
    """Rows of an embedding for `vocabulary`: where the other has the word, the row that it has for it."""
    if fresh.shape[1:] != found.shape[1:]:
        return found  # of another width: it will not be loaded
    rows = dict(zip(words, found, strict=False))
    known = np.stack([rows.get(word, row) for word, row in zip(vocabulary, fresh, strict=False)])
    return np.concatenate([known, fresh[len(known) :]])


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
