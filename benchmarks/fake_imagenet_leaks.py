"""What the fake ImageNet gives away: to linear models of colour, and to the network under permuted labels.

    python benchmarks/fake_imagenet_leaks.py --data_dir=data

Ten classes, as many images as in gin/smoke.gin. Chance is 0.1. The permuted run is that of `make train` on the very same
images, with the training labels permuted.
"""

import argparse
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zoo import gin_config
from zoo.data.fake_imagenet import SPLITS, write_fake_imagenet
from zoo.data.records import write_shards
from zoo.experiment import Experiment
from zoo.train_and_evaluate import train_and_evaluate

CLASSES, TRAIN, VALIDATION = 10, 2_560, 500


def records(folder: str, split: str) -> list[bytes]:
    files = sorted(tf.io.gfile.glob(os.path.join(folder, f"{split}-*")))
    return list(tf.data.TFRecordDataset(files).as_numpy_iterator())


def thumbnails(serialized: list[bytes], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Images averaged down to `size`×`size` pixels, flattened, and their labels."""
    features, labels = [], []
    for record in serialized:
        feature = tf.train.Example.FromString(record).features.feature
        image = tf.io.decode_jpeg(feature["image/encoded"].bytes_list.value[0])
        features.append(tf.image.resize(image, [size, size], "area").numpy().ravel())
        labels.append(feature["image/class/label"].int64_list.value[0])
    return np.stack(features), np.array(labels)


def with_permuted_labels(serialized: list[bytes]) -> list[bytes]:
    examples = [tf.train.Example.FromString(record) for record in serialized]
    labels = [example.features.feature["image/class/label"].int64_list.value[0] for example in examples]
    for example, label in zip(examples, np.random.default_rng(0).permutation(labels), strict=True):
        example.features.feature["image/class/label"].int64_list.value[:] = [int(label)]
    return [example.SerializeToString() for example in examples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", default="data")
    folder = os.path.join(parser.parse_args().data_dir, f"fake_imagenet-{CLASSES}-classes-{TRAIN}-{VALIDATION}")
    write_fake_imagenet(folder, train_images=TRAIN, validation_images=VALIDATION, classes=CLASSES)
    train, validation = (records(folder, split) for split in SPLITS)
    for size, name in ((1, "mean colour"), (8, "8×8 thumbnail")):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(*thumbnails(train, size))
        print(f"logistic regression on the {name}: {model.score(*thumbnails(validation, size)):.3f}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        permuted = with_permuted_labels(train)
        write_shards(scratch, "train", permuted.__getitem__, examples=TRAIN, shards=10)
        write_shards(scratch, "validation", validation.__getitem__, examples=VALIDATION, shards=1)
        gin_config.parse(["gin/resnet_tpu.gin", "gin/smoke.gin"], ["Experiment.data = @imagenet"])
        result = train_and_evaluate(Experiment(), workdir=os.path.join(scratch, "run"), data_dir=scratch)
    print(f"ResNet-50 on permuted labels: {result.validation['top1']:.3f}")


if __name__ == "__main__":
    main()
