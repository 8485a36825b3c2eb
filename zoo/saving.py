"""What a run leaves for others: its network as a `.keras` file of stock layers, the names of its classes, its vocabulary."""

import os

import keras
import tensorflow as tf

from zoo.input_pipelines.pipeline import Data


def to_stock_layers(model: keras.Model) -> keras.Model:
    """The same network, weights included, of Keras's own layers: each layer of zoo is replaced by its `stock()`.

    Of a network with auxiliary heads, the first output alone remains.
    """
    model = keras.Model(model.input, tf.nest.flatten(model.output)[0], name=model.name)

    def clone(layer: keras.layers.Layer) -> keras.layers.Layer:
        return layer.stock() if hasattr(layer, "stock") else layer.__class__.from_config(layer.get_config())

    stock = keras.models.clone_model(model, clone_function=clone)
    stock.set_weights([v.numpy() for v in model.weights])
    return stock


def export_keras(model: keras.Model, path: str) -> None:
    """Writes `model` to `path`, a `.keras` file: uint8 images in, float32 logits out. An old file stays until it is whole."""
    part = path.removesuffix(".keras") + ".part.keras"
    to_stock_layers(model).save(part)
    tf.io.gfile.rename(part, path, overwrite=True)


def write_names(workdir: str, data: Data) -> None:
    """Writes the names of classes and the vocabulary of the data into a workdir, a line each, where there are any."""
    for name, words in (("labels.txt", data.labels), ("vocabulary.txt", data.vocabulary)):
        if words is not None:
            with tf.io.gfile.GFile(os.path.join(workdir, name), "w") as file:
                file.write("".join(f"{word}\n" for word in words))


def read_words(workdir: str, name: str) -> tuple[str, ...] | None:
    """The lines of 'labels.txt' or 'vocabulary.txt'; None where a run has none."""
    path = os.path.join(workdir, name)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        return tuple(file.read().removesuffix("\n").split("\n"))


def export_path(workdir: str) -> str:
    """Where a run leaves its network."""
    return os.path.join(workdir, "model.keras")
