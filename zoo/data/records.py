"""TFRecord files of images in the official ImageNet layout: written shard by shard, and counted."""

import concurrent.futures
import os
import struct
import time
from collections.abc import Callable, Sequence

import tensorflow as tf
import tqdm

from zoo.guards import UserError, check

LENGTH_AND_CRC, PAYLOAD_CRC = 12, 4  # bytes around each record: uint64 length, its crc32c; the crc32c of the payload


def imagenet_example(
    jpeg: bytes, label: int, height: int, width: int, filename: str, synset: str = "", text: str = ""
) -> bytes:
    """One image as a serialized `tf.train.Example` with the feature keys of the official ImageNet files.

    Args:
      jpeg: the encoded RGB image.
      label: from 1 on, as there.
      height: in pixels.
      width: in pixels.
      filename: of the image.
      synset: WordNet id of the class, or any other short name of it.
      text: the class in words.
    """

    def of_bytes(value: str | bytes) -> tf.train.Feature:
        value = value if isinstance(value, bytes) else value.encode()
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    def of_int(value: int) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    features = {
        "image/encoded": of_bytes(jpeg),
        "image/height": of_int(height),
        "image/width": of_int(width),
        "image/colorspace": of_bytes("RGB"),
        "image/channels": of_int(3),
        "image/format": of_bytes("JPEG"),
        "image/filename": of_bytes(filename),
        "image/class/label": of_int(label),
        "image/class/synset": of_bytes(synset),
        "image/class/text": of_bytes(text),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def shard_path(directory: str, split: str, shard: int, shards: int) -> str:
    """For example `DIR/train-00007-of-01024`."""
    return os.path.join(directory, f"{split}-{shard:05d}-of-{shards:05d}")


def write_shards(
    directory: str,
    split: str,
    example: Callable[[int], bytes],
    *,
    examples: int,
    shards: int,
    workers: int | None = None,
) -> int:
    """Writes the examples 0 to `examples` - 1 of a split, in order, over `shards` files; returns their bytes.

    Each shard gets its name only when it is whole, and one that is there already is kept: an interrupted call is
    continued by the same call.

    Args:
      directory: where to; any file system of TensorFlow.
      split: 'train' or 'validation'.
      example: the serialized example of an index; called from several threads.
      examples: how many.
      shards: number of files; their sizes differ by one example at most.
      workers: threads; None takes one per core.

    Raises:
      UserError: if there are more shards than examples.
    """
    check_shards(split, examples, shards)
    check(workers is None or workers >= 1, f"{workers} workers: choose at least 1.")
    tf.io.gfile.makedirs(directory)
    _remove_unfinished(directory)
    bar = tqdm.tqdm(total=examples, desc=f"writing {split}", unit=" images", disable=None)  # None: in a terminal only

    def write(shard: int) -> int:
        path = shard_path(directory, split, shard, shards)
        first, end = shard * examples // shards, (shard + 1) * examples // shards
        if tf.io.gfile.exists(path):
            bar.update(end - first)
        else:
            unfinished = os.path.join(directory, f"unfinished-{os.getpid()}-{os.path.basename(path)}")
            try:
                with tf.io.TFRecordWriter(unfinished) as writer:
                    for i in range(first, end):
                        writer.write(example(i))
                        bar.update()
                tf.io.gfile.rename(unfinished, path, overwrite=True)
            except BaseException:
                if tf.io.gfile.exists(unfinished):
                    tf.io.gfile.remove(unfinished)
                raise
        return tf.io.gfile.stat(path).length

    with bar, concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures = [pool.submit(write, shard) for shard in range(shards)]
        try:
            return sum(future.result() for future in futures)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def check_shards(split: str, examples: int, shards: int) -> None:
    """Checks that every shard gets an example."""
    check(
        1 <= shards <= examples,
        f"{shards} {split} shards for {examples} examples: choose from 1 to {examples} shards.",
    )


def _remove_unfinished(directory: str) -> None:
    """Removes what killed calls left; files that were written to within the hour may be another process's."""
    for path in tf.io.gfile.glob(os.path.join(directory, "unfinished-*")):
        if time.time() - tf.io.gfile.stat(path).mtime_nsec / 1e9 > 3600:
            tf.io.gfile.remove(path)


def count_records(files: Sequence[str]) -> list[int]:
    """The exact number of records in each TFRecord file, from their lengths alone.

    Raises:
      UserError: if a file ends in the middle of a record, naming file and offset.
    """

    def count(path: str) -> int:
        size, offset, records = tf.io.gfile.stat(path).length, 0, 0
        with tf.io.gfile.GFile(path, "rb") as file:
            while offset < size:
                file.seek(offset)
                header = file.read(LENGTH_AND_CRC)
                end = offset + LENGTH_AND_CRC + PAYLOAD_CRC
                if len(header) == LENGTH_AND_CRC:
                    end += struct.unpack("<Q", header[:8])[0]
                if len(header) < LENGTH_AND_CRC or end > size:
                    raise UserError(f"{path}: ends inside the record at byte {offset}; write or copy the file again.")
                offset, records = end, records + 1
        return records

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(count, files))
