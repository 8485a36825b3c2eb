"""What all networks of the list have in common."""

import contextlib
import io
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import zoo
from zoo import gin_config
from zoo.checkpoints import restore_network
from zoo.guards import UserError
from zoo.models import MODELS

SMALL = {
    "inception_v3": {"input_size": 75},
    "bilstm": {"units": 4, "embedding_units": 4, "sequence_length": 5, "vocabulary_size": 9},
}
OPTIONS = {name: {"num_classes": 3} | SMALL.get(name, {"input_size": 32}) for name in zoo.list_models()}


class ModelsTest(parameterized.TestCase):
    @parameterized.parameters("resnet18", "inception_v3", "bilstm")
    def test_a_checkpoint_of_the_network_alone_holds_all_its_weights(self, name):
        function = next(function for function in MODELS if function.__name__ == name)
        model, other = (function(**OPTIONS[name]) for _ in range(2))
        rng = np.random.default_rng(0)
        for variable in model.weights:
            variable.assign(rng.uniform(1, 2, variable.shape))
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(averaged=model).write(os.path.join(folder, "ckpt-1"))
            restore_network(other, path)
        for expected, found in zip(model.weights, other.weights, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=found.path)

    @parameterized.parameters(zoo.list_models())
    def test_created_models_are_of_stock_layers(self, name):
        model = zoo.create_model(name, **OPTIONS[name])
        self.assertEqual(model.output.shape, (None, 3))
        for layer in model.layers:
            self.assertTrue(type(layer).__module__.startswith("keras."), type(layer))

    @parameterized.parameters("resnet18", "bilstm")
    def test_compile_and_fit_save_and_load(self, name):
        keras.utils.set_random_seed(1)
        model = zoo.create_model(name, **OPTIONS[name])
        rng = np.random.default_rng(0)
        inputs = rng.integers(1, 9, (32, *model.input.shape[1:])).astype(model.input.dtype)
        model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(inputs, rng.integers(0, 3, 32), batch_size=16, epochs=15, verbose=0)
        self.assertLess(history.history["loss"][-1], history.history["loss"][0] - 0.1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.models.load_model(path)
        np.testing.assert_array_equal(loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0))

    def test_unknown_name(self):
        with self.assertRaisesRegex(
            UserError, "'resnet51': no such model; did you mean resnet50.* There are resnet18, "
        ):
            zoo.create_model("resnet51")

    @parameterized.parameters(
        ({"input_siez": 32}, "no option 'input_siez'; there are input_size"),
        ({"num_classes": 0}, "num_classes = 0: must be a positive integer"),
        ({"num_classes": "10"}, "num_classes = '10': must be a positive integer"),
        ({"input_size": 32.0}, "input_size = 32.0: must be a positive integer"),
    )
    def test_wrong_options(self, options, message):
        with self.assertRaisesRegex(UserError, message):
            zoo.create_model("resnet18", **options)

    def test_gin_files_of_a_run_do_not_reach_it(self):
        gin_config.parse(["gin/bilstm_tpu.gin"], ["bilstm.units = 8"])
        model = zoo.create_model("bilstm", sequence_length=4, vocabulary_size=9)
        self.assertEqual(model.output.shape, (None, 2))
        self.assertEqual(model.get_layer("bilstm").output.shape, (None, 2048))

    def test_what_is_loaded_is_said(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            path = os.path.join(folder, "a.keras")
            zoo.create_model("resnet18", num_classes=3, input_size=32).save(path)
            zoo.create_model("resnet18", num_classes=4, input_size=32, init_from=path)
        self.assertRegex(out.getvalue(), r"Init from:  \d+ layers from .*a.keras; newly drawn: logits")


if __name__ == "__main__":
    absltest.main()
