"""Texts: from tables, from TensorFlow Datasets, and fake ones, down to token ids of a static length.

Id 0 is the padding, which stands at the end, and 1 is a word that the vocabulary lacks. An empty text is all padding.
"""

import os
import re
import string
from collections.abc import Callable

import gin
import keras
import numpy as np
import tensorflow as tf

from zoo.data.fake_text import MANIFEST, write_fake_text
from zoo.data.tables import Row, read_rows
from zoo.guards import UserError, check, check_memory
from zoo.input_pipelines.pipeline import Data, Request, Source
from zoo.input_pipelines.synthetic import synthetic_tokens
from zoo.input_pipelines.tfrecords import check_labels, in_range, open_tfds, shard_source

NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
BYTES = 258  # ids of texts as bytes: padding, unknown (never used) and 256 values
Tokenizer = Callable[[tf.Tensor], tf.Tensor]


@gin.configurable(denylist=["request"])
def text_files(
    request: Request,
    *,
    train_file: str = "train.tsv",
    eval_file: str = "validation.tsv",
    text_column: str = "text",
    label_column: str = "label",
    tokens: str = "words",
) -> Data:
    """Texts in CSV, TSV or JSONL files with named columns; see `zoo.data.tables`.

    The classes are the labels of the training file, sorted. Where fewer examples are asked for than there are, they are
    spread evenly over the file, since files are often sorted by class.

    Args:
      request: of the experiment.
      train_file: in the directory of the request.
      eval_file: the same.
      text_column: its name.
      label_column: its name.
      tokens: 'words' (lower-cased, without ASCII punctuation, split at ASCII white space; the most frequent of the training
        texts) or 'bytes' (of UTF-8).

    Raises:
      UserError: on a bad row, naming file and line, or where the classes are not as many as the experiment says.
    """
    paths = [os.path.join(request.data_dir, name) for name in (train_file, eval_file)]
    if all(tf.io.gfile.exists(path) for path in paths):
        size = sum(tf.io.gfile.stat(path).length for path in paths)
        check_memory(8 * size, f"Texts of {size / 1e9:.1f} GB, which are held in memory,", "Train on fewer.")
    train, evaluation = (read_rows(path, text_column, label_column) for path in paths)
    names = {row.label for row in train}
    labels = tuple(sorted(names, key=_class_order))
    check(
        len(labels) == request.num_classes,
        f"{paths[0]}: {len(labels)} different labels, Experiment.num_classes = {request.num_classes}. Bind "
        f"Experiment.num_classes = {len(labels)}.",
    )
    for row in evaluation:
        check(row.label in names, f"{paths[1]}:{row.line}: label {row.label!r} is not in {paths[0]}.")
    train = _spread(train, request.train_examples, paths[0], "train_examples")
    evaluation = _spread(evaluation, request.eval_examples, paths[1], "eval_examples")
    tokenize, vocabulary = make_tokenizer(
        tokens, request, lambda: tf.data.Dataset.from_tensor_slices([row.text for row in train])
    )
    numbers = {name: i for i, name in enumerate(labels)}
    return Data(
        _rows_source(train, paths[0], numbers, tokenize, vocabulary, request.sequence_length),
        _rows_source(evaluation, paths[1], numbers, tokenize, vocabulary, request.sequence_length),
        labels=labels,
        vocabulary=vocabulary,
    )


@gin.configurable(denylist=["request"])
def fake_text(request: Request, *, default_train_examples: int = 51_200, default_eval_examples: int = 5_000) -> Data:
    """Texts whose classes are carried by the order of words alone, read as `text_files` does; see `zoo.data.fake_text`.

    They are written under the directory of the request on first use.

    Args:
      request: of the experiment.
      default_train_examples: how many to write where the experiment does not say.
      default_eval_examples: how many to write where the experiment does not say.
    """
    train, evaluation = request.train_examples or default_train_examples, request.eval_examples or default_eval_examples
    longest = request.need("sequence_length")
    name = f"fake_text-{request.num_classes}-classes-{longest}-words-{train}-{evaluation}"
    directory = os.path.join(request.data_dir, name)
    if not request.write and not tf.io.gfile.exists(os.path.join(directory, MANIFEST)):
        return synthetic_tokens(request, train, evaluation, f"fake texts, to be written to {directory} on first use")
    write_fake_text(
        directory, train_texts=train, validation_texts=evaluation, classes=request.num_classes, longest=longest
    )
    return text_files(request.in_directory(directory))


@gin.configurable(denylist=["request"])
def tfds_text(
    request: Request,
    *,
    name: str,
    train_split: str = "train",
    eval_split: str = "test",
    tokens: str = "words",
    shuffle_buffer: int = 16_384,
) -> Data:
    """Any text classification set of TensorFlow Datasets that is prepared under the directory; nothing is downloaded.

    Args:
      request: of the experiment.
      name: for instance 'imdb_reviews' or 'ag_news_subset'.
      train_split: to train on.
      eval_split: to evaluate on.
      tokens: see `text_files`.
      shuffle_buffer: records that the order of an epoch is shuffled over, after the files.

    Raises:
      UserError: if the set is not prepared here, is not stored as TFRecords, has no text and 'label', or has another
        number of classes than the experiment.
    """
    builder, shards = open_tfds("tfds_text", name, request, ("text", "description"))
    features = builder.info.features
    feature = "text" if "text" in features else "description"

    def parse(record):
        example = features.deserialize_example(record)
        return example[feature], example["label"], 0

    train, evaluation = shards(train_split), shards(eval_split)
    for split in (train, evaluation):
        check_labels(split.files, parse, request.num_classes)
    tokenize, vocabulary = make_tokenizer(
        tokens, request, lambda: tf.data.TFRecordDataset(train.files).map(lambda record: parse(record)[0])
    )

    def decode(record):
        text, label = in_range(*parse(record), request.num_classes)
        return tokenize(text), label

    def source(split, wanted, field):
        parts = shard_source(split, wanted, field, shuffle_buffer)
        return Source(**parts, decode_train=lambda record, key: decode(record), decode_eval=decode)

    return Data(
        source(train, request.train_examples, "train_examples"),
        source(evaluation, request.eval_examples, "eval_examples"),
        labels=tuple(features["label"].names),
        vocabulary=vocabulary,
    )


