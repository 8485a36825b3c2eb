"""The text classifier: padding changes nothing, and its exported twin says the same."""

import keras
import numpy as np
from absl.testing import absltest

from zoo.guards import UserError
from zoo.models.bilstm import bilstm
from zoo.saving import to_stock_layers


def small(sequence_length):
    keras.utils.set_random_seed(3)
    return bilstm(sequence_length, 5, 50, units=16, embedding_units=8)


class BilstmTest(absltest.TestCase):
    def test_padded_to_32_and_to_128(self):
        rng = np.random.default_rng(0)
        texts = np.zeros((6, 32), "int32")
        for row, length in zip(texts, (32, 20, 7, 1, 0, 31), strict=True):
            row[:length] = rng.integers(1, 50, length)
        short, long = small(32), small(128)
        long.set_weights(short.get_weights())
        expected = short(texts).numpy()
        for padding in ((0, 96), (96, 0), (40, 56)):
            logits = long(np.pad(texts, ((0, 0), padding))).numpy()
            np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-6)
        self.assertTrue(np.isfinite(expected).all())
        np.testing.assert_allclose(expected[4], short.get_layer("logits").bias, atol=1e-7)
        self.assertGreater(np.abs(expected[0] - expected[1]).max(), 1e-3)

    def test_stock_layers_say_the_same(self):
        model = small(12)
        tokens = np.random.default_rng(0).integers(0, 50, (7, 12)).astype("int32")
        stock = to_stock_layers(model)
        for layer in stock.layers:
            self.assertTrue(type(layer).__module__.startswith("keras."), type(layer))
        np.testing.assert_allclose(stock.predict(tokens, verbose=0), model.predict(tokens, verbose=0), atol=1e-6)

    def test_parameters_of_the_full_one(self):
        model = bilstm(16, 2, 20_000)
        by_hand = 20_000 * 128 + 2 * 4 * 1024 * (128 + 1024 + 1) + 2 * (2048 + 1)
        self.assertEqual(model.count_params(), by_hand)

    def test_no_room_for_words(self):
        with self.assertRaisesRegex(UserError, "vocabulary_size = 1"):
            bilstm(16, 2, 1)


if __name__ == "__main__":
    absltest.main()
