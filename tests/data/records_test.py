"""TFRecord files: written whole or not at all, and counted."""

import itertools
import os
import tempfile
import time

import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.data.records import count_records, imagenet_example, shard_path, write_shards


class RecordsTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, examples=10, shards=3, example=lambda i: b"%d" % i):
        return write_shards(self.folder, "train", example, examples=examples, shards=shards, workers=2)

    def read(self, shards=3):
        files = [shard_path(self.folder, "train", i, shards) for i in range(shards)]
        return [list(tf.data.TFRecordDataset(file).as_numpy_iterator()) for file in files]

    def test_in_order_over_even_shards(self):
        self.write()
        records = self.read()
        self.assertEqual(list(itertools.chain(*records)), [b"%d" % i for i in range(10)])
        self.assertEqual([len(r) for r in records], [3, 3, 4])
        self.assertEqual(sorted(os.listdir(self.folder))[0], "train-00000-of-00003")

    def test_continues_where_it_was_interrupted(self):
        def fails(i):
            if i == 7:
                raise OSError("disk full")
            return b"%d" % i

        with self.assertRaisesRegex(OSError, "disk full"):
            self.write(example=fails)
        self.assertNotIn("train-00002-of-00003", os.listdir(self.folder))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("unfinished")])
        made = []
        self.write(example=lambda i: made.append(i) or b"%d" % i)
        self.assertContainsSubset([6, 7, 8, 9], made)
        self.assertNotIn(0, made)
        self.assertEqual(list(itertools.chain(*self.read())), [b"%d" % i for i in range(10)])

    def test_what_a_killed_call_left_is_removed(self):
        for name, age in (("unfinished-1-train", 7200), ("unfinished-2-train", 0)):
            path = os.path.join(self.folder, name)
            open(path, "w").close()
            os.utime(path, (time.time() - age,) * 2)
        self.write()
        self.assertEqual([name for name in os.listdir(self.folder) if "unf" in name], ["unfinished-2-train"])

    def test_more_shards_than_examples(self):
        with self.assertRaisesRegex(ValueError, "11 train shards for 10 examples: choose from 1 to 10"):
            self.write(shards=11)

    def test_other_file_systems(self):
        write_shards("ram://records", "train", lambda i: b"x", examples=4, shards=2)
        self.assertEqual(count_records([shard_path("ram://records", "train", i, 2) for i in range(2)]), [2, 2])

    def test_count(self):
        self.write(examples=100, example=lambda i: b"x" * (i * 37 % 1000))
        empty = os.path.join(self.folder, "empty")
        open(empty, "w").close()
        files = [shard_path(self.folder, "train", i, 3) for i in range(3)]
        self.assertEqual(count_records([*files, empty]), [33, 33, 34, 0])

    @parameterized.parameters(1, 5, 13)
    def test_truncated(self, cut):
        self.write(examples=3, shards=1, example=lambda i: b"0123456789")
        path = shard_path(self.folder, "train", 0, 1)
        with open(path, "r+b") as file:
            file.truncate(3 * 26 - cut)
        with self.assertRaisesRegex(ValueError, "train-00000-of-00001: ends inside the record at byte 52"):
            count_records([path])

    def test_features_are_those_of_imagenet(self):
        example = tf.train.Example.FromString(imagenet_example(b"jpeg", 7, 375, 500, "a.JPEG", "n1", "a thing"))
        feature = example.features.feature
        self.assertEqual(feature["image/encoded"].bytes_list.value[0], b"jpeg")
        self.assertEqual(feature["image/class/label"].int64_list.value[0], 7)
        self.assertEqual(feature["image/height"].int64_list.value[0], 375)
        self.assertLen(feature, 10)


if __name__ == "__main__":
    absltest.main()
