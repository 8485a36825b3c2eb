"""Texts: read row by row, tokenised, and fake ones that only their order gives away."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from absl.testing import absltest, parameterized

from zoo.guards import UserError
from zoo.input_pipelines.pipeline import Request, raw_stream
from zoo.input_pipelines.text import BYTES, fake_text, text_files, tfds_text

TRAIN = "label\ttext\nno\tThe cat, sat.\nyes\tthe dog sat\nno\t\n"
EVAL = "label\ttext\nyes\tthe bird sat\n"


def examples(source):
    return [(x.numpy().tolist(), int(y)) for x, y in map(source.decode_eval, source.in_order())]


class Opinions(tfds.core.GeneratorBasedBuilder):
    """A set of this test's own, laid out as imdb_reviews is."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = {"text": tfds.features.Text(), "label": tfds.features.ClassLabel(names=["neg", "pos"])}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(20, "good"), "test": self._generate_examples(6, "fresh")}

    def _generate_examples(self, count, word):
        for i in range(count):
            yield i, {"text": f"Film {i}: {word}, not bad." if i else "", "label": i % 2}


class TfdsTextTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        Opinions(data_dir=cls.folder).download_and_prepare()

    def open(self, name="opinions", tokens="words", **changes):
        options = {"num_classes": 2, "sequence_length": 5, "vocabulary_size": 100}
        return tfds_text(Request(data_dir=self.folder, **options | changes), name=name, tokens=tokens)

    def test_words(self):
        data = self.open()
        self.assertEqual((data.train.num_examples, data.evaluation.num_examples), (20, 6))
        self.assertEqual(data.labels, ("neg", "pos"))
        self.assertNotIn("fresh", data.vocabulary)  # of training texts only
        number = data.vocabulary.index
        for ids, label in examples(data.train):
            if any(ids):
                word = data.vocabulary[ids[1]]
                self.assertEqual(ids, [number("film"), number(word), number("good"), number("not"), number("bad")])
                self.assertEqual(label, int(word) % 2)
        self.assertEqual(sum(not any(ids) for ids, _ in examples(data.train)), 1)
        self.assertEqual({ids[2] for ids, _ in examples(data.evaluation)}, {0, 1})  # padding of the empty one; unknown

    def test_bytes(self):
        data = self.open(tokens="bytes", vocabulary_size=BYTES)
        self.assertIn([b + 2 for b in b"Film "], [ids for ids, _ in examples(data.evaluation)])

    def test_mistakes(self):
        with self.assertRaisesRegex(UserError, "it has 2 classes.* Bind Experiment.num_classes = 2"):
            self.open(num_classes=3)
        with self.assertRaisesRegex(UserError, "imdb_reviews.*not prepared under --data_dir=.*tfds build imdb_reviews"):
            self.open("imdb_reviews")


class TextFilesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.write("train.tsv", TRAIN)
        self.write("validation.tsv", EVAL)

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())

    def request(self, **changes):
        options = {"num_classes": 2, "sequence_length": 4, "vocabulary_size": 100}
        return Request(data_dir=self.folder, **options | changes)

    def test_words(self):
        data = text_files(self.request())
        self.assertEqual(data.labels, ("no", "yes"))
        self.assertEqual(data.vocabulary[:4], ("", "[UNK]", "the", "sat"))
        word = data.vocabulary.index
        self.assertEqual(
            examples(data.train),
            [([2, word("cat"), 3, 0], 0), ([2, word("dog"), 3, 0], 1), ([0, 0, 0, 0], 0)],
        )
        self.assertEqual(examples(data.evaluation), [([2, 1, 3, 0], 1)])  # a word that training lacks is unknown
        self.assertIn("1 of them empty", data.train.description)

    def test_texts_that_are_cut_are_said(self):
        data = text_files(self.request(sequence_length=2))
        self.assertEndsWith(data.train.description, "1 of them empty, 2 of them cut to 2 tokens, the longest of 3")
        data = text_files(self.request(sequence_length=12, vocabulary_size=BYTES), tokens="bytes")
        self.assertEndsWith(
            data.train.description, "train.tsv, 1 of them empty, 1 of them cut to 12 tokens, the longest of 13"
        )

    def test_bytes(self):
        data = text_files(self.request(vocabulary_size=BYTES), tokens="bytes")
        self.assertEqual(examples(data.evaluation)[0][0], [b + 2 for b in b"the "])
        self.assertIsNone(data.vocabulary)

    def test_every_row_once_per_epoch_and_from_any_position(self):
        rows = "".join(f"word{i}\t{i % 2}\n" for i in range(50))
        self.write("train.tsv", "text\tlabel\n" + rows)
        self.write("validation.tsv", "text\tlabel\nword0\t1\n")
        source = text_files(self.request()).train
        order = [int(i) for _, i in raw_stream(source, 7, 0).take(100)]
        self.assertEqual(sorted(order[:50]), list(range(50)))
        self.assertEqual(sorted(order[50:]), list(range(50)))
        self.assertNotEqual(order[:50], order[50:])
        self.assertEqual([int(i) for _, i in raw_stream(source, 7, 63).take(37)], order[63:])

    def test_fewer_are_spread_over_a_file_that_is_sorted_by_class(self):
        self.write("train.tsv", "text\tlabel\n" + "".join(f"word{i}\t{i // 25}\n" for i in range(50)))
        self.write("validation.tsv", "text\tlabel\n" + "".join(f"word{i}\t{i // 6}\n" for i in range(12)))
        data = text_files(self.request(train_examples=10, eval_examples=5))
        for source, expected in ((data.train, [0] * 5 + [1] * 5), (data.evaluation, [0] * 3 + [1] * 2)):
            self.assertEqual([label for _, label in examples(source)], expected)
        data = text_files(self.request(train_examples=1))
        self.assertIn("none of 1 of the 2 classes", data.train.description)

    def test_lower_case_in_every_script(self):
        self.write("train.tsv", "text\tlabel\nÉcole Über МИР\tno\nécole über мир\tyes\n")
        self.write("validation.tsv", "text\tlabel\nÉCOLE!\tno\n")
        data = text_files(self.request())
        self.assertEqual(set(data.vocabulary[2:]), {"école", "über", "мир"})
        self.assertEqual(examples(data.evaluation)[0][0], [data.vocabulary.index("école"), 0, 0, 0])

    def test_labels_that_are_equal_numbers_have_one_order(self):
        self.write("train.tsv", "text\tlabel\n" + "".join(f"a\t{label}\n" for label in ("1", "01", "001", "0")))
        self.write("validation.tsv", "text\tlabel\na\t1\n")
        self.assertEqual(text_files(self.request(num_classes=4)).labels, ("0", "001", "01", "1"))

    def test_csv_and_jsonl(self):
        self.write("a.csv", 'text,label\n"the ""cat"", sat\non two lines",no\nthe dog sat,yes\n')
        self.write("b.jsonl", "".join(json.dumps({"label": i, "text": "the cat"}) + "\n" for i in (10, 2)))
        data = text_files(self.request(sequence_length=6), train_file="a.csv")
        self.assertEqual(data.train.num_examples, 2)
        self.assertEqual(np.count_nonzero(examples(data.train)[0][0]), 6)
        self.assertEqual(text_files(self.request(), train_file="b.jsonl", eval_file="b.jsonl").labels, ("2", "10"))

    @parameterized.parameters(
        ("validation.tsv", "label\ttext\nmaybe\tx\n", r"validation.tsv:2: label 'maybe' is not in"),
        ("train.tsv", "label\tbody\nno\tx\n", r"train.tsv:1: no column 'text', but label, body"),
        ("train.tsv", "label\ttext\nno\n", r"train.tsv:2: 1 columns, the header has 2"),
        ("train.tsv", b"label\ttext\nno\tx\nno\t\xff\n", r"train.tsv:3: not UTF-8"),
        ("train.tsv", "label\ttext\nno\tx\n", r"1 different labels, Experiment.num_classes = 2"),
        ("train.tsv", "label\ttext\n", r"train.tsv: no rows"),
        ("train.tsv", "label\ttext\nno\t\nyes\t\n", r"no words"),
    )
    def test_bad_rows(self, name, content, message):
        self.write(name, content)
        with self.assertRaisesRegex(UserError, message):
            text_files(self.request())

    @parameterized.parameters(
        ({"train_file": "none.tsv"}, {}, "none.tsv: no such file"),
        ({"train_file": "train.txt"}, {}, "unknown ending '.txt'"),
        ({"tokens": "letters"}, {}, "tokens = 'letters'"),
        ({"tokens": "bytes"}, {}, "bytes need 258"),
        ({}, {"train_examples": 9}, "3 rows, 9 are asked for"),
        ({}, {"vocabulary_size": None}, "These data need vocabulary_size, which the network does not take"),
    )
    def test_mistakes(self, options, changes, message):
        with self.assertRaisesRegex(UserError, message):
            text_files(self.request(**changes), **options)


class FakeTextTest(parameterized.TestCase):
    def test_written_once_and_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            request = Request(
                data_dir=folder,
                num_classes=3,
                sequence_length=20,
                vocabulary_size=500,
                train_examples=30,
                eval_examples=9,
            )
            data = fake_text(request)
            self.assertEqual((data.train.num_examples, data.evaluation.num_examples), (30, 9))
            self.assertEqual(data.labels, ("0", "1", "2"))
            (path,) = tf.io.gfile.glob(os.path.join(folder, "*", "train.tsv"))
            before = os.stat(path).st_mtime_ns
            self.assertEqual(examples(fake_text(request).train), examples(data.train))
            self.assertEqual(os.stat(path).st_mtime_ns, before)

    def test_a_dry_run_writes_nothing(self):
        """Not even where an interrupted run has left a part."""
        with tempfile.TemporaryDirectory() as folder:
            sizes = {"num_classes": 3, "sequence_length": 20, "vocabulary_size": 500}
            request = Request(data_dir=folder, train_examples=30, eval_examples=9, write=False, **sizes)
            os.makedirs(os.path.join(folder, "fake_text-3-classes-20-words-30-9"))
            data = fake_text(request)
            self.assertIn("to be written to", data.train.description)
            self.assertEqual(tf.io.gfile.glob(os.path.join(folder, "*", "*")), [])

    def test_too_short_for_the_markers(self):
        with self.assertRaisesRegex(UserError, "sequence_length = 10: fake texts of 10 classes need at least 15"):
            fake_text(Request(data_dir="nowhere", num_classes=10, sequence_length=10, vocabulary_size=50))


if __name__ == "__main__":
    absltest.main()
