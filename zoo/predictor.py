"""A trained network with its preprocessing: encoded images or texts in, probabilities out."""

import os

import keras
import tensorflow as tf

from zoo import gin_config
from zoo.checkpoints import find_checkpoint, restore_network
from zoo.experiment import Experiment, create_model
from zoo.guards import check
from zoo.input_pipelines import images
from zoo.input_pipelines.text import BYTES, bytes_tokenizer, words_layer, words_tokenizer
from zoo.saving import Words, read_words, to_stock_layers, write_names


class Predictor(tf.Module):
    """What a run has learned, in one callable that can be saved as a SavedModel.

    Attributes:
      checkpoint: that the weights are of.
      model: the network, of Keras's own layers.
      labels: names of the classes, where the data had any.
      vocabulary: word of each token id, where words are tokens.
    """

    def __init__(self, checkpoint: str, model: keras.Model, labels: Words = None, vocabulary: Words = None):
        super().__init__()
        self.checkpoint = checkpoint
        self.model = to_stock_layers(model)
        self.labels = labels
        self.vocabulary = vocabulary
        shape = model.input.shape
        self.takes_images = model.input.dtype == "uint8"
        if self.takes_images:
            self._preprocess = lambda encoded: images.eval_image(encoded, shape[1])
        elif vocabulary:
            self._words = words_layer(vocabulary)  # an attribute, so that its table is saved too
            self._preprocess = words_tokenizer(self._words, shape[1])
        else:
            size = model.get_layer("embedding").input_dim
            check(size == BYTES, f"{model.name}: the run has no vocabulary: it was trained on token ids, not on texts.")
            self._preprocess = bytes_tokenizer(shape[1])
        self._input_spec = tf.TensorSpec(shape[1:], model.input.dtype)

    def preprocess(self, raw: tf.Tensor) -> tf.Tensor:
        """One input of the network from the bytes of a JPEG or PNG file, or from a text; string scalar. As in evaluation."""
        return tf.ensure_shape(self._preprocess(raw), self._input_spec.shape)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def __call__(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """`probabilities`, float32 `[batch, num_classes]`, of encoded images or texts, string `[batch]`."""
        batch = tf.map_fn(self.preprocess, inputs, fn_output_signature=self._input_spec)
        return {"probabilities": tf.nn.softmax(self.model(batch, training=False))}

    def save(self, directory: str) -> None:
        """Writes a SavedModel, signature `serving_default`; names of classes go to `assets.extra/labels.txt`.

        Raises:
          UserError: if there is anything in the directory.
        """
        check(
            not (tf.io.gfile.isdir(directory) and tf.io.gfile.listdir(directory)),
            f"{directory}: there is something in it already. Name a new folder.",
        )
        tf.saved_model.save(self, directory, signatures={"serving_default": self.__call__})
        if self.labels:
            extra = os.path.join(directory, "assets.extra")
            tf.io.gfile.makedirs(extra)
            write_names(os.path.join(extra, ""), self.labels, None)


def load_predictor(workdir: str, checkpoint: str | None = None) -> Predictor:
    """The network of a run as evaluated (averaged, where it averages), at its newest checkpoint or at 'ckpt-100'.

    Raises:
      UserError: if the workdir holds no run, or not this checkpoint.
    """
    gin_config.parse([gin_config.written_config(workdir)], written=True)
    experiment = Experiment()
    model = create_model(experiment)
    labels, vocabulary = (read_words(workdir, name) for name in ("labels.txt", "vocabulary.txt"))
    check(
        model.input.dtype == "uint8" or bool(labels),
        f"{workdir}: the run has no words and no names of classes: it was trained on synthetic token ids, not on texts.",
    )
    path = find_checkpoint(workdir, checkpoint)
    restore_network(model, path)
    return Predictor(path, model, labels, vocabulary)
