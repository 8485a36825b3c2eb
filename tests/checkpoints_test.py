"""What is saved comes back, on one replica and on several."""

import os
import tempfile

import numpy as np
from absl.testing import absltest

from tests import tiny
from zoo.checkpoints import Checkpoints
from zoo.experiment import build
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


if __name__ == "__main__":
    absltest.main()
