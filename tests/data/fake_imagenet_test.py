"""The fake images: real JPEGs, the same for a seed, and silent about their class in colour and thumbnail."""

import json
import os
import re
import subprocess
import sys
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zoo.data import fake_imagenet
from zoo.data.fake_imagenet import write_fake_imagenet
from zoo.guards import UserError


def contents(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


class WriteTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name="a", **options):
        path = os.path.join(self.folder, name)
        write_fake_imagenet(
            path, **{"train_images": 12, "validation_images": 6, "classes": 4, "train_shards": 3} | options
        )
        return path

    def test_same_bytes_for_a_seed(self):
        one = contents(self.write(workers=1))
        path = self.write("b", workers=4)
        self.assertEqual(one, contents(path))
        os.remove(os.path.join(path, "train-00001-of-00003"))
        self.assertEqual(one, contents(self.write("b")))
        other = contents(self.write("c", seed=1))
        self.assertEqual(one.keys(), other.keys())
        self.assertNotEqual(one["train-00000-of-00003"], other["train-00000-of-00003"])

    def test_what_is_there_is_left_alone(self):
        path = self.write()
        before = os.stat(os.path.join(path, "train-00000-of-00003")).st_mtime_ns
        self.write()
        self.assertEqual(os.stat(os.path.join(path, "train-00000-of-00003")).st_mtime_ns, before)
        with self.assertRaisesRegex(ValueError, "holds another fake ImageNet: classes is 4 there, 5 here"):
            self.write(classes=5)

    @parameterized.parameters(
        ({"classes": 5}, "classes is 4 there, 5 here"),
        ({"seed": 1}, "seed is 0 there, 1 here"),
        ({"train_images": 13}, "images is {'train': 12, 'validation': 6} there, {'train': 13"),
    )
    def test_an_interrupted_set_is_not_continued_as_another(self, other, message):
        path = os.path.join(self.folder, "a")
        with (
            mock.patch.object(fake_imagenet, "write_shards", side_effect=KeyboardInterrupt),
            self.assertRaises(KeyboardInterrupt),
        ):
            self.write()
        self.assertFalse(fake_imagenet.is_there(path))
        with self.assertRaisesRegex(UserError, re.escape(message)):
            self.write(**other)
        self.write()
        self.assertTrue(fake_imagenet.is_there(path))

    def test_shards_of_another_origin(self):
        os.remove(os.path.join(self.write(), "fake_imagenet.json"))
        with self.assertRaisesRegex(UserError, "a holds 4 files of another set, without fake_imagenet.json"):
            self.write()

    @parameterized.parameters("", "{", "[]", "\xff")
    def test_a_damaged_manifest(self, text):
        path = os.path.join(self.write(), "fake_imagenet.json")
        with open(path, "w", encoding="latin1") as file:
            file.write(text)
        with self.assertRaisesRegex(UserError, f"{path}: damaged .*Delete"):
            self.write()

    @parameterized.parameters(
        ({"train_shards": 0}, "0 train shards for 12 examples"),
        ({"validation_shards": 0}, "0 validation shards"),
        ({"workers": 0}, "0 workers: choose at least 1"),
        ({"seed": -1}, "seed -1: must not be negative"),
    )
    def test_numbers(self, options, message):
        with self.assertRaisesRegex(UserError, message):
            self.write(**options)

    def test_layout(self):
        path = self.write()
        with open(os.path.join(path, "fake_imagenet.json")) as file:
            self.assertEqual(json.load(file)["images"], {"train": 12, "validation": 6})
        labels, sizes = [], set()
        files = [os.path.join(path, f"train-{i:05d}-of-00003") for i in range(3)]
        for record in tf.data.TFRecordDataset(files).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            image = tf.io.decode_jpeg(feature["image/encoded"].bytes_list.value[0]).numpy()
            height, width = (feature[f"image/{name}"].int64_list.value[0] for name in ("height", "width"))
            self.assertEqual(image.shape, (height, width, 3))
            labels.append(feature["image/class/label"].int64_list.value[0])
            sizes.add(image.shape)
        self.assertEqual(sorted(labels), sorted([1, 2, 3, 4] * 3))
        self.assertNotEqual(labels, [1, 2, 3, 4] * 3)
        self.assertGreater(len(sizes), 8)

    def test_command_line(self):
        command = [sys.executable, "-m", "zoo.data", "make-fake", f"--out={self.folder}/d", "--validation_images=2"]
        run = subprocess.run([*command, "--train_images=4", "--classes=1"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("zoo.data: 1 classes: choose from 2 to 1000.", run.stderr)
        self.assertNotIn("Traceback", run.stderr)


class LeakTest(parameterized.TestCase):
    def images(self, split, count):
        labels = fake_imagenet.labels_of(split, count, 10, 0)
        rngs = (np.random.default_rng([0, fake_imagenet.SPLITS.index(split), i]) for i in range(count))
        return labels, [fake_imagenet.fake_image(y, 10, rng) for y, rng in zip(labels, rngs, strict=True)]

    def test_linear_models_of_colour_see_nothing(self):
        (y, images), (held_y, held) = self.images("train", 800), self.images("validation", 300)
        for size in (1, 8):
            features, held_features = (
                np.stack([tf.image.resize(x, [size, size], "area").numpy().ravel() for x in xs])
                for xs in (images, held)
            )
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(features, y)
            self.assertLess(model.score(held_features, held_y), 0.3)

    @parameterized.parameters(10, 100, 1000)
    def test_every_digit_is_in_every_image(self, classes):
        """Two classes that differ in one digit give different images from the same random numbers."""
        for place in range(len(str(classes - 1))):
            a, b = (fake_imagenet.fake_image(k * 10**place, classes, np.random.default_rng(5)) for k in (0, 1))
            difference = np.abs(a.astype(float) - b)
            self.assertGreater(difference[:120, :120].mean(), 3)
            self.assertGreater(difference[-120:, -120:].mean(), 3)


if __name__ == "__main__":
    absltest.main()
