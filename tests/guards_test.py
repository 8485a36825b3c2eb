"""Every check says the value, the rule and the fix."""

from absl.testing import absltest, parameterized

from tests import tiny
from zoo import guards
from zoo.guards import UserError


class ExperimentTest(parameterized.TestCase):
    def test_a_sound_one_passes(self):
        guards.check_experiment(tiny.experiment())

    @parameterized.parameters(
        ({"per_replica_batch_size": 8}, "global_batch_size = 16 and .*per_replica_batch_size = 8: exactly one"),
        ({"global_batch_size": None}, "global_batch_size = None and .*exactly one"),
        ({"train_epochs": 3}, "train_epochs = 3 and .*train_steps = 20: exactly one"),
        ({"train_steps": 0}, "train_steps = 0: must be positive"),
        ({"precision": "float16"}, "precision = 'float16': must be"),
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


class DataErrorTest(absltest.TestCase):
    def test_label(self):
        error = ValueError("x\nassertion failed: [label] [1001] [is out of range: labels run from 1 to 1000] y")
        self.assertRegex(str(guards.explain_data_error(error)), "1001, is out of range: labels run from 1 to 1000")

    def test_what_the_input_raised(self):
        text = (
            "Graph execution error:\n\nAt node X\nInvalid JPEG data, size 3\n\t [[{{node X}}]]\n\t [[IteratorGetNext]]"
        )
        self.assertRegex(
            str(guards.explain_data_error(ValueError(text))), "can't be read: Invalid JPEG data, size 3. Write"
        )

    def test_others_are_not_ours(self):
        self.assertIsNone(guards.explain_data_error(ValueError("Out of memory")))


if __name__ == "__main__":
    absltest.main()
