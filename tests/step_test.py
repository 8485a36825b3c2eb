"""The same training on any number of replicas and microbatches, and as NumPy does it."""

import functools

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.experiment import build, create_model
from zoo.input_pipelines import pipeline
from zoo.loop import make_eval_loop, make_train_loop
from zoo.models.batch_norm import BatchNorm
from zoo.models.position import Position, at
from zoo.optimizers import rmsprop
from zoo.step import STEPS_TO_DOUBLE, cross_entropy, make_eval_step, sum_over_replicas


def train(experiment, loops):
    """Weights before and after, of the first replica, and the loss of each loop."""
    choice = experiment.create_strategy()
    data = experiment.create_data("")
    program = build(experiment, choice.strategy, total_steps=experiment.train_steps)
    batch = experiment.batch_size(choice.replicas)
    with choice.strategy.scope():
        before = [v.numpy() for v in program.state.model.weights]
        batches = pipeline.train_iterator(
            data.train, choice.strategy, seed=experiment.seed, start_step=0, global_batch_size=batch
        )
        loop = make_train_loop(choice.strategy, program.train_step)
        losses = [float(loop(batches, tf.constant(n))["loss"]) / n for n in loops]
        for v in program.state.model.weights:  # every replica holds the same
            copies = [copy.numpy() for copy in choice.strategy.experimental_local_results(v.value)]
            for copy in copies[1:]:
                np.testing.assert_array_equal(copy, copies[0])
    return before, [v.numpy() for v in program.state.model.weights], losses


def distance(run, reference):
    """‖Δw − Δw₁‖ / ‖Δw₁‖ over all weights and moving statistics."""
    delta, expected = ([b - a for a, b in zip(r[0], r[1], strict=True)] for r in (run, reference))
    norm = lambda arrays: np.sqrt(sum(np.sum(np.square(a, dtype="float64")) for a in arrays))  # noqa: E731
    return norm([d - e for d, e in zip(delta, expected, strict=True)]) / norm(expected)


class ReplicasTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("plain", tiny.plain_model, ((1, 1), (2, 1), (4, 1), (1, 4), (2, 2)), False),
        ("plain_xla", tiny.plain_model, ((1, 1), (2, 1), (1, 4)), True),
        ("dropout_and_aux", tiny.two_headed_model, ((1, 1), (2, 1), (4, 1), (1, 4), (2, 2)), False),
        ("dropout_and_aux_xla", tiny.two_headed_model, ((1, 1), (2, 1), (1, 4)), True),
        ("local_norm", tiny.smooth_model, ((1, 4), (2, 2), (4, 1)), False),
        (
            "synchronized_norm",
            functools.partial(tiny.smooth_model, synchronized=True),
            ((1, 1), (2, 1), (4, 1)),
            False,
        ),
    )
    def test_same_training(self, model, layouts, xla):
        runs = []
        for replicas, microbatches in layouts:
            experiment = tiny.experiment(
                model=model, cpu_replicas=replicas, microbatches=microbatches, xla=xla, train_steps=20
            )
            runs.append(train(experiment, [5] * 4))
        for (replicas, microbatches), run in zip(layouts, runs, strict=True):
            with self.subTest(replicas=replicas, microbatches=microbatches):
                self.assertLess(distance(run, runs[0]), 1e-4)
                np.testing.assert_allclose(run[2], runs[0][2], rtol=1e-4)
                self.assertLess(run[2][-1], 0.9 * run[2][0])

    @parameterized.parameters(False, True)
    def test_same_training_of_texts(self, xla):
        """Dropout is on; the synthetic batch repeats, so that it is learned."""
        runs = []
        for replicas, microbatches in ((1, 1), (2, 1), (4, 1), (1, 4), (2, 2)):
            experiment = tiny.text_experiment(cpu_replicas=replicas, microbatches=microbatches, xla=xla)
            runs.append(train(experiment, [5] * 4))
        for run in runs:
            self.assertLess(distance(run, runs[0]), 1e-4)
            np.testing.assert_allclose(run[2], runs[0][2], rtol=1e-4)
            self.assertLess(run[2][-1], run[2][0])

    def test_loops_of_texts(self):
        experiment = tiny.text_experiment(train_steps=7)
        single, loops = train(experiment, [1] * 7), train(experiment, [3, 3, 1])
        for a, b in zip(single[1], loops[1], strict=True):
            np.testing.assert_array_equal(a, b)

    def test_loops_of_three_equal_single_steps(self):
        experiment = tiny.experiment(train_steps=7)
        single, loops = train(experiment, [1] * 7), train(experiment, [3, 3, 1])
        for a, b in zip(single[1], loops[1], strict=True):
            np.testing.assert_array_equal(a, b)


