"""Operations of networks, against counts of others and by hand."""

import keras
from absl.testing import absltest, parameterized

import zoo
from zoo.benchmark import operations
from zoo.models import bilstm, inception_v3


class OperationsTest(parameterized.TestCase):
    # torchvision.models' documentation of its weights: GFLOPS there are 10^9 multiply-adds.
    @parameterized.parameters(
        ("resnet18", 224, 1.814),
        ("resnet34", 224, 3.664),
        ("resnet50", 224, 4.089),
        ("resnet101", 224, 7.801),
        ("resnet152", 224, 11.514),
        ("inception_v3", 299, 5.713),
    )
    def test_torchvision(self, name, size, giga_multiply_adds):
        model = zoo.create_model(name, num_classes=1000, input_size=size)
        self.assertAlmostEqual(operations.forward(model) / 2e9, giga_multiply_adds, delta=0.0015)

    def test_training_by_hand(self):
        """The images need no gradient; the dense layer's inputs do."""
        images = keras.Input((8, 8, 3))
        x = keras.layers.Conv2D(4, 3, strides=2, padding="same")(images)
        x = keras.layers.BatchNormalization()(x)
        model = keras.Model(images, keras.layers.Dense(5)(keras.layers.Flatten()(x)))
        conv, dense = 16 * 3 * 3 * 3 * 4, 64 * 5
        self.assertEqual(operations.forward(model), 2 * (conv + dense))
        self.assertEqual(operations.training(model), 2 * (2 * conv + 3 * dense))

    def test_recurrent_by_hand(self):
        """Each step of each direction multiplies the word and the state; zoo's layer counts as Keras's own."""
        model = bilstm(sequence_length=7, num_classes=3, vocabulary_size=50, units=8, embedding_units=4)
        lstm, logits = 7 * 2 * (4 + 8) * 4 * 8, 16 * 3
        self.assertEqual(operations.forward(model), 2 * (lstm + logits))
        self.assertEqual(operations.training(model), 6 * (lstm + logits))
        stock = zoo.create_model(
            "bilstm", num_classes=3, sequence_length=7, vocabulary_size=50, units=8, embedding_units=4
        )
        self.assertEqual(operations.training(stock), operations.training(model))

    def test_the_auxiliary_head_is_trained_only(self):
        with_head, without = inception_v3(75, 10), zoo.create_model("inception_v3", num_classes=10, input_size=75)
        self.assertEqual(operations.forward(with_head), operations.forward(without))
        self.assertGreater(operations.training(with_head), operations.training(without))

    def test_a_layer_that_is_not_known(self):
        images = keras.Input((8, 8, 3))
        model = keras.Model(images, keras.layers.DepthwiseConv2D(3, name="odd")(images))
        with self.assertRaisesRegex(ValueError, "odd .DepthwiseConv2D.: its operations can't be counted"):
            operations.forward(model)


if __name__ == "__main__":
    absltest.main()
