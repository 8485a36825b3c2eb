"""Crops against a decode of the whole image."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.input_pipelines import images


def photo(height, width):
    """A JPEG whose red grows to the right and whose green grows downwards, so that a crop can be told from its pixels."""
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([255 * x / (width - 1), 255 * y / (height - 1), 0 * x + 128], -1).astype("uint8")
    return tf.io.encode_jpeg(pixels, quality=100, chroma_downsampling=False)


def window(image, height, width):
    """The part of `photo` that an image shows: top, left, bottom, right, in pixels."""
    red, green = image[..., 0].astype(float), image[..., 1].astype(float)
    columns, rows = red.mean(0) / 255 * (width - 1), green.mean(1) / 255 * (height - 1)
    return rows.min(), columns.min(), rows.max(), columns.max()


class EvalImageTest(parameterized.TestCase):
    @parameterized.parameters((375, 500), (500, 375), (128, 128))
    def test_central_square(self, height, width):
        image = images.eval_image(photo(height, width), 32).numpy()
        self.assertEqual((image.shape, image.dtype), ((32, 32, 3), np.uint8))
        side = 0.875 * min(height, width)
        top, left, bottom, right = window(image, height, width)
        pixel = side / 32 + 1
        self.assertAlmostEqual(top, (height - side) / 2, delta=pixel)
        self.assertAlmostEqual(left, (width - side) / 2, delta=pixel)
        self.assertAlmostEqual(bottom, (height + side) / 2, delta=pixel)
        self.assertAlmostEqual(right, (width + side) / 2, delta=pixel)

    def test_png(self):
        pixels = tf.io.decode_jpeg(photo(60, 80), dct_method="INTEGER_ACCURATE")
        expected = images.eval_image(photo(60, 80), 32).numpy().astype(int)
        self.assertLess(np.abs(images.eval_image(tf.io.encode_png(pixels), 32).numpy() - expected).max(), 6)

    def test_one_pixel(self):
        self.assertEqual(images.eval_image(tf.io.encode_jpeg(np.zeros((1, 1, 3), "uint8")), 8).shape, (8, 8, 3))


class TrainImageTest(absltest.TestCase):
    def crops(self, count, **options):
        jpeg = photo(300, 400)
        options = {"min_crop_area": 0.08, "flip": True} | options
        keys = [tf.constant([0, i], tf.int64) for i in range(count)]
        return [images.train_image(jpeg, 48, key, **options).numpy() for key in keys]

    def test_follows_from_the_key(self):
        for a, b in zip(self.crops(5), self.crops(5), strict=True):
            np.testing.assert_array_equal(a, b)
        self.assertLen({a.tobytes() for a in self.crops(20)}, 20)

    def test_areas_and_ratios_cover_their_ranges(self):
        areas, ratios = [], []
        for image in self.crops(400, flip=False):
            top, left, bottom, right = window(image, 300, 400)
            areas.append((bottom - top) * (right - left) / (300 * 400))
            ratios.append((right - left) / (bottom - top))
        self.assertBetween(min(areas), 0.06, 0.12)
        self.assertBetween(max(areas), 0.85, 1.0)
        self.assertBetween(np.mean(areas), 0.3, 0.45)
        self.assertBetween(min(ratios), 0.70, 0.82)
        self.assertBetween(max(ratios), 1.25, 1.42)

    def test_every_other_one_is_flipped(self):
        flipped = [image[24, 0, 0] > image[24, -1, 0] for image in self.crops(200)]
        self.assertBetween(np.mean(flipped), 0.4, 0.6)
        self.assertFalse(any(image[24, 0, 0] > image[24, -1, 0] for image in self.crops(50, flip=False)))

    def test_min_crop_area(self):
        for image in self.crops(50, min_crop_area=0.9, flip=False):
            top, left, bottom, right = window(image, 300, 400)
            self.assertGreater((bottom - top) * (right - left), 0.8 * 300 * 400)


if __name__ == "__main__":
    absltest.main()
