"""Windows by hand, and what is measured: every feed and mode on a tiny network."""

import statistics
import tempfile

import numpy as np
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.benchmark import hardware, measure, result
from zoo.benchmark.measure import Windows
from zoo.guards import Diverged
from zoo.strategy import create_strategy


class WindowsTest(absltest.TestCase):
    def test_by_hand(self):
        """Ten steps of 4 examples in 1, 2, 2 and 5 seconds: 160 examples in 10 seconds."""
        found = Windows(10, 4, (1.0, 2.0, 2.0, 5.0)).summary()
        self.assertEqual(found["examples_per_second"], 16.0)
        self.assertEqual(found["step_seconds_median"], 0.2)
        self.assertAlmostEqual(found["standard_error"], statistics.stdev([40, 20, 20, 8]) / 2)
        # Deviations from the median of 0.2: 0.1, 0, 0, 0.3.
        self.assertAlmostEqual(found["step_seconds_jitter"], 1.4826 * 0.05)

    def test_nothing_timed(self):
        for steps, seconds in ((0, (1.0,)), (-1, (1.0,)), (10, ())):
            with self.assertRaisesRegex(ValueError, "nothing was timed"):
                Windows(steps, 4, seconds)

    def test_enough_windows_and_enough_time(self):
        calls = []
        windows = measure.timed_windows(calls.append, steps=3, examples=2, min_windows=4, min_seconds=0)
        self.assertEqual((calls, len(windows.seconds)), ([3] * 4, 4))
        windows = measure.timed_windows(lambda _: None, steps=3, examples=2, min_windows=1, min_seconds=0.01)
        self.assertGreaterEqual(sum(windows.seconds), 0.01)


class MeasureTest(parameterized.TestCase):
    def measure(self, experiment, **changes):
        options = {"feed": "both", "mode": "train", "data_dir": "", "min_windows": 2, "min_seconds": 0} | changes
        return measure.measure(experiment, experiment.create_strategy(), **options)

    @parameterized.product(feed=("device", "input", "both"), mode=("train", "inference"), replicas=(1, 2))
    def test_figures(self, feed, mode, replicas):
        experiment = tiny.experiment(cpu_replicas=replicas)
        figures, program = self.measure(experiment, feed=feed, mode=mode)
        self.assertEqual((figures["windows"], figures["steps_per_window"]), (2, experiment.steps_per_loop))
        rate = 2 * experiment.steps_per_loop * experiment.global_batch_size / sum(figures["window_seconds"])
        np.testing.assert_allclose(figures["examples_per_second"], rate, rtol=1e-3)
        self.assertEqual("synthetic" in figures["data"], feed == "device")
        self.assertGreater(figures["host_memory_peak_bytes"], 1e8)
        trained = {("train", "device"), ("train", "both")}
        steps = 1 + 3 * experiment.steps_per_loop if (mode, feed) in trained else 0
        self.assertEqual(int(program.state.step.numpy()), steps)

    def test_a_training_that_diverges_has_no_speed(self):
        def rate(*, global_batch_size, total_steps):
            return lambda step: float("inf")

        with self.assertRaisesRegex(Diverged, "no figure"):
            self.measure(tiny.experiment(learning_rate=rate))

    def test_profile(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        figures, _ = self.measure(tiny.experiment(), profile_dir=folder)
        self.assertEqual(figures["profile"], folder)
        self.assertNotEmpty(list(measure.tf.io.gfile.walk(folder)))

    def test_a_profiler_that_fails_costs_the_trace_alone(self):
        def fail(_):
            raise RuntimeError("no profiler")

        with absltest.mock.patch.object(measure.tf.profiler.experimental, "Profile", fail):
            figures, _ = self.measure(tiny.experiment(), profile_dir="/nowhere")
        self.assertIsNone(figures["profile"])
        self.assertGreater(figures["examples_per_second"], 0)


class ResultTest(absltest.TestCase):
    def test_what_a_row_says(self):
        experiment = tiny.text_experiment(usd_per_hour=3.6, cpu_replicas=2)
        choice = create_strategy("cpu", cpu_replicas=2)
        machine = hardware.look(choice)
        row = result.describe(experiment, choice, machine)
        self.assertEqual((row["model"], row["data_source"], row["sequence_length"]), ("bilstm", "synthetic", 12))
        self.assertEqual((row["replicas"], row["per_replica_batch_size"]), (2, experiment.global_batch_size // 2))
        self.assertEqual((row["usd_per_hour"], row["price_kind"]), (3.6, "given"))
        self.assertEqual(result.cost(100.0, row["usd_per_hour"]), {"usd_per_million_examples": 10.0})
        self.assertEqual(result.cost(100.0, None), {"usd_per_million_examples": None})
        self.assertIn("tensorflow", row["versions"])

    def test_of_a_network(self):
        _, program = MeasureTest().measure(tiny.text_experiment())
        row = result.describe_program(tiny.text_experiment(), create_strategy("cpu"), program)
        self.assertEqual((row["xla"], row["recurrent_kernel"]), ("gradients", "LSTM as a loop over time"))
        lstm, logits = 12 * 2 * (8 + 8) * 4 * 8, 16 * 4
        row = result.utilisation(program, "train", 10.0, "float32", False, hardware.look(create_strategy("cpu")), 1e6)
        self.assertEqual(row["flops_per_example"], 6 * (lstm + logits))
        self.assertAlmostEqual(row["utilisation_of_matrix_product"], 60 * (lstm + logits) / 1e6)
        self.assertIsNone(row["utilisation_of_peak"])


if __name__ == "__main__":
    absltest.main()
