"""The one reader of image files."""

import dataclasses
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.data.records import imagenet_example, shard_path, write_shards
from zoo.guards import UserError, explain
from zoo.input_pipelines.pipeline import Request, train_dataset
from zoo.input_pipelines.tfrecords import fake_imagenet, imagenet, tfds_images

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
        self.assertIn("16 of 40 examples, train split", data.train.description)

    def test_more_than_there_are(self):
        self.write()
        with self.assertRaisesRegex(UserError, "train files hold 40 examples, 41 are asked for.*train_examples"):
            self.open(train_examples=41)

    def test_labels_are_looked_at_before_launch(self):
        self.write()
        with self.assertRaisesRegex(UserError, "a label of 3, but Experiment.num_classes = 2: labels run from 1 to 2"):
            self.open(num_classes=2)

    def test_label_out_of_range_later_on(self):
        def wrong(i):
            jpeg = tf.io.encode_jpeg(np.zeros((16, 16, 3), "uint8")).numpy()
            return imagenet_example(jpeg, 1 + i % 3 if i < 290 else 4, 16, 16, f"{i}.JPEG")

        write_shards(self.folder, "train", wrong, examples=300, shards=1)
        write_shards(self.folder, "validation", example, examples=3, shards=1)
        source = self.open(shuffle_buffer=1).train
        dataset = train_dataset(source, seed=1, start_step=0, global_batch_size=8, context=ONE)
        with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
            list(dataset.take(40))
        self.assertRegex(
            str(explain(caught.exception, tiny.experiment(), 8)),
            r"A label of the data, 4, is out of range.*num_classes = 3",
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


class Shades(tfds.core.GeneratorBasedBuilder):
    """A set of this test's own: 40 and 10 grey PNGs of three classes."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = {
            "image": tfds.features.Image(encoding_format="png"),
            "label": tfds.features.ClassLabel(num_classes=3),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(40), "test": self._generate_examples(10)}

    def _generate_examples(self, count):
        for i in range(count):
            yield i, {"image": np.full((16, 16, 3), 5 * i, "uint8"), "label": i % 3}


class TfdsTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        Shades(data_dir=cls.folder).download_and_prepare()

    def open(self, name="shades", num_classes=3, **options):
        return tfds_images(
            Request(data_dir=self.folder, input_size=8, num_classes=num_classes),
            name=name,
            **{"eval_split": "test"} | options,
        )

    def test_the_same_reader(self):
        data = self.open()
        self.assertEqual((data.train.num_examples, data.evaluation.num_examples), (40, 10))
        seen = []
        for start in (0, 3):
            dataset = train_dataset(data.train, seed=1, start_step=start, global_batch_size=8, context=ONE)
            shades = []
            for pixels, labels, _ in dataset.take(5 - start).as_numpy_iterator():
                shades += list(np.round(pixels.mean((1, 2, 3)) / 5).astype(int))
                np.testing.assert_array_equal(labels, np.array(shades[-8:]) % 3)
            seen.append(shades)
        self.assertEqual(sorted(seen[0]), list(range(40)))
        self.assertEqual(seen[0][24:], seen[1])

    def test_mistakes(self):
        with self.assertRaisesRegex(
            UserError, "it has 3 classes, Experiment.num_classes = 4. Bind Experiment.num_classes = 3"
        ):
            self.open(num_classes=4)
        with self.assertRaisesRegex(UserError, "no split 'validation', but test, train"):
            self.open(eval_split="validation")
        with self.assertRaisesRegex(UserError, "cifar10.*not prepared under --data_dir=.*tfds build cifar10"):
            self.open("cifar10")
        with self.assertRaisesRegex(UserError, "tfds_images.name = 'no_such_set'"):
            self.open("no_such_set")


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
