"""`python -m zoo.benchmark`: its processes, its rows, its table, and what it refuses."""

import contextlib
import io
import os
import subprocess
import tempfile
from unittest import mock

from absl.testing import absltest

from zoo.benchmark import __main__ as command
from zoo.benchmark import one, rows
from zoo.guards import UserError

GIN = """
include 'gin/resnet_cpu.gin'
Experiment.model = @resnet18
Experiment.input_size = 32
Experiment.global_batch_size = 4
Experiment.steps_per_loop = 2
Experiment.train_examples = 16
Experiment.eval_examples = 8
"""


class CommandTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.gin, self.out = (os.path.join(self.folder, name) for name in ("tiny.gin", "rows.jsonl"))
        with open(self.gin, "w") as file:
            file.write(GIN)
        # In the tests, a measurement runs in this process; `test_in_processes` has them as they are.
        self.calls, self.code = [], 0

    def run_here(self, argv):
        self.calls.append(argv)
        if self.code:
            return mock.Mock(returncode=self.code)
        with contextlib.suppress(UserError):
            one.main(one.parser().parse_args(argv[3:]))
            return mock.Mock(returncode=0)
        return mock.Mock(returncode=2)

    def benchmark(self, *flags, run=None):
        argv = [f"--gin_file={self.gin}", f"--out={self.out}", f"--data_dir={self.folder}/data"]
        args = command.parser().parse_args([*argv, "--min_windows=2", "--min_seconds=0", *flags])
        out = io.StringIO()
        with (
            mock.patch.object(command, "subprocess", mock.Mock(run=run or self.run_here)),
            contextlib.redirect_stdout(out),
        ):
            command.main(args)
        return out.getvalue()

    def test_in_processes(self):
        """All three rates, each from a process of its own; what bounds them; no dollars for a CPU."""
        shown = self.benchmark(run=subprocess.run)
        found = rows.read(self.out)
        self.assertEqual([row["feed"] for row in found], ["device", "input", "both"])
        for row in found:
            self.assertEqual((row["status"], row["short"], row["windows"]), ("ok", True, 2))
            self.assertEqual((row["model"], row["variant"], row["global_batch_size"]), ("resnet18", "v1.5", 4))
            self.assertIsNone(row["usd_per_million_examples"])
            self.assertLen(row["operative_config_sha256"], 64)
        self.assertRegex(shown, r"Limit: the (device|input)\. The device alone")
        self.assertRegex(shown, "Price: none is known for cpu")
        self.assertEqual(shown.count("| resnet18 |"), 3)

    def test_a_sweep_goes_on_where_it_ended(self):
        flags = ["--feed=input", "--sweep=Experiment.global_batch_size = 2 | 4", "--sweep=Experiment.seed = 0|1"]
        shown = self.benchmark(*flags)
        self.assertLen(self.calls, 4)
        batches = [(row["global_batch_size"], row["seed"]) for row in rows.read(self.out)]
        self.assertEqual(batches, [(2, 0), (2, 1), (4, 0), (4, 1)])
        self.assertEqual(self.benchmark(*flags).count("Measured before"), 4)
        self.assertLen(self.calls, 4)
        self.assertEqual(shown.count("| resnet18 |"), 4)
        with open(self.gin, "a") as file:
            file.write("Experiment.weight_decay = 1e-5\n")
        self.benchmark(*flags[:2])
        self.assertLen(self.calls, 6)  # another experiment, so measured anew

    def test_out_of_memory_is_a_row(self):
        from zoo.benchmark import measure

        error = measure.tf.errors.ResourceExhaustedError(None, None, "failed to allocate memory")
        with (
            mock.patch.object(measure, "prepare", side_effect=error),
            self.assertRaises(SystemExit) as ended,
        ):
            self.benchmark("--feed=both")
        (row,) = rows.read(self.out)
        self.assertEqual((ended.exception.code, row["status"], row["global_batch_size"]), (1, "failed", 4))
        self.assertRegex(row["error"], "Out of memory with 4 examples per replica.*microbatches = 2")

    def test_a_process_that_is_killed_is_a_row(self):
        self.code = -9
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
            self.benchmark("--feed=both")
        (row,) = rows.read(self.out)
        self.assertEqual((ended.exception.code, row["status"]), (1, "failed"))
        self.assertRegex(row["error"], "killed by signal 9, as a system does that is out of memory")

    def test_a_mistake_ends_it_without_a_row(self):
        with self.assertRaises(SystemExit) as ended:
            self.benchmark("--gin_bindings=Experiment.steps_per_loop = 0", "--sweep=Experiment.seed = 0 | 1")
        self.assertEqual(ended.exception.code, 2)
        self.assertLen(self.calls, 1)

    def test_synthetic_data_have_no_input(self):
        data = "--gin_bindings=Experiment.data = @synthetic"
        with self.assertRaisesRegex(UserError, "--feed=both: there is no input to measure"):
            self.benchmark(data, "--feed=both")
        self.benchmark(data)
        self.assertEqual([row["feed"] for row in rows.read(self.out)], ["device"])

    def test_sweeps_that_are_none(self):
        for sweep in ("Experiment.seed", "Experiment.seed ="):
            with self.assertRaisesRegex(UserError, "must look like"):
                self.benchmark(f"--sweep={sweep}")


if __name__ == "__main__":
    absltest.main()
