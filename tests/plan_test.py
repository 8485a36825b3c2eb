"""The numbers of a run."""

import functools

import keras
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.experiment import build
from zoo.optimizers import step_decay
from zoo.plan import Plan, checkpoint_bytes, describe, memory_bytes, record, warnings
from zoo.strategy import create_strategy


class PlanTest(parameterized.TestCase):
    PLAN = Plan(16, 50, 10.0, 2, 15, 7)

    def test_loops_end_at_every_boundary(self):
        step, ends = 0, []
        while step < 50:
            step = self.PLAN.loop_end(step)
            ends.append(step)
        self.assertEqual(ends, [7, 14, 15, 20, 21, 28, 30, 35, 40, 42, 45, 49, 50])

    def test_a_loop_of_seven_over_fifty_steps_ends_with_one(self):
        plan = Plan(16, 50, 10.0, 1000, 1000, 7)
        self.assertEqual((plan.loop_end(42), plan.loop_end(49)), (49, 50))

    @parameterized.parameters(
        (406.25, 1, 1625, [406, 812, 1218, 1625]),  # the last is the run's end, not one step before it
        (2.5, 1, 10, [2, 5, 7, 10]),
        (0.4, 1, 3, [1, 2, 3]),
        (10.0, 0.25, 10, [2, 5, 7, 10]),
        (10.0, 4, 10, [10]),
    )
    def test_evaluations(self, steps_per_epoch, every, total, expected):
        plan = Plan(16, total, steps_per_epoch, every, 10_000, 10_000)
        self.assertEqual([step for step in range(1, total + 1) if plan.evaluates_at(step)], expected)
        ends, step = [], 0
        while step < total:
            ends.append(step := plan.loop_end(step))
        self.assertEqual(ends, expected)

    def test_steps_of_epochs(self):
        experiment = tiny.experiment(train_steps=None, train_epochs=2.5)
        plan = Plan.of(experiment, experiment.create_data(""), 1)
        self.assertEqual((plan.total_steps, plan.steps_per_epoch, plan.eval_every_epochs), (10, 4.0, 1.0))


class EstimateTest(absltest.TestCase):
    def test_by_hand(self):
        """A dense layer of 12 inputs and 4 logits: 52 parameters."""

        def model(input_size, num_classes):
            images = keras.Input((input_size, input_size, 3), dtype="uint8")
            x = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(images))
            return keras.Model(images, keras.layers.Dense(num_classes)(x))

        experiment = tiny.experiment(model=model, input_size=2, microbatches=2)
        program = build(experiment, create_strategy("cpu").strategy, total_steps=1)
        # Weights, momenta, the optimizer's counter and its learning rate; then the gradients.
        self.assertEqual(checkpoint_bytes(program), 4 * (52 + 52 + 2))
        self.assertEqual(memory_bytes(experiment, program), (4 * (52 + 52 + 2 + 52), 8 * (12 + 12 + 12 + 4) * 4))


class DescribeTest(absltest.TestCase):
    def test_says_all_that_matters(self):
        experiment = tiny.experiment(cpu_replicas=2, microbatches=2, rehearsal=True)
        choice, data = experiment.create_strategy(), experiment.create_data("")
        plan = Plan.of(experiment, data, 2)
        text = describe(experiment, choice, data, plan, build(experiment, choice.strategy, total_steps=20))
        for words in (
            "REHEARSAL",
            "resnet, 4,908 trainable parameters, input (16, 16, 3), 4 classes",
            "16 over 2 replica(s), 8 each, in 2 microbatches",
            "20 steps = 5 epochs; evaluation every 1 epoch(s), checkpoint every 8, 3 steps per device loop",
            "float32; XLA: off; seed 0",
            "FusedBatchNormV3 in 9 layers; those of Keras elsewhere",
            "GB per replica",
        ):
            self.assertIn(words, text)


class RecordTest(absltest.TestCase):
    def record(self, experiment=tiny.experiment, **changes):
        experiment = experiment(**changes)
        data = experiment.create_data("")
        choice = experiment.create_strategy()
        plan = Plan.of(experiment, data, choice.replicas)
        return record(experiment, plan, data, build(experiment, choice.strategy, total_steps=plan.total_steps))

    def test_functions_are_told_apart_by_name_and_options(self):
        rates = (functools.partial(step_decay, decay=decay) for decay in (0.1, 0.2))
        a, b = (self.record(learning_rate=rate)["Experiment.learning_rate"] for rate in rates)
        self.assertEqual((a, b), ("@step_decay(decay=0.1)", "@step_decay(decay=0.2)"))

    def test_where_it_runs_is_not_in_it(self):
        self.assertEqual(self.record(), self.record(accelerator="auto", allow_cpu=True, steps_per_loop=7))
        self.assertNotEqual(self.record(), self.record(seed=1))
        self.assertNotEqual(self.record(), self.record(train_examples=48))

    def test_what_changes_the_statistics_of_batches_is_in_it(self):
        """Local batch normalization of two halves is another training, wherever the halves are."""
        one, replicas, parts = (self.record(**c) for c in ({}, {"cpu_replicas": 2}, {"microbatches": 2}))
        self.assertEqual(replicas, parts)
        self.assertEqual({name for name in one if one[name] != parts[name]}, {"examples normalized together"})
        one, parts = (self.record(tiny.text_experiment, microbatches=n) for n in (1, 2))
        self.assertEqual(one, parts)


class WarningsTest(absltest.TestCase):
    def test_batch_norm_that_has_not_settled(self):
        model = tiny.resnet_model(16, 4, norm_momentum=0.99)
        self.assertRegex(warnings(Plan(16, 50, 10.0, 2, 15, 7), model)[0], "momentum 0.99 keeps 61% .* after 50 steps")
        self.assertEqual(warnings(Plan(16, 500, 10.0, 2, 15, 7), model), [])
        self.assertEqual(warnings(Plan(16, 1, 10.0, 2, 15, 7), tiny.plain_model(16, 4)), [])


if __name__ == "__main__":
    absltest.main()
