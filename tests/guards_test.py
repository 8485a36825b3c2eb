"""Every check says the value, the rule and the fix."""

import os
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo import guards
from zoo.guards import UserError
from zoo.plan import Plan


class ExperimentTest(parameterized.TestCase):
    def test_a_sound_one_passes(self):
        guards.check_experiment(tiny.experiment())

    @parameterized.parameters(
        ({"per_replica_batch_size": 8}, "global_batch_size = 16 and .*per_replica_batch_size = 8: exactly one"),
        ({"global_batch_size": None}, "global_batch_size = None and .*exactly one"),
        ({"train_epochs": 3}, "train_epochs = 3 and .*train_steps = 20: exactly one"),
        ({"train_steps": 0}, "train_steps = 0: must be positive"),
        ({"precision": "float16"}, "precision = 'float16': must be one of .*Pure 16-bit"),
        ({"steps_per_loop": 0}, "steps_per_loop = 0: must be at least 1"),
        ({"checkpoint_every_steps": -1}, "checkpoint_every_steps = -1: must be at least 1"),
        ({"num_classes": 1}, "num_classes = 1: must be at least 2"),
        ({"label_smoothing": 1.0}, "label_smoothing = 1.0: must be at least 0 and below 1"),
        ({"weight_decay": -1e-4}, "weight_decay = -0.0001: must not be negative"),
        ({"clip_norm": 0.0}, "clip_norm = 0.0: must be positive"),
        ({"seed": -1}, "seed = -1: must lie between"),
        ({"eval_every_epochs": 0}, "eval_every_epochs = 0: must be positive"),
    )
    def test_mistakes(self, changes, message):
        with self.assertRaisesRegex(UserError, message):
            guards.check_experiment(tiny.experiment(**changes))

    def test_batch_that_cannot_be_dealt_out(self):
        with self.assertRaisesRegex(
            UserError, r"batch of 20 .*3 replica.*2 microbatch.*multiple of 6.*global_batch_size = 18"
        ):
            guards.check_batch(tiny.experiment(global_batch_size=20, microbatches=2), 3)
        guards.check_batch(tiny.experiment(global_batch_size=24, microbatches=2), 3)


class PlanTest(absltest.TestCase):
    def test_a_batch_of_more_than_all_examples(self):
        plan = Plan(64, 10, 0.5, 1, 1, 1)
        with self.assertRaisesRegex(UserError, "global batch of 64, but only 32 training examples.*at most 32"):
            guards.check_plan(plan, 32)
        guards.check_plan(plan, 64)


class RoomTest(absltest.TestCase):
    def test_memory(self):
        guards.check_memory(1000, "A buffer", "Lower it.")
        with self.assertRaisesRegex(
            UserError, r"A buffer needs about 1000000\.0 GB \(estimated\), this machine has .* Lower it"
        ):
            guards.check_memory(10**15, "A buffer", "Lower it.")

    def test_disk(self):
        guards.check_disk("/tmp/not/there/yet", 1000, "checkpoints")
        guards.check_disk("gs://bucket/run", 10**18, "checkpoints")
        with self.assertRaisesRegex(
            UserError, r"/tmp/x: checkpoints need about 1000000\.0 GB \(estimated\), .* GB are free"
        ):
            guards.check_disk("/tmp/x", 10**15, "checkpoints")


class WorkdirTest(absltest.TestCase):
    def test_the_same_run_or_none(self):
        with tempfile.TemporaryDirectory() as folder:
            workdir = os.path.join(folder, "a", "run")
            guards.check_workdir(workdir, {"Experiment.seed": "0"})
            self.assertFalse(os.path.exists(workdir))
            guards.claim_workdir(workdir, {"Experiment.seed": "0"})
            guards.check_workdir(workdir, {"Experiment.seed": "0"})
            with self.assertRaisesRegex(
                UserError, "holds another run: Experiment.seed is 0 there, 1 here; sgd.momentum is not"
            ):
                guards.check_workdir(workdir, {"Experiment.seed": "1", "sgd.momentum": "0.9"})

    def test_a_file_in_its_place(self):
        with (
            tempfile.NamedTemporaryFile() as file,
            self.assertRaisesRegex(UserError, f"--workdir={file.name}: can't be used"),
        ):
            guards.check_workdir(file.name, {})


class ExplainTest(absltest.TestCase):
    def explain(self, error, **changes):
        return str(guards.explain(error, tiny.experiment(**changes), rows=96))

    def test_label(self):
        error = ValueError("x\nassertion failed: [label] [1001] [is out of range: labels run from 1 to 1000] y")
        self.assertRegex(self.explain(error), "1001, is out of range: labels run from 1 to 1000")

    def test_what_the_input_raised(self):
        text = (
            "Graph execution error:\n\nAt node X\nInvalid JPEG data, size 3\n\t [[{{node X}}]]\n\t [[IteratorGetNext]]"
        )
        self.assertRegex(self.explain(ValueError(text)), "can't be read: Invalid JPEG data, size 3. Point")

    def test_out_of_memory(self):
        error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[1]")
        self.assertRegex(self.explain(error), "Out of memory with 96 examples.*Experiment.microbatches = 2, and")
        self.assertRegex(self.explain(error, microbatches=4), "Experiment.microbatches = 6, and")
        self.assertRegex(self.explain(error, microbatches=96), "Lower the input size")

    def test_disk_full(self):
        error = tf.errors.ResourceExhaustedError(None, None, "/runs/ckpt-8.data; No space left on device")
        self.assertRegex(self.explain(error), "^The disk is full .*ckpt-8.data.*Make room")

    def test_others_are_not_for_users(self):
        self.assertIsNone(guards.explain(ValueError("a bug"), tiny.experiment(), 8))


if __name__ == "__main__":
    absltest.main()
