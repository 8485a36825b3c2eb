"""A timed window holds the steps and nothing else."""

import tempfile
import time

from absl.testing import absltest

from tests import tiny
from zoo import timing
from zoo.checkpoints import Checkpoints
from zoo.experiment import build
from zoo.plan import Plan
from zoo.strategy import create_strategy
from zoo.train_and_evaluate import evaluate


class WindowTest(absltest.TestCase):
    def test_seconds(self):
        with timing.window() as window:
            self.assertIsNone(window.seconds)
            time.sleep(0.02)
        self.assertGreaterEqual(window.seconds, 0.02)
        self.assertLess(window.seconds, 0.5)

    def test_what_does_not_belong_there(self):
        experiment = tiny.experiment()
        strategy = create_strategy("cpu").strategy
        data = experiment.create_data("")
        program = build(experiment, strategy, total_steps=1)
        checkpoints = Checkpoints(program.state, self.enterContext(tempfile.TemporaryDirectory()), 1)
        with self.assertRaisesRegex(RuntimeError, "a checkpoint in a timed window"), timing.window() as window:
            checkpoints.save()
        self.assertIsNone(window.seconds)
        with self.assertRaisesRegex(RuntimeError, "an evaluation in a timed window"), timing.window():
            evaluate(data.evaluation, strategy, None, Plan.of(experiment, data, 1))
        with strategy.scope():
            checkpoints.save()  # the window is over


if __name__ == "__main__":
    absltest.main()
