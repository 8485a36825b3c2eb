"""Small networks and data that the tests share."""

import functools

import keras
import numpy as np
import tensorflow as tf

from zoo.experiment import Experiment
from zoo.input_pipelines.pipeline import Data, Source
from zoo.input_pipelines.synthetic import synthetic
from zoo.models import resnet
from zoo.models.batch_norm import BatchNorm
from zoo.models.bilstm import bilstm
from zoo.models.dropout import Dropout
from zoo.optimizers import sgd, step_decay

SIZE, CLASSES = 16, 4


def resnet_model(input_size, num_classes, **options):
    return resnet.resnet(
        input_size,
        num_classes,
        block=resnet.bottleneck_block,
        stage_sizes=(1, 1),
        stage_filters=(8, 8),
        **options,
    )


def plain_model(input_size, num_classes):
    """A convolutional network without normalization, whose examples do not see one another."""
    images = keras.Input((input_size, input_size, 3), dtype="uint8")
    x = keras.layers.Rescaling(1 / 127.5, -1)(images)
    x = keras.layers.Conv2D(8, 3, strides=2, activation="relu")(x)
    x = keras.layers.Conv2D(8, 3, strides=2, activation="relu")(x)
    return keras.Model(images, keras.layers.Dense(num_classes)(keras.layers.Flatten()(x)))


def smooth_model(input_size, num_classes, synchronized=False):
    """A network with batch normalization and no kinks: where a ReLU flips on the last bit, runs part for good."""
    images = keras.Input((input_size, input_size, 3), dtype="uint8")
    x = keras.layers.Rescaling(1 / 127.5, -1)(images)
    for _ in range(2):
        x = keras.layers.Conv2D(8, 3, strides=2, use_bias=False)(x)
        x = keras.layers.Activation("tanh")(BatchNorm(synchronized=synchronized)(x))
    return keras.Model(images, keras.layers.Dense(num_classes)(keras.layers.Flatten()(x)))


def two_headed_model(input_size, num_classes):
    """A smooth network with dropout and an auxiliary head."""
    images = keras.Input((input_size, input_size, 3), dtype="uint8")
    x = keras.layers.Rescaling(1 / 127.5, -1)(images)
    x = keras.layers.Conv2D(8, 3, strides=2, activation="tanh")(x)
    auxiliary = keras.layers.Dense(num_classes)(keras.layers.Flatten()(x))
    x = keras.layers.Conv2D(8, 3, strides=2, activation="tanh")(x)
    x = Dropout(0.3, seed=5, name="dropout")(keras.layers.Flatten()(x))
    return keras.Model(images, [keras.layers.Dense(num_classes)(x), auxiliary])


def text_experiment(**changes):
    """A run of the text classifier, with dropout, on fake texts or on synthetic ones."""
    options = {
        "model": functools.partial(bilstm, units=8, embedding_units=8, dropout_rate=0.3),
        "data": synthetic,
        "input_size": None,
        "sequence_length": 12,
        "vocabulary_size": 40,
    }
    return experiment(**options | changes)


def arrays(examples, seed=0, size=SIZE, classes=CLASSES):
    """Noise images whose class is the quadrant that is brighter; uint8 and int32."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, examples).astype("int32")
    images = rng.integers(0, 160, (examples, size, size, 3))
    half = size // 2
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[row * half : (row + 1) * half, column * half : (column + 1) * half] += 90
    return images.astype("uint8"), labels


def source(examples, seed=0, augment=True, size=SIZE, classes=CLASSES):
    images, labels = arrays(examples, seed, size, classes)

    def epoch(seed, number):
        return tf.data.Dataset.range(examples).shuffle(
            examples, seed=seed * 1000 + number, reshuffle_each_iteration=False
        )

    def decode_eval(index):
        return tf.gather(images, index), tf.gather(labels, index)

    def decode_train(index, key):
        image, label = decode_eval(index)
        noise = tf.random.stateless_uniform(image.shape, key, 0, 6 if augment else 1, tf.int32)
        return image + tf.cast(noise, tf.uint8), label

    def in_order():
        return tf.data.Dataset.range(examples)

    return Source("arrays", examples, epoch, in_order, decode_train, decode_eval)


def data(request, augment=True):
    counts = (request.train_examples, request.eval_examples)
    shape = (request.input_size, request.num_classes)
    return Data(*(source(count, seed, augment, *shape) for seed, count in enumerate(counts)))


def experiment(**changes):
    """A run of 20 steps that any machine finishes in seconds."""
    options = {
        "model": resnet_model,
        "data": data,
        "optimizer": sgd,
        "learning_rate": functools.partial(step_decay, base_learning_rate=0.8, warmup_epochs=9),
        "input_size": SIZE,
        "num_classes": CLASSES,
        "global_batch_size": 16,
        "train_examples": 64,
        "eval_examples": 40,
        "train_steps": 20,
        "checkpoint_every_steps": 8,
        "steps_per_loop": 3,
        "weight_decay": 1e-3,
        "clip_norm": 1.0,
        "label_smoothing": 0.1,
        "accelerator": "cpu",
    }
    return Experiment(**options | changes)
