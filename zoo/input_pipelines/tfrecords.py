"""Images in TFRecord files of the official ImageNet layout: real ones and fake ones, by one reader."""

import dataclasses
import os
from collections.abc import Callable

import gin
import tensorflow as tf

from zoo.data.fake_imagenet import is_there, write_fake_imagenet
from zoo.data.records import count_records
from zoo.guards import UserError, check, check_memory
from zoo.input_pipelines import images
from zoo.input_pipelines.pipeline import Data, Request, Source
from zoo.input_pipelines.synthetic import synthetic_images

# Counting reads every file; these two sets are known, and each epoch's length is checked against them while it is read.
OFFICIAL_COUNTS = {("train", 1024): 1_281_167, ("validation", 128): 50_000}


@dataclasses.dataclass(frozen=True)
class Shards:
    """The files of a split, in order, and how many examples they hold."""

    split: str
    files: list[str]
    examples: int


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
      UserError: if files are missing or damaged, hold fewer examples than asked for, or labels out of range.
    """

    def shards(split):
        files = _files(request.data_dir, split)
        return Shards(split, files, OFFICIAL_COUNTS.get((split, len(files))) or sum(count_records(files)))

    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        example = tf.io.parse_single_example(record, features)
        return example["image/encoded"], example["image/class/label"], 1

    return _data(request, shards("train"), shards("validation"), parse, shuffle_buffer, min_crop_area, flip)


@gin.configurable(denylist=["request"])
def tfds_images(
    request: Request,
    *,
    name: str,
    train_split: str = "train",
    eval_split: str = "validation",
    shuffle_buffer: int = 16_384,
    min_crop_area: float = 0.08,
    flip: bool = True,
) -> Data:
    """Any image classification set of TensorFlow Datasets that is prepared under the directory; nothing is downloaded.

    Its records are read undecoded, in zoo's own order. See `imagenet` for the other arguments.

    Args:
      request: of the experiment.
      name: for instance 'imagenet2012', 'imagenette/320px-v2:1.0.0' or 'cifar10'.
      train_split: to train on.
      eval_split: to evaluate on.

    Raises:
      UserError: if the set is not prepared here, is not stored as TFRecords, has no 'image' and 'label', or has another
        number of classes than the experiment.
    """
    import tensorflow_datasets as tfds

    builder, shards = open_tfds("tfds_images", name, request, ("image",))
    features = builder.info.features

    def parse(record):
        example = features.deserialize_example(record, decoders={"image": tfds.decode.SkipDecoding()})
        return example["image"], example["label"], 0

    return _data(request, shards(train_split), shards(eval_split), parse, shuffle_buffer, min_crop_area, flip)


def open_tfds(
    configurable: str, name: str, request: Request, inputs: tuple[str, ...]
) -> tuple["tfds.core.DatasetBuilder", Callable[[str], Shards]]:  # noqa: F821
    """A set of TensorFlow Datasets that is prepared under the directory of a request, and a function from split to files.

    Args:
      configurable: whose parameters the messages speak of.
      name: of the set.
      request: of the experiment.
      inputs: features of which the set must have one, beside a label.
    """
    import tensorflow_datasets as tfds

    build = f"tfds build {name.split(':')[0]} --data_dir={request.data_dir}"
    try:
        builder = tfds.builder(name, data_dir=request.data_dir, try_gcs=False)
        prepared = bool(builder.info.splits) and tf.io.gfile.exists(str(builder.data_dir))
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError, OSError) as error:
        raise UserError(f"{configurable}.name = {name!r}: {str(error).strip().splitlines()[0]}") from error
    check(
        prepared,
        f"{configurable}.name = {name!r}: not prepared under --data_dir={request.data_dir}. Where there is a network, run: "
        f"{build}",
    )
    info = builder.info.features
    check(
        "label" in info
        and any(feature in info for feature in inputs)
        and str(builder.info.file_format.value) == "tfrecord",
        f"{configurable}.name = {name!r}: it has the features {sorted(info)} as {builder.info.file_format.value}; zoo reads "
        f"{' or '.join(inputs)} and label from tfrecord.",
    )
    check(
        info["label"].num_classes == request.num_classes,
        f"{configurable}.name = {name!r}: it has {info['label'].num_classes} classes, Experiment.num_classes = "
        f"{request.num_classes}. Bind Experiment.num_classes = {info['label'].num_classes}.",
    )

    def shards(split):
        check(
            split in builder.info.splits,
            f"{configurable}.name = {name!r}: it has no split {split!r}, but {', '.join(sorted(builder.info.splits))}. Bind "
            f"{configurable}.train_split and {configurable}.eval_split.",
        )
        files = [str(path) for path in builder.info.splits[split].filepaths]
        missing = [path for path in files if not tf.io.gfile.exists(path)]
        check(not missing, f"{missing[:1]}: this file of {name} is missing. Prepare it again: {build}")
        return Shards(split, files, builder.info.splits[split].num_examples)

    return builder, shards


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
    request.need("input_size")  # before gigabytes are written for a network that takes no images
    train_examples = request.train_examples or default_train_examples
    eval_examples = request.eval_examples or default_eval_examples
    name = f"fake_imagenet-{request.num_classes}-classes-{train_examples}-{eval_examples}"
    directory = os.path.join(request.data_dir, name)
    if not request.write and not is_there(directory):
        what = f"examples of a fake ImageNet, to be written to {directory} on first use"
        return synthetic_images(request, train_examples, eval_examples, what)
    write_fake_imagenet(
        directory, train_images=train_examples, validation_images=eval_examples, classes=request.num_classes
    )
    return imagenet(request.in_directory(directory))


def _data(
    request: Request,
    train: Shards,
    evaluation: Shards,
    parse: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, int]],
    shuffle_buffer: int,
    min_crop_area: float,
    flip: bool,
) -> Data:
    """The one reader of image files; `parse` gives encoded image, label, and the first label, of a record."""
    size = request.need("input_size")

    def decode_train(record, key):
        encoded, label = in_range(*parse(record), request.num_classes)
        return images.train_image(encoded, size, key, min_crop_area, flip), label

    def decode_eval(record):
        encoded, label = in_range(*parse(record), request.num_classes)
        return images.eval_image(encoded, size), label

    for shards in (train, evaluation):
        check_labels(shards.files, parse, request.num_classes)
    decoders = {"decode_train": decode_train, "decode_eval": decode_eval}
    return Data(
        Source(**shard_source(train, request.train_examples, "train_examples", shuffle_buffer), **decoders),
        Source(**shard_source(evaluation, request.eval_examples, "eval_examples", shuffle_buffer), **decoders),
    )


def shard_source(shards: Shards, wanted: int | None, field: str, shuffle_buffer: int) -> dict:
    """The parts of a `Source` that know the files of a split."""
    files, available = shards.files, shards.examples
    folder = os.path.dirname(files[0])
    check(
        available >= (wanted or 1),
        f"{folder}: its {shards.split} files hold {available} examples, {wanted or 1} are asked for. Lower Experiment.{field} or "
        "bind None to take what there is.",
    )
    count = wanted or available
    buffer = min(shuffle_buffer, count)
    if "://" not in files[0]:
        record_bytes = sum(tf.io.gfile.stat(file).length for file in files) / available
        check_memory(
            int(buffer * record_bytes),
            f"A shuffle_buffer of {shuffle_buffer} records",
            f"Bind shuffle_buffer = {max(1, buffer // 8)} or so.",
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

    description = f"{count:,} of {available:,} examples, {shards.split} split, {len(files)} file(s) in {folder}"
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


def in_range(encoded: tf.Tensor, label: tf.Tensor, first: int, num_classes: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Encoded image and label, int32 from 0; one out of range fails, it never becomes a vector of zeros."""
    last = num_classes - 1 + first
    in_range = tf.debugging.Assert(
        (label >= first) & (label <= last),
        [
            "label",
            label,
            f"is out of range: labels run from {first} to {last} with Experiment.num_classes = {num_classes}",
        ],
    )
    with tf.control_dependencies([in_range]):
        return tf.identity(encoded), tf.cast(label - first, tf.int32)


def check_labels(files: list[str], parse: Callable, num_classes: int) -> None:
    """Looks at some labels at launch, so that the wrong number of classes does not show hours later."""
    for record in tf.data.TFRecordDataset(files[0]).take(256).as_numpy_iterator():
        _, label, first = parse(tf.constant(record))
        check(
            first <= int(label) < first + num_classes,
            f"{files[0]}: a label of {int(label)}, but Experiment.num_classes = {num_classes}: labels run from {first} to "
            f"{num_classes - 1 + first}. Bind as many classes as the data have.",
        )