def make_tokenizer(
    tokens: str, request: Request, texts: Callable[[], tf.data.Dataset]
) -> tuple[Tokenizer, tuple[str, ...] | None]:
    """A function from a text (string scalar) to token ids, int32 `[sequence_length]`; and the word of each id, for words.

    Args:
      tokens: 'words' or 'bytes'.
      request: its `vocabulary_size` is the greatest number of ids.
      texts: the training texts, which the vocabulary is made of.
    """
    length, size = request.need("sequence_length"), request.need("vocabulary_size")
    if tokens == "bytes":
        check(size == BYTES, f"Experiment.vocabulary_size = {size}: bytes need {BYTES}, with tokens = 'bytes'.")
        return bytes_tokenizer(length), None
    check(tokens == "words", f"tokens = {tokens!r}: must be 'words' or 'bytes'.")
    check(size > 2, f"Experiment.vocabulary_size = {size}: must leave room for words beside padding and unknown.")
    counting = keras.layers.TextVectorization(max_tokens=size, standardize=_standardize)
    counting.adapt(texts().batch(1024))
    vocabulary = tuple(counting.get_vocabulary())
    if len(vocabulary) <= 2:
        raise UserError("The training texts have no words. Name the right text column, or bind tokens = 'bytes'.")
    return words_tokenizer(words_layer(vocabulary), length), vocabulary


def words_layer(vocabulary: tuple[str, ...]) -> keras.layers.TextVectorization:
    """Words by their place in `vocabulary`, whose first two entries stand for padding and unknown words."""
    return keras.layers.TextVectorization(vocabulary=list(vocabulary[2:]), standardize=_standardize)


def _standardize(text: tf.Tensor) -> tf.Tensor:
    """Lower case in every script, where Keras's own way knows ASCII alone; without ASCII punctuation."""
    return tf.strings.regex_replace(tf.strings.lower(text, encoding="utf-8"), f"[{re.escape(string.punctuation)}]", "")


def words_tokenizer(layer: keras.layers.TextVectorization, length: int) -> Tokenizer:
    """Words as `words_layer` numbers them."""
    return lambda text: _padded(tf.cast(layer(text), tf.int32), length)


def bytes_tokenizer(length: int) -> Tokenizer:
    """Bytes of UTF-8, each its value plus 2."""
    return lambda text: _padded(tf.cast(tf.io.decode_raw(text, tf.uint8), tf.int32) + 2, length)


def _tokens(text: str, words: bool) -> int:
    """How many tokens a text has before it is cut; punctuation is no word."""
    return len(text.translate(NO_PUNCTUATION).encode().split()) if words else len(text.encode())


def _padded(ids: tf.Tensor, length: int) -> tf.Tensor:
    ids = ids[:length]
    return tf.ensure_shape(tf.pad(ids, [[0, length - tf.size(ids)]]), [length])


def _class_order(name: str) -> tuple[int, int, str]:
    """Numbers in their own order, so that class 10 does not come before class 2; then the others."""
    return (0, int(name), name) if name.isdecimal() and len(name) < 19 else (1, 0, name)


def _spread(rows: list[Row], wanted: int | None, path: str, field: str) -> list[Row]:
    check(
        len(rows) >= (wanted or 1),
        f"{path}: {len(rows)} rows, {wanted} are asked for. Lower Experiment.{field} or bind None to take what there is.",
    )
    return [rows[i * len(rows) // wanted] for i in range(wanted)] if wanted else rows


def _rows_source(
    rows: list[Row],
    path: str,
    numbers: dict[str, int],
    tokenize: Tokenizer,
    vocabulary: tuple[str, ...] | None,
    length: int,
) -> Source:
    count = len(rows)
    lengths = [_tokens(row.text, vocabulary is not None) for row in rows]
    empty, cut = lengths.count(0), sum(tokens > length for tokens in lengths)
    missing = len(numbers) - len({row.label for row in rows})
    texts = tf.constant([row.text for row in rows])
    labels = tf.constant(np.array([numbers[row.label] for row in rows], "int32"))

    def epoch(seed, number):
        def place(i):
            # A permutation of all rows that needs no buffer.
            return tf.random.experimental.index_shuffle(i, tf.stack([seed, number]), count - 1)

        return in_order().map(place) if count > 1 else in_order()

    def in_order():
        return tf.data.Dataset.range(count)

    def decode(index):
        return tokenize(tf.gather(texts, index)), tf.gather(labels, index)

    return Source(
        description=f"{count:,} texts of {path}"
        + (f", none of {missing} of the {len(numbers)} classes" if missing else "")
        + (f", {empty:,} of them empty" if empty else "")
        + (f", {cut:,} of them cut to {length} tokens, the longest of {max(lengths):,}" if cut else ""),
        num_examples=count,
        epoch=epoch,
        in_order=in_order,
        decode_train=lambda index, key: decode(index),
        decode_eval=decode,
    )
