"""What a run leaves for others: its network as a `.keras` file of stock layers, the names of its classes, its vocabulary."""

import os

import keras
import tensorflow as tf

Words = tuple[str, ...] | None


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


def write_names(prefix: str, labels: Words, vocabulary: Words) -> None:
    """Writes `<prefix>labels.txt` and `<prefix>vocabulary.txt`, a line for each class and word, where there are any."""
    for name, words in (("labels.txt", labels), ("vocabulary.txt", vocabulary)):
        if words is not None:
            with tf.io.gfile.GFile(prefix + name, "w") as file:
                file.write("".join(f"{word}\n" for word in words))


def read_words(folder: str, name: str) -> Words:
    """The lines of a file that `write_names` wrote; None where there is none."""
    path = os.path.join(folder, name)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        return tuple(file.read().removesuffix("\n").split("\n"))


def export_path(workdir: str) -> str:
    """Where a run leaves its network."""
    return os.path.join(workdir, "model.keras")
