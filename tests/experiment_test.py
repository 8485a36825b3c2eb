"""What `build` makes of an experiment."""

import functools

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.experiment import build, create_model
from zoo.guards import UserError
from zoo.input_pipelines.pipeline import train_iterator
from zoo.input_pipelines.synthetic import synthetic
from zoo.loop import make_train_loop
from zoo.models.resnet import resnet18
from zoo.strategy import create_strategy


class CreateModelTest(absltest.TestCase):
    def test_weights_follow_from_the_seed(self):
        a, b, c = (create_model(tiny.experiment(seed=seed)).get_weights() for seed in (0, 0, 1))
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
        self.assertFalse(np.array_equal(a[0], c[0]))

    def test_layers_of_one_shape_start_apart(self):
        model = create_model(tiny.experiment(model=functools.partial(tiny.resnet_model, zero_init_last_gamma=True)))
        kernels = [v.numpy() for v in model.trainable_variables if v.name == "kernel"]
        for i, a in enumerate(kernels):
            for b in kernels[:i]:
                self.assertFalse(a.shape == b.shape and np.array_equal(a, b))

    def test_the_policy_does_not_outlive_the_model(self):
        before = keras.config.dtype_policy().name
        create_model(tiny.experiment(precision="mixed_bfloat16"))
        self.assertEqual(keras.config.dtype_policy().name, before)

    def test_a_state_that_cannot_be_averaged(self):
        def model(input_size, num_classes):
            images = keras.Input((input_size, input_size, 3), dtype="uint8")
            x = keras.layers.Dropout(0.5)(keras.layers.Flatten()(keras.layers.Rescaling(1.0)(images)))
            return keras.Model(images, keras.layers.Dense(num_classes)(x))

        with self.assertRaisesRegex(UserError, "seed_generator.*can't be averaged"):
            create_model(tiny.experiment(model=model))


class BuildTest(parameterized.TestCase):
    def test_one_step_changes_every_weight(self):
        experiment = tiny.experiment(per_replica_batch_size=8, global_batch_size=None, cpu_replicas=2)
        strategy = experiment.create_strategy().strategy
        program = build(experiment, strategy, total_steps=1)
        self.assertEqual([spec.shape for spec in program.batch_spec], [(8, 16, 16, 3), (8,), (8,)])
        with strategy.scope():
            program.state.step.assign(1)  # the rate of step 0 is 0
        model = program.state.model
        before = [v.numpy() for v in model.weights]
        images, labels = tiny.arrays(8)
        batch = (tf.constant(images), tf.constant(labels), tf.ones([8]))
        tf.function(lambda: strategy.run(program.train_step, args=batch))()
        for v, old in zip(model.weights, before, strict=True):
            self.assertFalse(np.array_equal(v.numpy(), old), v.path)
        self.assertEqual(int(program.state.step.numpy()), 2)

    def test_another_all_reduce(self):
        """The seam that preflight and compare use: the step is told how many replicas there are and how they sum."""
        experiment = tiny.experiment(model=tiny.plain_model)
        seen = []

        def twice(tensors):
            seen.append(len(tensors))
            return [2 * t for t in tensors]

        program = build(experiment, tf.distribute.get_strategy(), total_steps=1, replicas=2, all_reduce=twice)
        images, labels = tiny.arrays(8)
        self.assertEqual(program.batch_spec[0].shape, (8, 16, 16, 3))
        program.train_step(tf.constant(images), tf.constant(labels), tf.ones([8]))
        self.assertEqual(seen, [len(program.state.model.weights)])

    @parameterized.parameters(("xla", True), ("microbatches", 2))
    def test_what_synchronized_statistics_do_not_go_with(self, option, value):
        model = functools.partial(tiny.resnet_model, synchronized_norm=True)
        experiment = tiny.experiment(model=model, cpu_replicas=2, **{option: value})
        strategy = create_strategy("cpu", cpu_replicas=2).strategy
        with self.assertRaisesRegex(UserError, f"Experiment.{option} = {value}: does not go with"):
            build(experiment, strategy, total_steps=1)

    def test_microbatches_of_a_large_network(self):
        """Large enough for Grappler to rewrite its sums, which made the second step fail."""
        experiment = tiny.experiment(
            model=resnet18, data=synthetic, input_size=32, global_batch_size=32, microbatches=4, cpu_replicas=2
        )
        strategy = experiment.create_strategy().strategy
        program = build(experiment, strategy, total_steps=10)
        with strategy.scope():
            source = experiment.create_data("").train
            batches = train_iterator(source, strategy, seed=0, start_step=0, global_batch_size=32)
            totals = make_train_loop(strategy, program.train_step)(batches, tf.constant(3))
        self.assertEqual(int(totals["sound_steps"]), 3)

    def test_mixed_bfloat16_trains(self):
        experiment = tiny.experiment(precision="mixed_bfloat16")
        strategy = experiment.create_strategy().strategy
        program = build(experiment, strategy, total_steps=10)
        images, labels = tiny.arrays(16)
        batch = (tf.constant(images), tf.constant(labels), tf.ones([16]))
        step = tf.function(lambda: strategy.run(program.train_step, args=batch))
        losses = [float(step()["loss"]) for _ in range(10)]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual({v.dtype for v in program.state.model.weights}, {"float32"})


if __name__ == "__main__":
    absltest.main()
