"""Runs that start from the weights of others."""

import contextlib
import functools
import io
import os
import tempfile
from unittest import mock

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests import tiny
from tests.models import inception_v3_test, resnet_test
from zoo.checkpoints import find_checkpoint
from zoo.experiment import create_model
from zoo.guards import UserError
from zoo.init_from import load_weights
from zoo.input_pipelines.text import fake_text, text_files
from zoo.models import bilstm, inception_v3, resnet18, resnet50
from zoo.saving import export_keras, read_words, write_names
from zoo.train_and_evaluate import train_and_evaluate


def weights(model, layer):
    return model.get_layer(layer).get_weights()


class InitFromTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, name, **changes):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            result = train_and_evaluate(
                tiny.experiment(**{"train_steps": 2} | changes),
                workdir=os.path.join(self.folder, name),
                data_dir=os.path.join(self.folder, f"data-{name}"),
            )
        return result, said.getvalue()

    def test_a_run_a_checkpoint_and_a_keras_file_give_the_same(self):
        first, _ = self.train("first", checkpoint_every_steps=1)
        trained = keras.models.load_model(first.keras_file)
        for source in (first.workdir, first.checkpoint, first.keras_file):
            experiment = tiny.experiment(seed=1)
            model = create_model(experiment)
            load_weights([model], source, experiment=experiment)
            for layer in model.layers:
                for found, expected in zip(layer.get_weights(), weights(trained, layer.name), strict=True):
                    np.testing.assert_array_equal(found, expected)
        earlier = create_model(tiny.experiment())
        load_weights([earlier], find_checkpoint(first.workdir, "ckpt-1"), experiment=tiny.experiment())
        self.assertGreater(np.abs(weights(earlier, "logits")[0] - weights(trained, "logits")[0]).max(), 0)

    def test_a_new_head_where_the_classes_differ(self):
        """With a rate of zero, the second run ends as it began: with the body of the first and a head of its own."""
        first, _ = self.train("first")
        still = functools.partial(lambda rate, **_: lambda step: rate, 0.0)
        options = {"num_classes": 3, "learning_rate": still, "average_decay": 0.5}
        second, said = self.train("second", init_from=first.workdir, **options)
        self.assertRegex(said, r"Init from:  \d+ layers from .*first; newly drawn: logits \(\[\(32, 4\), .*\(32, 3\)")
        before, after = (keras.models.load_model(result.keras_file) for result in (first, second))
        np.testing.assert_array_equal(weights(after, "stem_conv")[0], weights(before, "stem_conv")[0])
        _, said = self.train("second", init_from=first.workdir, **options)  # a finished run is not started again
        self.assertNotIn("Init from", said)

    def test_words_keep_their_rows_in_another_vocabulary(self):
        text = functools.partial(tiny.text_experiment, data=fake_text, num_classes=2, vocabulary_size=400)
        first, _ = self.train("first", **vars(text()) | {"train_steps": 2})
        other = text(train_examples=48, seed=1)
        second, said = self.train("second", **vars(other) | {"train_steps": 1, "init_from": first.workdir})
        self.assertIn("newly drawn: none", said)
        words, rows = [], []
        for result in (first, second):
            with open(os.path.join(result.workdir, "vocabulary.txt")) as file:
                words.append(file.read().split("\n"))
            rows.append(weights(keras.models.load_model(result.keras_file), "embedding")[0])
        self.assertNotEqual(words[0], words[1])
        moved = [word for word in words[1][2:40] if word in words[0] and words[0].index(word) != words[1].index(word)]
        self.assertNotEmpty(moved)
        for word in moved:  # one small step apart
            np.testing.assert_allclose(rows[1][words[1].index(word)], rows[0][words[0].index(word)], atol=0.02)

    def texts(self, *, words=("good", "fine", "bad", "poor"), labels=("neg", "pos"), **changes):
        """An experiment on texts of two classes, in files of its own."""
        folder = tempfile.mkdtemp(dir=self.folder)
        for name in ("train", "validation"):
            with open(os.path.join(folder, f"{name}.tsv"), "w") as file:
                file.write("text\tlabel\n")
                file.writelines(f"{words[i % 4]} {words[i % 4]}\t{labels[i % 2]}\n" for i in range(32))
        data = functools.partial(lambda request, folder: text_files(request.in_directory(folder)), folder=folder)
        return vars(tiny.text_experiment(data=data, num_classes=2, train_examples=32, eval_examples=32)) | changes

    def test_classes_of_other_names_get_a_new_head(self):
        first, _ = self.train("first", **self.texts())
        _, said = self.train("same", **self.texts(init_from=first.workdir))
        self.assertIn("4 of 4 words of the embedding were there; newly drawn: none", said)
        _, said = self.train("other", **self.texts(labels=("a_good", "z_bad"), init_from=first.workdir))
        self.assertIn("newly drawn: logits (other classes)", said)

    def test_words_that_are_new_are_counted(self):
        first, _ = self.train("first", **self.texts())
        _, said = self.train("a", **self.texts(words=("good", "new", "newer", "newest"), init_from=first.workdir))
        self.assertIn("1 of 4 words of the embedding were there; newly drawn: none", said)
        _, said = self.train("b", **self.texts(words=("n1", "n2", "n3", "n4"), init_from=first.workdir))
        self.assertIn("newly drawn: embedding (no word in common)", said)
        # The same words, but room for fewer ids.
        _, said = self.train("c", **self.texts(vocabulary_size=20, init_from=first.workdir))
        self.assertIn("4 of 4 words of the embedding were there; newly drawn: none", said)

    def test_the_words_of_an_exported_file_go_with_it(self):
        first, _ = self.train("first", **self.texts())
        out = os.path.join(self.folder, "network.keras")
        export_keras(keras.models.load_model(first.keras_file), out)
        _, said = self.train("without", **self.texts(init_from=out))
        self.assertIn("newly drawn: embedding (its vocabulary is not known)", said)
        write_names(
            out.removesuffix("keras"), *(read_words(first.workdir, f"{n}.txt") for n in ("labels", "vocabulary"))
        )
        _, said = self.train("with", **self.texts(init_from=out))
        self.assertIn("4 of 4 words of the embedding were there; newly drawn: none", said)

    def test_a_run_with_other_units(self):
        """Its own network is built to read it; what has other shapes is drawn anew."""
        model = functools.partial(bilstm, units=4, embedding_units=8)
        first, _ = self.train("first", **self.texts(model=model))
        _, said = self.train("second", **self.texts(init_from=first.workdir))
        self.assertRegex(said, r"words of the embedding were there; newly drawn: bilstm \(.*\), logits \(")

    def test_another_variant_is_another_network(self):
        path = os.path.join(self.folder, "v1.keras")
        export_keras(resnet50(32, 10, variant="v1"), path)
        with self.assertRaisesRegex(
            UserError, r"another network: stage2_block1_1_conv has \['strides'\] .2, 2. there, .1, 1. here"
        ):
            load_weights([resnet50(32, 10)], path)
        load_weights([resnet50(32, 10, variant="v1")], path)

    def test_keras_applications_resnet(self):
        rng = np.random.default_rng(0)
        keras.utils.set_random_seed(1)
        theirs = keras.applications.ResNet50(
            weights=None, classes=7, classifier_activation=None, input_shape=(96, 96, 3)
        )
        for layer in theirs.layers:
            layer.set_weights([resnet_test.random_like(rng, v) for v in layer.weights])
        model = resnet50(96, 7, variant="v1", norm_epsilon=1.001e-5)
        with mock.patch.object(keras.applications, "ResNet50", return_value=theirs) as builder:
            said = load_weights([model], "keras.applications")
        self.assertEqual(builder.call_args.kwargs["weights"], "imagenet")
        self.assertIn("newly drawn: none", said)
        pixels = rng.integers(0, 256, (4, 96, 96, 3)).astype("uint8")
        expected = theirs.predict(keras.applications.resnet.preprocess_input(pixels.astype("float32")), verbose=0)
        difference = np.abs(model.predict(pixels, verbose=0) - expected).max() / np.abs(expected).max()
        self.assertLess(difference, 2e-3)  # the padding differs by half a grey level

    def test_keras_applications_inception(self):
        rng = np.random.default_rng(0)
        keras.utils.set_random_seed(1)
        theirs = keras.applications.InceptionV3(
            weights=None, classes=7, classifier_activation=None, input_shape=(75, 75, 3)
        )
        for layer in theirs.layers:
            layer.set_weights([inception_v3_test.random_like(rng, v) for v in layer.weights])
        model = inception_v3(75, 7)
        with mock.patch.object(keras.applications, "InceptionV3", return_value=theirs):
            said = load_weights([model], "keras.applications")
        self.assertNotIn("logits", said.replace("aux_logits", ""))
        pixels = rng.integers(0, 256, (4, 75, 75, 3)).astype("uint8")
        expected = theirs.predict(keras.applications.inception_v3.preprocess_input(pixels.astype("float32")), verbose=0)
        difference = np.abs(model.predict(pixels, verbose=0)[0] - expected).max() / np.abs(expected).max()
        self.assertLess(difference, 1e-4)

    @parameterized.parameters(
        (resnet50, "keras.applications", "ResNets are of the first kind. Bind resnet50.variant = 'v1'"),
        (resnet18, "keras.applications", "it has no resnet18, but resnet50"),
        (resnet18, "nowhere.keras", "nowhere.keras"),
        (resnet18, "nowhere", "'nowhere': not there. It must be"),
    )
    def test_refused(self, function, source, message):
        with self.assertRaisesRegex(UserError, message):
            load_weights([function(32, 3)], source, experiment=tiny.experiment())

    def test_nothing_fits(self):
        path = os.path.join(self.folder, "text.keras")
        export_keras(bilstm(5, 2, 9, units=4, embedding_units=4), path)
        with self.assertRaisesRegex(UserError, "no layer of it has the name and the shapes.* It holds embedding"):
            load_weights([tiny.resnet_model(16, 3)], path)

    def test_a_mistake_leaves_no_workdir(self):
        with self.assertRaises(UserError):
            self.train("first", init_from="nowhere")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    absltest.main()
