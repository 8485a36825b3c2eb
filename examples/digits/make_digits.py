"""Writes scikit-learn's 1,797 handwritten digits as JPEG TFRecords in the official ImageNet layout.

    python examples/digits/make_digits.py --out=data/digits

Every fifth digit is held out for validation. Label 1 is the digit 0, label 10 the digit 9.
"""

import argparse

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

from zoo.data.records import imagenet_example, write_shards

SIDE, MARGIN = 64, 8  # the margin keeps the digit inside the central crop of an evaluation


def jpeg(pixels: np.ndarray) -> bytes:
    """An 8×8 digit, 0 to 16, as a JPEG of `SIDE` pixels."""
    image = tf.image.resize(pixels[..., np.newaxis] * 255 / 16, [SIDE - 2 * MARGIN] * 2, "bicubic")
    image = tf.pad(tf.clip_by_value(image, 0, 255), [[MARGIN, MARGIN], [MARGIN, MARGIN], [0, 0]])
    return tf.io.encode_jpeg(tf.image.grayscale_to_rgb(tf.cast(image, tf.uint8)), quality=95).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder to write to")
    out = parser.parse_args().out
    digits = load_digits()
    held_out = np.arange(len(digits.target)) % 5 == 0
    for split, chosen, shards in (("train", ~held_out, 4), ("validation", held_out, 1)):
        images, labels = digits.images[chosen], digits.target[chosen]

        def example(i: int, images=images, labels=labels, split=split) -> bytes:
            digit = int(labels[i])
            return imagenet_example(jpeg(images[i]), digit + 1, SIDE, SIDE, f"{split}-{i}.JPEG", str(digit), str(digit))

        write_shards(out, split, example, examples=len(labels), shards=shards)


if __name__ == "__main__":
    main()
