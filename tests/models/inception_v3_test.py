"""InceptionV3 against that of keras.applications."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from zoo.guards import UserError
from zoo.models.inception_v3 import inception_v3
from zoo.saving import to_stock_layers


def by_number(model, kind):
    """Layers of a class, in the order in which they were made: 'conv2d_7' or 'conv_7'."""
    layers = [layer for layer in model.layers if type(layer).__name__ in kind and "aux" not in layer.name]
    return sorted(layers, key=lambda layer: int("0" + layer.name.rpartition("_")[2]) if layer.name[-1].isdigit() else 0)


def random_like(rng, variable):
    if variable.name == "kernel":
        return rng.normal(0, np.sqrt(2 / np.prod(variable.shape[:-1])), variable.shape)
    if variable.name == "moving_variance":
        return rng.uniform(0.5, 1.5, variable.shape)
    return rng.normal(0, 0.3, variable.shape)


class InceptionTest(parameterized.TestCase):
    def test_gives_the_logits_of_keras_applications(self):
        """All weights and statistics random."""
        keras.utils.set_random_seed(1)
        size, classes, rng = 139, 11, np.random.default_rng(0)
        oracle = keras.applications.InceptionV3(
            weights=None, classes=classes, input_shape=(size, size, 3), classifier_activation=None
        )
        model = inception_v3(size, classes)
        pairs = [
            *zip(by_number(oracle, ("Conv2D",)), by_number(model, ("Conv2D",)), strict=True),
            *zip(by_number(oracle, ("BatchNormalization",)), by_number(model, ("BatchNorm",)), strict=True),
            (oracle.get_layer("predictions"), model.get_layer("logits")),
        ]
        self.assertLen(pairs, 94 + 94 + 1)
        for theirs, ours in pairs:
            weights = [random_like(rng, v) for v in theirs.weights]
            theirs.set_weights(weights)
            ours.set_weights(weights)
        pixels = rng.integers(0, 256, (4, size, size, 3)).astype("uint8")
        expected = oracle.predict(pixels / 127.5 - 1, verbose=0)
        logits, _ = model.predict(pixels, verbose=0)
        self.assertGreater(expected.std(), 0.01)
        self.assertLess(np.abs(logits - expected).max() / np.abs(expected).max(), 1e-4)

    @parameterized.parameters(75, 96, 139, 299, 330)
    def test_any_size_from_75(self, size):
        model = inception_v3(size, 7)
        self.assertEqual([tuple(o.shape) for o in model.outputs], [(None, 7), (None, 7)])
        self.assertEqual({o.dtype for o in model.outputs}, {"float32"})
        grid = model.get_layer("aux_pool").output.shape[1]
        self.assertEqual(grid, {75: 1, 96: 1, 139: 1, 299: 5, 330: 5}[size])

    def test_parameters(self):
        """keras.applications' 23,817,352, and the auxiliary head's."""
        model = inception_v3()
        auxiliary = [v for v in model.trainable_variables if "aux" in v.path]
        count = lambda variables: sum(int(np.prod(v.shape)) for v in variables)  # noqa: E731
        self.assertEqual(count(model.trainable_variables) - count(auxiliary), 23_817_352)
        self.assertEqual(count(auxiliary), 768 * 128 + 128 + 25 * 128 * 768 + 768 + 768 * 1000 + 1000)

    def test_too_small(self):
        with self.assertRaisesRegex(UserError, "input_size = 74: InceptionV3 needs at least 75"):
            inception_v3(74, 10)

    def test_one_output_of_stock_layers_is_exported(self):
        model = inception_v3(75, 5)
        stock = to_stock_layers(model)
        self.assertLen(stock.outputs, 1)
        self.assertFalse([layer.name for layer in stock.layers if "aux" in layer.name])
        pixels = np.random.default_rng(0).integers(0, 256, (2, 75, 75, 3)).astype("uint8")
        np.testing.assert_allclose(
            stock.predict(pixels, verbose=0), model.predict(pixels, verbose=0)[0], rtol=1e-4, atol=1e-5
        )


if __name__ == "__main__":
    absltest.main()
