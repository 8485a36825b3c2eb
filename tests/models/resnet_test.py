"""ResNet against torchvision's and keras.applications' networks."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.models import resnet

# sum(p.numel() for p in torchvision.models.resnetXX().parameters())
TORCHVISION_PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
}


def trainable_parameters(model):
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)


def random_like(rng, variable):
    """Of a size that keeps activations of order one through fifty layers."""
    if variable.name == "kernel":
        fan_in = np.prod(variable.shape[:-1])
        return rng.normal(0, np.sqrt(2 / fan_in), variable.shape)
    if variable.name in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.5, variable.shape)
    return rng.normal(0, 0.3, variable.shape)


class ResNetTest(parameterized.TestCase):
    @parameterized.parameters("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
    def test_parameters_of_torchvision(self, name):
        model = getattr(resnet, name)(input_size=64)
        self.assertEqual(trainable_parameters(model), TORCHVISION_PARAMETERS[name])
        self.assertEqual(model.name, name)

    def test_interface(self):
        model = resnet.resnet18(input_size=32, num_classes=7)
        self.assertEqual((model.input.dtype, model.input.shape), ("uint8", (None, 32, 32, 3)))
        self.assertEqual((model.output.dtype, model.output.shape), ("float32", (None, 7)))

    def test_stride_of_the_variants(self):
        """v1.5 has it in the 3×3, v1 in the first 1×1; both have the same parameters and feature sizes."""
        for variant, strides in (("v1.5", (1, 2)), ("v1", (2, 1))):
            model = tiny.resnet_model(32, 4, variant=variant)
            found = tuple(model.get_layer(f"stage2_block1_{i}_conv").strides[0] for i in (1, 2))
            self.assertEqual(found, strides)
            self.assertEqual(model.get_layer("stage2_block1_out").output.shape, (None, 4, 4, 32))

    def test_unknown_variant(self):
        with self.assertRaisesRegex(ValueError, r"'v2'.*'v1\.5'"):
            tiny.resnet_model(32, 4, variant="v2")

    def test_zero_init_makes_blocks_identities(self):
        model = tiny.resnet_model(32, 4, zero_init_last_gamma=True)
        gammas = {v.path: v.numpy().max() for v in model.trainable_variables if v.path.endswith("3_bn/gamma")}
        self.assertLen(gammas, 2)
        self.assertEqual(set(gammas.values()), {0.0})

    def test_normalizes_as_torchvision_does(self):
        model = tiny.resnet_model(8, 4)
        pixels = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3)).astype("uint8")
        normalized = keras.Model(model.input, model.get_layer("normalize").output)(pixels)
        expected = (pixels / 255.0 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        np.testing.assert_allclose(normalized, expected, atol=1e-5)

    def test_bfloat16(self):
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy("mixed_bfloat16")
        try:
            model = tiny.resnet_model(32, 4)
        finally:
            keras.config.set_dtype_policy(before)
        self.assertEqual(model.get_layer("stem_conv").compute_dtype, "bfloat16")
        self.assertEqual({v.dtype for v in model.weights}, {"float32"})
        logits = model(np.zeros((2, 32, 32, 3), "uint8"), training=True)
        self.assertEqual(logits.dtype, tf.float32)


class KerasApplicationsTest(absltest.TestCase):
    def test_v1_gives_the_same_logits(self):
        """All weights and statistics random; the oracle's convolution biases go into our moving means."""
        keras.utils.set_random_seed(1)
        oracle = keras.applications.ResNet50(
            weights=None, classes=11, input_shape=(96, 96, 3), classifier_activation=None
        )
        rng = np.random.default_rng(0)
        for layer in oracle.layers:
            layer.set_weights([random_like(rng, v) for v in layer.weights])
        model = resnet.resnet50(96, 11, variant="v1", norm_epsilon=1.001e-5)
        for layer in model.layers:
            if layer.weights and layer.name != "logits":
                layer.set_weights(self.weights_of(oracle, layer.name))
        model.get_layer("logits").set_weights(oracle.get_layer("predictions").get_weights())
        pixels = rng.integers(0, 256, (4, 96, 96, 3)).astype("uint8")
        normalized = (pixels - np.array(resnet.MEAN_RGB)) / np.array(resnet.STDDEV_RGB)
        expected = oracle.predict(normalized.astype("float32"), verbose=0)
        logits = model.predict(pixels, verbose=0)
        self.assertGreater(expected.std(), 0.01)
        self.assertLess(np.abs(logits - expected).max() / np.abs(expected).max(), 1e-4)

    def weights_of(self, oracle, name):
        """The oracle's weights for our layer: 'stage2_block1_0_conv' is its 'conv3_block1_0_conv'."""
        theirs = {"stem_conv": "conv1_conv", "stem_bn": "conv1_bn"}.get(name)
        if theirs is None:
            theirs = f"conv{int(name[5]) + 1}{name[6:]}"
        if name.endswith("conv"):
            return oracle.get_layer(theirs).get_weights()[:1]
        gamma, beta, mean, variance = oracle.get_layer(theirs).get_weights()
        bias = oracle.get_layer(theirs.removesuffix("bn") + "conv").get_weights()[1]
        return [gamma, beta, mean - bias, variance]


if __name__ == "__main__":
    absltest.main()
