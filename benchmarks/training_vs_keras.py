"""Training on this machine: zoo's step and loop against the same network of Keras's own layers under Keras `fit`.

    python benchmarks/training_vs_keras.py --model=resnet50 --batch=16 --size=224

Float32, one synthetic batch in memory, the same optimizer and loss. ResNet-50's peer is `keras.applications.ResNet50`; those of
the others are zoo's networks with each layer of zoo replaced by Keras's, auxiliary head included. The peer runs at its best of
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
from zoo.models import bilstm, inception_v3, resnet50
from zoo.optimizers import adam, rmsprop, sgd, step_decay

VOCABULARY = 20_000
# Of each network: itself, zoo's optimizer, Keras's.
MODELS = {
    "resnet50": (resnet50, sgd, lambda: keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True)),
    "inception_v3": (inception_v3, rmsprop, lambda: keras.optimizers.RMSprop(0.01, rho=0.9, momentum=0.9, epsilon=1.0)),
    "bilstm": (bilstm, adam, lambda: keras.optimizers.Adam(0.001)),
}


def zoo_block(name: str, batch: int, size: int, steps: int):
    """A function that trains `steps` steps of zoo and returns when they are done."""
    model, optimizer, _ = MODELS[name]
    experiment = Experiment(
        model=model,
        data=synthetic,
        optimizer=optimizer,
        learning_rate=step_decay,
        input_size=size,
        sequence_length=size,
        vocabulary_size=VOCABULARY,
        num_classes=1000,
        global_batch_size=batch,
        train_steps=10_000,
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


def peer_model(name: str, size: int) -> keras.Model:
    """The network of Keras's own layers."""
    if name == "resnet50":
        return keras.applications.ResNet50(
            weights=None, classes=1000, input_shape=(size, size, 3), classifier_activation=None
        )
    options = {"sequence_length": size, "vocabulary_size": VOCABULARY} if name == "bilstm" else {"input_size": size}
    model = MODELS[name][0](num_classes=1000, **options)
    return keras.models.clone_model(
        model,
        clone_function=lambda layer: (
            layer.stock() if hasattr(layer, "stock") else type(layer).from_config(layer.get_config())
        ),
    )


def keras_block(name: str, batch: int, size: int, steps: int, jit_compile: bool, steps_per_execution: int):
    """The same of the peer under `fit`."""
    model = peer_model(name, size)
    heads = len(model.outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        optimizer=MODELS[name][2](),
        loss=[loss] * heads if heads > 1 else loss,
        loss_weights=[1.0, 0.4][:heads] if heads > 1 else None,
        jit_compile=jit_compile,
        steps_per_execution=steps_per_execution,
    )
    rng = np.random.default_rng(0)
    shape, top = (batch, *model.input.shape[1:]), VOCABULARY if name == "bilstm" else 256
    inputs = tf.constant(rng.integers(1, top, shape), model.input.dtype)
    labels = tf.constant(rng.integers(0, 1000, batch), tf.int32)
    examples = (inputs, (labels,) * heads if heads > 1 else labels)
    dataset = tf.data.Dataset.from_tensors(examples).repeat().prefetch(2)
    return lambda: model.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=0)


def seconds(block) -> float:
    started = time.perf_counter()
    block()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="resnet50")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224, help="pixels, or tokens")
    parser.add_argument("--steps", type=int, default=5, help="steps in a timed block")
    parser.add_argument("--alternations", type=int, default=5)
    args = parser.parse_args()
    examples = args.batch * args.steps

    rates, blocks = {}, {}
    for jit_compile in (False, True):
        for steps_per_execution in sorted({1, args.steps}):
            block = keras_block(args.model, args.batch, args.size, args.steps, jit_compile, steps_per_execution)
            block()  # compiles
            label = f"jit_compile={jit_compile}, steps_per_execution={steps_per_execution}"
            rates[label], blocks[label] = examples / seconds(block), block
            print(f"keras, {label}: {rates[label]:.2f} examples/s", flush=True)
    label = max(rates, key=rates.get)
    peer = blocks[label]
    del blocks, block  # and with them the memory of the others
    ours = zoo_block(args.model, args.batch, args.size, args.steps)
    ours()
    times = []
    for i in range(args.alternations):
        theirs_s, ours_s = seconds(peer), seconds(ours)
        times.append((theirs_s, ours_s))
        shown = f"keras {examples / theirs_s:.2f} examples/s, zoo {examples / ours_s:.2f} examples/s"
        print(f"{i + 1}: {shown}, ratio {theirs_s / ours_s:.3f}", flush=True)
    ratios = [theirs_s / ours_s for theirs_s, ours_s in times]
    best = min(theirs_s for theirs_s, _ in times) / min(ours_s for _, ours_s in times)
    print(f"peer at its best: {label}")
    print(
        f"median ratio {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}; best over best {best:.3f}"
    )


if __name__ == "__main__":
    main()
