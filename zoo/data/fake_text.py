"""Fake texts on disk whose class is carried by the order of words alone, so that whoever learns them has used the recurrence.

Each text has every marker once, at random places among ordinary words, never two markers side by side. The class is a pair:
which of the first kind of marker (`a0`, `a1`, …) comes first, and which of the second kind (`b0`, …) comes last. So every
text has the same markers, and counts of words and of pairs of neighbours say nothing
(a test holds them to that). Ordinary words follow Zipf's law, and lengths vary.
"""

import csv
import math
import os

import numpy as np
import tensorflow as tf

from zoo.data.manifest import check_manifest, read_manifest, write_manifest
from zoo.guards import UserError

VERSION = 1
MANIFEST = "fake_text.json"
SPLITS = ("train", "validation")
ORDINARY_WORDS = 5_000


def markers(classes: int) -> tuple[int, int]:
    """How many markers of each kind tell `classes` classes apart."""
    first = math.ceil(math.sqrt(classes))
    return first, math.ceil(classes / first)


def shortest(classes: int) -> int:
    """Words of the shortest text that holds all markers apart."""
    return 2 * sum(markers(classes)) + 1


def fake_text(label: int, classes: int, longest: int, rng: np.random.Generator) -> str:
    """A text of a class, from `shortest(classes)` to `longest` words; `label` runs from 0."""
    counts = markers(classes)
    total = sum(counts)
    # The order of the markers: random, but for the one of the first kind that leads its kind and the one that ends the second.
    first, last = label // counts[1], label % counts[1]
    leading = [first, *rng.permutation([i for i in range(counts[0]) if i != first])]
    ending = [*rng.permutation([i for i in range(counts[1]) if i != last]), last]
    kinds = rng.permutation([0] * counts[0] + [1] * counts[1])
    queues = ([f"a{i}" for i in leading], [f"b{i}" for i in ending])
    ordered = [queues[kind].pop(0) for kind in kinds]
    length = int(rng.integers(shortest(classes), longest + 1))
    # Places with a gap between any two: distinct ones in a row that is shorter by the gaps, then spread out. Not at the ends:
    # there a marker would lack a neighbour, which pairs of neighbours would tell.
    places = np.sort(rng.choice(length - total - 1, total, replace=False)) + np.arange(total) + 1
    ranks = np.minimum(rng.zipf(1.2, length), 1e9).astype(int) % ORDINARY_WORDS
    words = [f"w{rank}" for rank in ranks]
    for place, marker in zip(places, ordered, strict=True):
        words[place] = marker
    return " ".join(words)


def write_fake_text(
    directory: str, *, train_texts: int, validation_texts: int, classes: int, longest: int, seed: int = 0
) -> None:
    """Writes `train.tsv` and `validation.tsv`, columns `text` and `label`, then a manifest; returns at once where they are.

    Args:
      directory: where to; any file system of TensorFlow.
      train_texts: how many.
      validation_texts: how many.
      classes: at least 2; labels run from 0.
      longest: words of the longest text.
      seed: of everything.

    Raises:
      UserError: if `longest` has no room for the markers of so many classes.
    """
    if longest < shortest(classes):
        raise UserError(
            f"Experiment.sequence_length = {longest}: fake texts of {classes} classes need at least {shortest(classes)} words. "
            "Bind more, or fewer classes."
        )
    counts = {"train": train_texts, "validation": validation_texts}
    wanted = {"version": VERSION, "classes": classes, "longest": longest, "seed": seed, "texts": counts}
    path = os.path.join(directory, MANIFEST)
    found = read_manifest(path)
    if found is not None:
        check_manifest(path, found, wanted, "set of fake texts")
        if all(tf.io.gfile.exists(os.path.join(directory, f"{split}.tsv")) for split in SPLITS):
            return
    try:
        tf.io.gfile.makedirs(directory)
    except tf.errors.OpError as error:
        raise UserError(f"{directory}: can't be written to ({error.message}). Choose another --data_dir.") from error
    for number, split in enumerate(SPLITS):
        rng = np.random.default_rng([seed, number])
        labels = rng.permutation(counts[split]) % classes
        with tf.io.gfile.GFile(os.path.join(directory, f"{split}.tsv"), "w") as file:
            writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
            writer.writerow(["text", "label"])
            writer.writerows([fake_text(int(label), classes, longest, rng), int(label)] for label in labels)
    write_manifest(path, wanted)
