"""Images in TFRecord files of the official ImageNet layout: real ones and fake ones, by one reader."""

import dataclasses
import os

import gin
import tensorflow as tf

from zoo.data.fake_imagenet import MANIFEST, write_fake_imagenet
from zoo.data.records import count_records
from zoo.guards import UserError, check, check_memory
from zoo.input_pipelines import images
from zoo.input_pipelines.pipeline import Data, Request, Source
from zoo.input_pipelines.synthetic import synthetic

# Counting reads every file; these two sets are known, and each epoch's length is checked against them while it is read.
OFFICIAL_COUNTS = {("train", 1024): 1_281_167, ("validation", 128): 50_000}


@gin.configurable(denylist=["request"])
def imagenet(request: Request, *, shuffle_buffer: int = 16_384, min_crop_area: float = 0.08, flip: bool = True) -> Data:
    """ImageNet, or any other images in its official layout.

    The directory holds `train-00000-of-01024` … and `validation-00000-of-00128` …, or holds them in its folders `train`
    and `validation`. Labels run from 1 to `num_classes` there; one beyond is an error.

    Args:
      request: of the experiment.
      shuffle_buffer: records that the order of an epoch is shuffled over, after the files; about 110 KB each.
      min_crop_area: the least share of an image that a training crop takes.
      flip: mirror every other training image.

    Raises:
      UserError: if files are missing or damaged, or hold fewer examples than asked for.
    """

    def decode_train(record, key):
        jpeg, label = _parse(record, request.num_classes)
        return images.train_image(jpeg, request.input_size, key, min_crop_area, flip), label

    def decode_eval(record):
        jpeg, label = _parse(record, request.num_classes)
        return images.eval_image(jpeg, request.input_size), label

    decoders = {"decode_train": decode_train, "decode_eval": decode_eval}
    return Data(
        Source(**_split(request.data_dir, "train", request.train_examples, shuffle_buffer), **decoders),
        Source(**_split(request.data_dir, "validation", request.eval_examples, shuffle_buffer), **decoders),
    )


@gin.configurable(denylist=["request"])
def fake_imagenet(
    request: Request, *, default_train_examples: int = 51_200, default_eval_examples: int = 5_000
) -> Data:
    """JPEGs of textures that a network can learn, read as `imagenet` is; see `zoo.data.fake_imagenet`.

    They are written under the directory of the request on first use.

    Args:
      request: of the experiment.
      default_train_examples: how many to write where the experiment does not say.
      default_eval_examples: how many to write where the experiment does not say.
    """
    train_examples = request.train_examples or default_train_examples
    eval_examples = request.eval_examples or default_eval_examples
    name = f"fake_imagenet-{request.num_classes}-classes-{train_examples}-{eval_examples}"
    directory = os.path.join(request.data_dir, name)
    if not request.write and not tf.io.gfile.exists(os.path.join(directory, MANIFEST)):
        data = synthetic(dataclasses.replace(request, train_examples=train_examples, eval_examples=eval_examples))
        later = f"of a fake ImageNet, to be written to {directory} on first use"
        return Data(
            dataclasses.replace(data.train, description=f"{train_examples:,} examples {later}"),
            dataclasses.replace(data.evaluation, description=f"{eval_examples:,} examples {later}"),
        )
    write_fake_imagenet(
        directory, train_images=train_examples, validation_images=eval_examples, classes=request.num_classes
    )
    return imagenet(dataclasses.replace(request, data_dir=directory))


def _split(data_dir: str, split: str, wanted: int | None, shuffle_buffer: int) -> dict:
    """The parts of a `Source` that know the files of a split."""
    files = _files(data_dir, split)
    available = OFFICIAL_COUNTS.get((split, len(files))) or sum(count_records(files))
    check(
        available >= (wanted or 1),
        f"{data_dir}: its {split} files hold {available} examples, {wanted or 1} are asked for. Lower "
        f"Experiment.{'train' if split == 'train' else 'eval'}_examples, or bind None to take what there is.",
    )
    count = wanted or available
    buffer = min(shuffle_buffer, count)
    if "://" not in files[0]:
        record_bytes = sum(tf.io.gfile.stat(file).length for file in files) / available
        check_memory(
            int(buffer * record_bytes),
            f"imagenet.shuffle_buffer = {shuffle_buffer}",
            f"Bind imagenet.shuffle_buffer = {max(1, buffer // 8)} or so.",
        )

    def epoch(seed, number):
        if count < available:
            # Always the same first examples; only their order changes from epoch to epoch.
            dataset = tf.data.TFRecordDataset(files).take(count)
        else:
            order = tf.random.experimental.stateless_shuffle(tf.constant(files), seed=tf.stack([seed, number]))
            dataset = _interleave(order)
        return dataset.shuffle(buffer, seed=seed * 1_000_003 + number, reshuffle_each_iteration=False)

    def in_order():
        return tf.data.TFRecordDataset(files).take(count) if count < available else _interleave(tf.constant(files))

    prefix = os.path.join(os.path.dirname(files[0]), split)
    description = f"{count:,} of {available:,} examples in {len(files)} file(s) {prefix}-*"
    return {"description": description, "num_examples": count, "epoch": epoch, "in_order": in_order}


def _files(data_dir: str, split: str) -> list[str]:
    """The shards of a split, sorted; all that their names promise."""
    patterns = [os.path.join(data_dir, f"{split}-*-of-*"), os.path.join(data_dir, split, f"{split}-*-of-*")]
    files = next((found for pattern in patterns if (found := sorted(tf.io.gfile.glob(pattern)))), [])
    if not files:
        raise UserError(
            f"--data_dir={data_dir}: no {split} files here ({patterns[0]} matches nothing). Point --data_dir at a folder of "
            "TFRecords in the official ImageNet layout."
        )
    promised = {name.rsplit("-of-", 1)[-1] for name in files}
    check(
        promised == {f"{len(files):05d}"},
        f"{data_dir}: {len(files)} {split} files, but their names say {', '.join(sorted(promised))}. Shards are missing, or "
        "two sets lie in one folder.",
    )
    return files


def _interleave(files: tf.Tensor) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(files).interleave(
        tf.data.TFRecordDataset, cycle_length=16, block_length=16, num_parallel_calls=16, deterministic=True
    )


def _parse(record: tf.Tensor, num_classes: int) -> tuple[tf.Tensor, tf.Tensor]:
    """JPEG bytes and label, from 0, of a serialized `tf.train.Example`."""
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(record, features)
    label = example["image/class/label"]
    in_range = tf.debugging.Assert(
        (label >= 1) & (label <= num_classes),
        ["label", label, f"is out of range: labels run from 1 to Experiment.num_classes = {num_classes}"],
    )
    with tf.control_dependencies([in_range]):
        return example["image/encoded"], tf.cast(label - 1, tf.int32)