class AverageTest(absltest.TestCase):
    def test_moving_average_by_hand(self):
        """Of weights and statistics, warmed up; on two replicas; under RMSProp and with warming batch normalization."""

        def model(input_size, num_classes):
            images = keras.Input((input_size, input_size, 3), dtype="uint8")
            x = BatchNorm(momentum=0.996, warmup=True, scale=False, name="norm")(
                keras.layers.Rescaling(1 / 255)(images)
            )
            return keras.Model(images, keras.layers.Dense(num_classes)(keras.layers.Flatten()(x)))

        experiment = tiny.experiment(model=model, cpu_replicas=2, average_decay=0.3, optimizer=rmsprop, train_steps=6)
        choice, data = experiment.create_strategy(), experiment.create_data("")
        program = build(experiment, choice.strategy, total_steps=6)
        state = program.state
        with choice.strategy.scope():
            batches = pipeline.train_iterator(data.train, choice.strategy, seed=0, start_step=0, global_batch_size=16)
            loop = make_train_loop(choice.strategy, program.train_step)
            expected = [v.numpy() for v in state.model.weights]
            for a, b in zip(state.averaged.weights, expected, strict=True):
                np.testing.assert_array_equal(a.numpy(), b)
            for step in range(6):
                loop(batches, tf.constant(1))
                decay = min(0.3, (1 + step) / (10 + step))
                expected = [
                    decay * e + (1 - decay) * v.numpy() for e, v in zip(expected, state.model.weights, strict=True)
                ]
            for a, b in zip(state.averaged.weights, expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-7)
                self.assertLen(
                    {copy.numpy().tobytes() for copy in choice.strategy.experimental_local_results(a.value)}, 1
                )

    def test_batch_norm_warms_up(self):
        layer = BatchNorm(momentum=0.996, warmup=True)
        x = tf.random.stateless_normal([64, 4, 4, 2], [1, 2], 5.0)
        for step in range(3):
            before = layer.moving_mean.numpy() if layer.built else np.zeros(2)
            with at(Position(tf.constant(step, tf.int64), tf.constant(0, tf.int64))):
                layer(x, training=True)
            momentum = (1 + step) / (10 + step)
            expected = momentum * before + (1 - momentum) * x.numpy().mean((0, 1, 2))
            np.testing.assert_allclose(layer.moving_mean, expected, rtol=1e-5)

    def test_only_the_first_output_is_evaluated(self):
        experiment = tiny.experiment(model=tiny.two_headed_model)
        model = create_model(experiment)
        images, labels = tiny.arrays(16)
        result = make_eval_step(model)(tf.constant(images), tf.constant(labels), tf.ones([16]))
        logits, auxiliary = model.predict(images, verbose=0)
        self.assertEqual(int(result["top1"]), int(np.sum(logits.argmax(1) == labels)))
        self.assertFalse(np.allclose(logits, auxiliary))


