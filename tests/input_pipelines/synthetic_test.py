"""Noise of the right shape, whose labels cover the classes."""

import numpy as np
from absl.testing import absltest

from zoo.input_pipelines.pipeline import Request
from zoo.input_pipelines.synthetic import synthetic


class SyntheticTest(absltest.TestCase):
    def test_images_and_labels(self):
        data = synthetic(Request(data_dir="", input_size=8, num_classes=5, eval_examples=200))
        self.assertEqual((data.train.num_examples, data.evaluation.num_examples), (1_281_167, 200))
        self.assertTrue(data.train.resident)
        images, labels = zip(*map(data.evaluation.decode_eval, data.evaluation.in_order()), strict=True)
        images, labels = np.stack(images), np.stack(labels)
        self.assertEqual((images.shape, images.dtype, labels.dtype), ((200, 8, 8, 3), np.uint8, np.int32))
        self.assertEqual(set(labels.tolist()), set(range(5)))
        self.assertBetween(images.mean(), 125, 130)
        self.assertFalse(np.array_equal(images[0], images[1]))


if __name__ == "__main__":
    absltest.main()
