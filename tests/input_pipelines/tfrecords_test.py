"""The one reader of image files."""

import dataclasses
import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.data.records import imagenet_example, shard_path, write_shards
from zoo.guards import UserError, explain
from zoo.input_pipelines.pipeline import Request, train_dataset
from zoo.input_pipelines.tfrecords import fake_imagenet, imagenet

ONE = tf.distribute.InputContext(1, 0, 1)


def example(i):
    """A small JPEG in a shade that names it, of label 1, 2, 3, 1, 2, …"""
    jpeg = tf.io.encode_jpeg(np.full((16, 16, 3), 5 * i, "uint8"), quality=100).numpy()
    return imagenet_example(jpeg, i % 3 + 1, 16, 16, f"{i}.JPEG")


class ImagenetTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, subfolders=False, **counts):
        for split, shards, count in (("train", 4, 40), ("validation", 2, 10)):
            folder = os.path.join(self.folder, split) if subfolders else self.folder
            write_shards(folder, split, example, examples=counts.get(split, count), shards=shards)

    def open(self, **options):
        shuffle_buffer = options.pop("shuffle_buffer", 100)
        options = {"data_dir": self.folder, "input_size": 8, "num_classes": 3} | options
        return imagenet(Request(**options), shuffle_buffer=shuffle_buffer)

    def shades(self, source, start_step=0, batches=5):
        dataset = train_dataset(source, seed=1, start_step=start_step, global_batch_size=8, context=ONE)
        found = []
        for images, labels, _ in dataset.take(batches).as_numpy_iterator():
            shade = np.round(images.mean((1, 2, 3)) / 5).astype(int)
            np.testing.assert_array_equal(labels, shade % 3)
            found += list(shade)
        return found

    @parameterized.parameters(False, True)
    def test_an_epoch_is_every_example_once(self, subfolders):
        self.write(subfolders)
        data = self.open()
        self.assertEqual((data.train.num_examples, data.evaluation.num_examples), (40, 10))
        shades = self.shades(data.train, batches=10)
        self.assertEqual(sorted(shades[:40]), list(range(40)))
        self.assertEqual(sorted(shades[40:]), list(range(40)))
        self.assertNotEqual(shades[:40], shades[40:])
        self.assertNotEqual(shades[:40], list(range(40)))

    @parameterized.parameters(None, 20)
    def test_resumes_at_any_step(self, examples):
        self.write()
        source = self.open(train_examples=examples, shuffle_buffer=7).train
        whole = self.shades(source, batches=9)
        for start in (1, 4, 6):
            self.assertEqual(self.shades(source, start, 9 - start), whole[8 * start :])

    def test_the_first_so_many(self):
        self.write()
        data = self.open(train_examples=16, eval_examples=3)
        shades = self.shades(data.train, batches=4)
        self.assertEqual(sorted(shades[:16]), list(range(16)))
        self.assertEqual(sorted(shades[16:]), list(range(16)))
        self.assertLen(list(data.evaluation.in_order()), 3)
        self.assertIn("16 of 40 examples", data.train.description)

    def test_more_than_there_are(self):
        self.write()
        with self.assertRaisesRegex(UserError, "train files hold 40 examples, 41 are asked for.*train_examples"):
            self.open(train_examples=41)

    def test_label_out_of_range(self):
        self.write()
        source = self.open(num_classes=2).train
        with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
            self.shades(source)
        self.assertRegex(
            str(explain(caught.exception, tiny.experiment(), 8)),
            r"A label of the data, 3, is out of range.*num_classes = 2",
        )

    def test_no_files(self):
        with self.assertRaisesRegex(UserError, "no train files here.*official ImageNet layout"):
            self.open()

    def test_a_missing_shard(self):
        self.write()
        os.remove(shard_path(self.folder, "train", 2, 4))
        with self.assertRaisesRegex(UserError, "3 train files, but their names say 00004"):
            self.open()

    def test_a_truncated_shard(self):
        self.write()
        path = shard_path(self.folder, "train", 2, 4)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 3)
        with self.assertRaisesRegex(UserError, "train-00002-of-00004: ends inside the record"):
            self.open()


class FakeImagenetTest(absltest.TestCase):
    def test_written_on_first_use_and_only_then(self):
        with tempfile.TemporaryDirectory() as folder:
            request = Request(data_dir=folder, input_size=8, num_classes=3, train_examples=9, eval_examples=6)
            dry = dataclasses.replace(request, write=False)
            plan = fake_imagenet(dry)
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual((plan.train.num_examples, plan.evaluation.num_examples), (9, 6))
            self.assertIn("to be written", plan.train.description)
            data = fake_imagenet(request)
            self.assertEqual((data.train.num_examples, data.evaluation.num_examples), (9, 6))
            self.assertLen(os.listdir(folder), 1)
            self.assertNotIn("to be written", fake_imagenet(dry).train.description)


if __name__ == "__main__":
    absltest.main()
