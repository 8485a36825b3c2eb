"""ResNet-50 training on this machine: zoo's step and loop against keras.applications.ResNet50 under Keras `fit`.

    python benchmarks/resnet50_vs_keras.py

Batch 16, 224×224, float32, one synthetic batch in memory, SGD with Nesterov momentum. The peer runs at its best of
`jit_compile` and `steps_per_execution`. Both are compiled and warm before the first timed block; blocks alternate.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from zoo.experiment import Experiment, build
from zoo.input_pipelines.pipeline import train_iterator
from zoo.input_pipelines.synthetic import synthetic
from zoo.loop import make_train_loop
from zoo.models.resnet import resnet50
from zoo.optimizers import sgd, step_decay


def zoo_block(batch: int, size: int, steps: int):
    """A function that trains `steps` steps of zoo and returns when they are done."""
    experiment = Experiment(
        model=resnet50,
        data=synthetic,
        optimizer=sgd,
        learning_rate=step_decay,
        input_size=size,
        num_classes=1000,
        global_batch_size=batch,
        train_steps=10_000,
        weight_decay=1e-4,
        label_smoothing=0.1,
        accelerator="auto",
        allow_cpu=True,
    )
    strategy = experiment.create_strategy().strategy
    program = build(experiment, strategy, total_steps=10_000)
    source = experiment.create_data("").train
    with strategy.scope():
        batches = train_iterator(source, strategy, seed=0, start_step=0, global_batch_size=batch)
    loop = make_train_loop(strategy, program.train_step)
    return lambda: float(loop(batches, tf.constant(steps))["loss"])


def keras_block(batch: int, size: int, steps: int, jit_compile: bool, steps_per_execution: int):
    """The same of keras.applications under `fit`."""
    model = keras.applications.ResNet50(
        weights=None, classes=1000, input_shape=(size, size, 3), classifier_activation=None
    )
    model.compile(
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
        steps_per_execution=steps_per_execution,
    )
    rng = np.random.default_rng(0)
    examples = (
        tf.constant(rng.normal(size=(batch, size, size, 3)), tf.float32),
        tf.constant(rng.integers(0, 1000, batch), tf.int32),
    )
    dataset = tf.data.Dataset.from_tensors(examples).repeat().prefetch(2)
    return lambda: model.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=0)


def seconds(block) -> float:
    started = time.perf_counter()
    block()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=5, help="steps in a timed block")
    parser.add_argument("--alternations", type=int, default=5)
    args = parser.parse_args()
    images = args.batch * args.steps

    candidates = {}
    for jit_compile in (False, True):
        for steps_per_execution in (1, args.steps):
            block = keras_block(args.batch, args.size, args.steps, jit_compile, steps_per_execution)
            block()  # compiles
            label = f"jit_compile={jit_compile}, steps_per_execution={steps_per_execution}"
            candidates[label] = (seconds(block), block)
            print(f"keras, {label}: {images / candidates[label][0]:.2f} images/s", flush=True)
    label = min(candidates, key=lambda name: candidates[name][0])
    peer = candidates[label][1]
    ours = zoo_block(args.batch, args.size, args.steps)
    ours()
    times = []
    for i in range(args.alternations):
        theirs_s, ours_s = seconds(peer), seconds(ours)
        times.append((theirs_s, ours_s))
        rates = f"keras {images / theirs_s:.2f} images/s, zoo {images / ours_s:.2f} images/s"
        print(f"{i + 1}: {rates}, ratio {theirs_s / ours_s:.3f}", flush=True)
    ratios = [theirs_s / ours_s for theirs_s, ours_s in times]
    best = min(theirs_s for theirs_s, _ in times) / min(ours_s for _, ours_s in times)
    print(f"peer at its best: {label}")
    print(
        f"median ratio {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}; best over best {best:.3f}"
    )


if __name__ == "__main__":
    main()
