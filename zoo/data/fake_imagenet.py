"""A fake ImageNet on disk: JPEGs of textures that a network can learn, and that colour statistics cannot tell.

A class is a number of up to three decimal digits, and each digit is one of ten textures, laid over the whole image:
the last digit in its brightness, the one before (with more than 10 classes) in red against green, the first (with more
than 100) in blue against yellow. So any part of an image that a training crop may take shows the class. Phase, period,
contrast, polarity, mean colour, shading and grain are drawn anew for each image, so neither its mean colour nor a small
thumbnail says anything about the class to a linear model (`benchmarks/fake_imagenet_leaks.py`).
"""

import os
import sys
import time

import numpy as np
import tensorflow as tf

from zoo.data.manifest import check_manifest, read_manifest, write_manifest
from zoo.data.records import check_shards, imagenet_example, shard_path, write_shards
from zoo.guards import UserError, check, check_disk

MANIFEST = "fake_imagenet.json"
VERSION = 1
SPLITS = ("train", "validation")
IMAGES_PER_SHARD = 256
MAX_SHARDS = {"train": 1024, "validation": 128}
JPEG_QUALITY = 90

# Of each channel under a texture that is carried by brightness, by red against green, by blue against yellow.
DIRECTIONS = np.array([[1, 1, 1], [1, -1, 0], [-0.5, -0.5, 1]], np.float32)
PERIOD_PIXELS = (30, 46)
GRAIN = np.random.default_rng(0).normal(0, 9, (640, 640, 1)).astype(np.float32)

# Only comparisons, sums and products below, no sines: the same bytes whatever the processor's vector instructions.


def wave(t: np.ndarray) -> np.ndarray:
    """A triangle wave of period 1 between -1 and 1, clipped to give crisp edges."""
    return np.clip(2 * (4 * np.abs(t - np.floor(t) - 0.5) - 1), -1, 1)


def nearest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared distance to the nearest point of a staggered lattice of period 1."""
    u, v = x - np.floor(x) - 0.5, y - np.floor(y) - 0.5
    shifted_u, shifted_v = 0.5 - np.abs(u), 0.5 - np.abs(v)
    return np.minimum(u**2 + v**2, shifted_u**2 + shifted_v**2)


def blobs(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Irregular patches: random heights on a grid of period 1, interpolated and clipped."""
    u, v = x - x.min(), y - y.min()
    heights = rng.random((int(v.max()) + 2, int(u.max()) + 2), np.float32) - 0.5
    i, j = np.floor(u).astype(int), np.floor(v).astype(int)
    a, b = u - i, v - j
    rows = heights[:, i[0]] * (1 - a) + heights[:, i[0] + 1] * a
    return np.clip(5 * (rows[j[:, 0]] * (1 - b) + rows[j[:, 0] + 1] * b), -1, 1)


