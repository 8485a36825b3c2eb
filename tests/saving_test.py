"""The exported file is of stock layers and says what the network says."""

import os
import subprocess
import sys
import tempfile

import keras
import numpy as np
from absl.testing import absltest

from tests import tiny
from zoo.saving import export_keras, to_stock_layers


class ExportTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        keras.utils.set_random_seed(1)
        self.model = tiny.resnet_model(32, 4)
        rng = np.random.default_rng(0)
        for layer in self.model.layers:
            layer.set_weights([rng.uniform(0.2, 0.8, w.shape) for w in layer.get_weights()])
        self.pixels = rng.integers(0, 256, (3, 32, 32, 3)).astype("uint8")

    def test_no_layer_of_our_own(self):
        for layer in to_stock_layers(self.model).layers:
            self.assertTrue(type(layer).__module__.startswith("keras."), type(layer))

    def test_loads_without_zoo_in_safe_mode(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            export_keras(self.model, path)
            self.assertEqual(os.listdir(folder), ["model.keras"])
            np.save(os.path.join(folder, "pixels.npy"), self.pixels)
            program = (
                "import sys, numpy, keras\n"
                "model = keras.models.load_model('model.keras', safe_mode=True)\n"
                "numpy.save('logits.npy', model.predict(numpy.load('pixels.npy'), verbose=0))\n"
                "assert 'zoo' not in sys.modules\n"
            )
            subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True)
            logits = np.load(os.path.join(folder, "logits.npy"))
        expected = self.model.predict(self.pixels, verbose=0)
        self.assertLess(np.abs(logits - expected).max() / np.abs(expected).max(), 1e-5)


if __name__ == "__main__":
    absltest.main()
