"""What is saved comes back, on one replica and on several."""

import contextlib
import io
import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.checkpoints import Checkpoints
from zoo.experiment import build
from zoo.guards import UserError
from zoo.optimizers import rmsprop


class CheckpointsTest(absltest.TestCase):
    def program(self, replicas):
        experiment = tiny.experiment(cpu_replicas=replicas, average_decay=0.9, optimizer=rmsprop)
        strategy = experiment.create_strategy().strategy
        return strategy, build(experiment, strategy, total_steps=20).state

    def values(self, state):
        return [v.numpy() for v in (*state.model.weights, *state.averaged.weights, *state.optimizer.variables)]

    def test_from_two_replicas_to_one(self):
        with tempfile.TemporaryDirectory() as folder:
            strategy, state = self.program(2)
            rng = np.random.default_rng(0)
            with strategy.scope():
                for v in (*state.model.weights, *state.averaged.weights, *state.optimizer._velocities):
                    v.assign(rng.normal(size=v.shape))
                state.loss_scale.assign(4.0)
                checkpoints = Checkpoints(state, folder, keep=2)
                self.assertEqual((checkpoints.restore(), checkpoints.latest), (0, None))
                for step in (7, 9, 12):
                    state.step.assign(step)
                    self.assertEndsWith(checkpoints.save(), f"ckpt-{step}")
            kept = {name.split(".")[0] for name in os.listdir(os.path.join(folder, "checkpoints"))}
            self.assertEqual(kept, {"checkpoint", "ckpt-9", "ckpt-12"})
            other_strategy, other = self.program(1)
            with other_strategy.scope():
                self.assertEqual(Checkpoints(other, folder, keep=2).restore(), 12)
            for a, b in zip(self.values(state), self.values(other), strict=True):
                np.testing.assert_array_equal(a, b)
            self.assertEqual(float(other.loss_scale.numpy()), 4)


def garble(path):
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        content[len(content) // 2] ^= 255
        file.seek(0)
        file.write(content)


def truncate(path):
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) // 2)


def empty(path):
    open(path, "w").close()


class DamageTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        experiment = tiny.experiment()
        cls.strategy = experiment.create_strategy().strategy
        cls.state = build(experiment, cls.strategy, total_steps=20).state

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.workdir, self.folder = folder.name, os.path.join(folder.name, "checkpoints")
        self.save(8, 16, 24)

    def save(self, *steps):
        with self.strategy.scope():
            checkpoints = Checkpoints(self.state, self.workdir, keep=3)
            for step in steps:
                self.state.step.assign(step)
                checkpoints.save()

    def restore(self):
        with self.strategy.scope():
            self.state.step.assign(0)
            checkpoints = Checkpoints(self.state, self.workdir, keep=3)
            return checkpoints.restore(), os.path.basename(checkpoints.latest)

    def steps(self):
        return {name.split(".")[0] for name in os.listdir(self.folder)} - {"checkpoint"}

    @parameterized.parameters(os.remove, empty, truncate, garble)
    def test_the_list_of_checkpoints(self, damage):
        """Training never starts anew where checkpoints are, and old ones are still deleted in time."""
        damage(os.path.join(self.folder, "checkpoint"))
        self.assertEqual(self.restore(), (24, "ckpt-24"))
        self.save(32)
        self.assertEqual(self.steps(), {"ckpt-16", "ckpt-24", "ckpt-32"})
        self.assertEqual(tf.train.latest_checkpoint(self.folder), os.path.join(self.folder, "ckpt-32"))

    @parameterized.product(damage=(os.remove, empty, truncate, garble), suffix=(".data-00000-of-00001", ".index"))
    def test_the_newest(self, damage, suffix):
        damage(os.path.join(self.folder, "ckpt-24" + suffix))
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(self.restore(), (16, "ckpt-16"))
        if (damage, suffix) != (os.remove, ".index"):  # as of a save that was killed
            self.assertRegex(err.getvalue(), r"^Warning: .*ckpt-24 is damaged \(.+\) and left out.$")
        self.save(24)
        self.assertEqual(self.restore(), (24, "ckpt-24"))

    def test_all(self):
        for step in (8, 16, 24):
            truncate(os.path.join(self.folder, f"ckpt-{step}.data-00000-of-00001"))
        with (
            contextlib.redirect_stderr(io.StringIO()),
            self.assertRaisesRegex(UserError, "checkpoints: damaged, all 3 checkpoints.*another --workdir"),
        ):
            self.restore()

    @parameterized.parameters({"model": tiny.plain_model}, {"num_classes": 7})
    def test_another_network(self, **changes):
        other = build(tiny.experiment(**changes), self.strategy, total_steps=20).state
        with (
            self.strategy.scope(),
            self.assertRaisesRegex(UserError, "ckpt-24: does not fit this experiment.*another --workdir"),
        ):
            Checkpoints(other, self.workdir, keep=3).restore()


if __name__ == "__main__":
    absltest.main()