class NumpyTest(absltest.TestCase):
    def test_equals_sgd_by_hand(self):
        """Softmax regression under L2, clipping, Nesterov momentum, label smoothing and warm-up, written out."""

        def model(input_size, num_classes):
            images = keras.Input((input_size, input_size, 3), dtype="uint8")
            x = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(images))
            return keras.Model(images, keras.layers.Dense(num_classes, name="logits")(x))

        steps, rows = 12, 16
        experiment = tiny.experiment(
            model=model,
            cpu_replicas=2,
            train_steps=steps,
            weight_decay=0.02,
            clip_norm=0.5,
            data=functools.partial(tiny.data, augment=False),
        )
        before, after, losses = train(experiment, [1] * steps)
        images, labels = tiny.arrays(64)
        w, b = (a.astype("float64") for a in before)
        velocity_w, velocity_b = np.zeros_like(w), np.zeros_like(b)
        order = pipeline.raw_stream(tiny.source(64), experiment.seed, 0).map(lambda position, index: index)
        order = np.array(list(order.take(steps * rows).as_numpy_iterator())).reshape(steps, rows)
        clipped = 0
        for step, batch in enumerate(order):
            x = images[batch].reshape(rows, -1) / 255.0
            target = np.eye(4)[labels[batch]] * 0.9 + 0.1 / 4
            scores = x @ w + b
            p = np.exp(scores - scores.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            np.testing.assert_allclose(losses[step], -np.sum(target * np.log(p)) / rows, rtol=1e-5)
            gradient_w, gradient_b = x.T @ (p - target) / rows + 0.02 * w, (p - target).sum(0) / rows
            norm = np.sqrt((gradient_w**2).sum() + (gradient_b**2).sum())
            clipped += norm > 0.5
            scale = min(1, 0.5 / norm)
            epoch = step * 90 / steps
            rate = 0.8 * rows / 256 * min(epoch / 9, 1) * 0.1 ** sum(epoch >= e for e in (30, 60, 80))
            velocity_w = 0.9 * velocity_w - rate * scale * gradient_w
            velocity_b = 0.9 * velocity_b - rate * scale * gradient_b
            w += 0.9 * velocity_w - rate * scale * gradient_w
            b += 0.9 * velocity_b - rate * scale * gradient_b
        self.assertGreater(clipped, 0)
        np.testing.assert_allclose(after[0], w, atol=2e-6)
        np.testing.assert_allclose(after[1], b, atol=2e-6)


class LossScaleTest(parameterized.TestCase):
    def program(self, replicas=2, all_reduce=sum_over_replicas, **changes):
        options = {"precision": "mixed_float16", "model": tiny.smooth_model, "cpu_replicas": replicas} | changes
        experiment = tiny.experiment(**options)
        strategy = experiment.create_strategy().strategy
        return experiment, strategy, build(experiment, strategy, total_steps=20, all_reduce=all_reduce)

    def test_inf_on_one_replica_skips_the_step_everywhere(self):
        def with_a_fault(tensors):
            second = tf.distribute.get_replica_context().replica_id_in_sync_group == 1
            return sum_over_replicas([tf.where(second, float("inf"), tensors[0]), *tensors[1:]])

        experiment, strategy, program = self.program(all_reduce=with_a_fault)
        state = program.state
        with strategy.scope():
            state.step.assign(5)
            before = [v.numpy() for v in (*state.model.weights, *state.optimizer.variables)]
            source = experiment.create_data("").train
            batches = pipeline.train_iterator(source, strategy, seed=0, start_step=0, global_batch_size=16)
            totals = make_train_loop(strategy, program.train_step)(batches, tf.constant(1))
            for v, old in zip((*state.model.weights, *state.optimizer.variables), before, strict=True):
                for copy in strategy.experimental_local_results(v.value):
                    np.testing.assert_array_equal(copy.numpy(), old)
            for v, value in ((state.loss_scale, 2.0**14), (state.step, 6)):
                self.assertEqual([float(x) for x in strategy.experimental_local_results(v)], [value] * 2)
        self.assertEqual((int(totals["skipped"]), int(totals["sound_steps"]), float(totals["loss"])), (1, 1, 0.0))

    def test_the_scale_doubles_and_the_least_scale_is_divergence(self):
        images, labels = tiny.arrays(16)
        batch = (tf.constant(images), tf.constant(labels), tf.ones([16]))
        _, strategy, program = self.program(replicas=1)
        step = tf.function(lambda: strategy.run(program.train_step, args=batch))
        with strategy.scope():
            program.state.steps_at_scale.assign(STEPS_TO_DOUBLE - 1)
            program.state.loss_scale.assign(8.0)
            result = step()
            self.assertEqual((float(result["skipped"]), float(result["sound"])), (0, 1))
            self.assertEqual(
                (float(program.state.loss_scale.numpy()), int(program.state.steps_at_scale.numpy())), (16, 0)
            )
            program.state.loss_scale.assign(float("inf"))
            self.assertEqual((float(step()["sound"]), float(step()["skipped"])), (1, 1))
            program.state.model.weights[0].assign(np.full(program.state.model.weights[0].shape, np.nan))
            program.state.loss_scale.assign(1.0)
            self.assertEqual(float(step()["sound"]), 0)

    def test_one_and_two_replicas_agree(self):
        options = {"precision": "mixed_float16", "model": tiny.plain_model}
        one, two = (train(tiny.experiment(cpu_replicas=n, **options), [5] * 4) for n in (1, 2))
        self.assertLess(
            distance(two, one), 0.05
        )  # float16 rounds at 5e-4, twenty times over; a sum taken twice gives 1
        self.assertLess(one[2][-1], 0.9 * one[2][0])

    def test_scaling_changes_nothing_where_nothing_is_rounded(self):
        """Of the same float16 run, a scale of 1 and one of 1024 give the same weights, since it is a power of two."""
        runs = []
        images, labels = tiny.arrays(16)
        batch = (tf.constant(images), tf.constant(labels), tf.ones([16]))
        for scale in (256.0, 1024.0):
            _, strategy, program = self.program(replicas=1, model=tiny.plain_model)
            with strategy.scope():
                program.state.step.assign(5)
                program.state.loss_scale.assign(scale)
                tf.function(strategy.run)(program.train_step, args=batch)
                runs.append([v.numpy() for v in program.state.model.weights])
        for a, b in zip(*runs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class MicrobatchTest(absltest.TestCase):
    def test_moving_statistics_take_one_step_per_update(self):
        """The moving mean after one step is that of the mean over microbatches, not of k steps in a row."""

        def model(input_size, num_classes):
            images = keras.Input((input_size, input_size, 3), dtype="uint8")
            x = BatchNorm(momentum=0.9, name="norm")(keras.layers.Rescaling(1 / 255)(images))
            return keras.Model(images, keras.layers.Dense(num_classes)(keras.layers.Flatten()(x)))

        experiment = tiny.experiment(
            model=model, microbatches=4, data=functools.partial(tiny.data, augment=False), train_steps=1
        )
        _, after, _ = train(experiment, [1])
        images, _ = tiny.arrays(64)
        order = pipeline.raw_stream(tiny.source(64), experiment.seed, 0).map(lambda position, index: index)
        x = images[np.array(list(order.take(16).as_numpy_iterator()))] / 255.0
        np.testing.assert_allclose(after[2], 0.1 * x.mean((0, 1, 2)), rtol=1e-5)
        parts = x.reshape(4, -1, 3)
        np.testing.assert_allclose(after[3], 0.9 + 0.1 * parts.var(1, ddof=1).mean(0), rtol=1e-5)


class EvaluationTest(absltest.TestCase):
    def test_every_example_once(self):
        """130 examples in batches of 64 on 2 replicas: the figures are those counted from the logits."""
        experiment = tiny.experiment(cpu_replicas=2, global_batch_size=64, eval_examples=130, num_classes=8)
        choice = experiment.create_strategy()
        source = experiment.create_data("").evaluation
        program = build(experiment, choice.strategy, total_steps=1)
        with choice.strategy.scope():
            batches = pipeline.eval_iterator(source, choice.strategy, global_batch_size=64)
            steps = pipeline.eval_steps(source, 64)
            totals = make_eval_loop(choice.strategy, program.eval_step)(batches, tf.constant(steps))
        images, labels = tiny.arrays(130, seed=1, classes=8)
        logits = program.state.model.predict(images, verbose=0)
        ranks = np.argsort(-logits, axis=1, kind="stable")
        self.assertEqual(int(totals["examples"]), 130)
        self.assertEqual(int(totals["top1"]), int(np.sum(ranks[:, 0] == labels)))
        self.assertEqual(int(totals["top5"]), int(np.sum(ranks[:, :5] == labels[:, None])))
        log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        np.testing.assert_allclose(float(totals["loss"]), -log_p[np.arange(130), labels].sum(), rtol=1e-5)

    def test_ties_are_not_hits(self):
        """A network that gives every class the same score is right as often as the first class is."""
        images = keras.Input((2, 2, 3), dtype="uint8")
        x = keras.layers.Flatten()(keras.layers.Rescaling(1.0)(images))
        step = make_eval_step(keras.Model(images, keras.layers.Dense(10, kernel_initializer="zeros")(x)))
        result = step(tf.zeros([10, 2, 2, 3], tf.uint8), tf.range(10), tf.ones([10]))
        self.assertEqual((float(result["top1"]), float(result["top5"])), (1, 5))


class CrossEntropyTest(parameterized.TestCase):
    @parameterized.parameters(0.0, 0.1)
    def test_equals_keras(self, smoothing):
        logits = np.random.default_rng(0).normal(size=(6, 5)).astype("float32") * 4
        labels = np.array([0, 1, 2, 3, 4, 0], "int32")
        oracle = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=smoothing, reduction="none")
        expected = oracle(np.eye(5, dtype="float32")[labels], logits)
        np.testing.assert_allclose(cross_entropy(labels, tf.constant(logits), smoothing), expected, rtol=1e-5)


if __name__ == "__main__":
    absltest.main()