def texture(digit: int, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One of ten textures, float32 of mean about 0 within -1 and 1.

    Args:
      digit: which.
      x: columns in periods, `[1, width]`.
      y: rows in periods, `[height, 1]`.
      rng: for what varies within the texture.
    """
    if digit == 0:
        field = wave(y) + 0 * x
    elif digit == 1:
        field = wave(x) + 0 * y
    elif digit == 2:
        field = wave((x + y if rng.random() < 0.5 else x - y) * 0.7)
    elif digit == 3:
        field = wave(x * 0.7) * wave(y * 0.7)
    elif digit == 4:
        field = wave((x + y) * 0.5) * wave((x - y) * 0.5)
    elif digit == 5:
        field = np.clip(40 * (0.04 - nearest(x * 0.6, y * 0.6)), -1, 1)
    elif digit == 6:
        field = np.clip(1 - 30 * np.abs(nearest(x * 0.6, y * 0.6) - 0.08), -1, 1)
    elif digit == 7:
        field = 2 * np.maximum(wave(x) > 0.95, wave(y) > 0.95).astype(np.float32) - 1
    elif digit == 8:
        field = wave(y + 0.5 * wave(x * 0.4))
    else:
        field = blobs(x, y, rng)
    return (field - field.mean()).astype(np.float32)


def fake_image(label: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """An image of a class, uint8 `[height, width, 3]`, around 375×500 or 500×375; `label` runs from 0."""
    long, ratio = 460 + int(81 * rng.random()), 0.65 + 0.2 * rng.random()
    height, width = int(long * ratio), long
    if rng.random() < 0.25:
        height, width = width, height
    x = np.arange(width, dtype=np.float32)[np.newaxis]
    y = np.arange(height, dtype=np.float32)[:, np.newaxis]
    colour = 85 + 85 * rng.random(3, np.float32)
    tilt = 50 * (rng.random((2, 3), np.float32) - 0.5)
    image = colour + tilt[0] * (x[..., np.newaxis] / width - 0.5) + tilt[1] * (y[..., np.newaxis] / height - 0.5)
    for place in range(len(str(classes - 1))):
        digit = label // 10**place % 10
        period = PERIOD_PIXELS[0] + (PERIOD_PIXELS[1] - PERIOD_PIXELS[0]) * rng.random()
        phase = 8 * rng.random(2, np.float32)
        field = texture(digit, x / period + phase[0], y / period + phase[1], rng)
        amplitude = (35 + 20 * rng.random()) * (1 if rng.random() < 0.5 else -1)
        image = image + (amplitude * DIRECTIONS[place]) * field[..., np.newaxis]
    top, left = (int(rng.random() * (640 - size)) for size in (height, width))
    image += GRAIN[top : top + height, left : left + width]
    return np.clip(image, 0, 255).astype(np.uint8)


def labels_of(split: str, images: int, classes: int, seed: int) -> np.ndarray:
    """The labels of a split, from 0, as balanced as they can be, in an order that says nothing."""
    return np.random.default_rng([seed, SPLITS.index(split)]).permutation(images) % classes


def fake_example(split: str, index: int, label: int, classes: int, seed: int) -> bytes:
    """The serialized example at a place of a split; it follows from the arguments alone."""
    image = fake_image(label, classes, np.random.default_rng([seed, SPLITS.index(split), index]))
    jpeg = tf.io.encode_jpeg(image, quality=JPEG_QUALITY).numpy()
    height, width, _ = image.shape
    name = f"n{label:08d}"
    return imagenet_example(jpeg, label + 1, height, width, f"{name}_{split}_{index}.JPEG", name, f"fake class {label}")


def write_fake_imagenet(
    directory: str,
    *,
    train_images: int,
    validation_images: int,
    classes: int,
    seed: int = 0,
    train_shards: int | None = None,
    validation_shards: int | None = None,
    workers: int | None = None,
) -> None:
    """Writes a manifest, `fake_imagenet.json`, and then both splits; returns at once where that is done already.

    The bytes follow from the arguments, not from `workers` or from interruptions: the manifest comes first, so that an
    interrupted call is continued with the same arguments or not at all.

    Args:
      directory: where to; any file system of TensorFlow.
      train_images: how many.
      validation_images: how many; no image of one split is in the other.
      classes: 2 to 1000; labels run from 1.
      seed: of everything.
      train_shards: number of files; None takes one per 256 images, at most 1024.
      validation_shards: the same, at most 128.
      workers: threads; None takes one per core.

    Raises:
      UserError: if the directory holds another set, or a number is out of range.
    """
    check(2 <= classes <= 1000, f"{classes} classes: choose from 2 to 1000.")
    check(seed >= 0, f"seed {seed}: must not be negative.")
    images = {"train": train_images, "validation": validation_images}
    shards = {"train": train_shards, "validation": validation_shards}
    for split in SPLITS:
        check(images[split] >= 1, f"{images[split]} {split} images: choose at least 1.")
        if shards[split] is None:
            shards[split] = min(MAX_SHARDS[split], max(1, images[split] // IMAGES_PER_SHARD))
        check_shards(split, images[split], shards[split])
    wanted = {"version": VERSION, "classes": classes, "seed": seed, "images": images, "shards": shards}
    path = os.path.join(directory, MANIFEST)
    found = read_manifest(path)
    if found is None:
        strange = tf.io.gfile.glob([os.path.join(directory, f"{split}-*-of-*") for split in SPLITS])
        check(
            not strange,
            f"{directory} holds {len(strange)} files of another set, without {MANIFEST}. Choose another directory.",
        )
    else:
        check_manifest(path, found, wanted, "fake ImageNet")
        if is_there(directory):
            return
    try:
        tf.io.gfile.makedirs(directory)
    except tf.errors.OpError as error:
        raise UserError(f"{directory}: can't be written to ({error.message}). Choose another --data_dir.") from error
    _announce(directory, sum(images.values()), classes)
    write_manifest(path, wanted)
    for split in SPLITS:
        labels = labels_of(split, images[split], classes, seed)
        write_shards(
            directory,
            split,
            lambda i, split=split, labels=labels: fake_example(split, i, int(labels[i]), classes, seed),
            examples=images[split],
            shards=shards[split],
            workers=workers,
        )


def is_there(directory: str) -> bool:
    """Whether a directory holds a fake ImageNet, whole: each shard got its name when it was."""
    manifest = read_manifest(os.path.join(directory, MANIFEST))
    if manifest is None:
        return False
    names = (shard_path(directory, split, i, n) for split, n in manifest["shards"].items() for i in range(n))
    return all(tf.io.gfile.exists(name) for name in names)


def _announce(directory: str, images: int, classes: int) -> None:
    """Says how large it will be and how long it will take, from a few images made for that."""
    started = time.perf_counter()
    sizes = [len(fake_example("train", i, i % classes, classes, 0)) for i in range(12)]
    seconds = (time.perf_counter() - started) / len(sizes) * images / (os.cpu_count() or 1)
    megabytes = sum(sizes) / len(sizes) * images / 1e6
    check_disk(directory, int(megabytes * 1e6), "fake images")
    print(
        f"Writing a fake ImageNet of {images:,} images to {directory}: about {megabytes:,.0f} MB, {seconds:,.0f} s (estimated "
        f"from {len(sizes)} images).",
        file=sys.stderr,
        flush=True,
    )
