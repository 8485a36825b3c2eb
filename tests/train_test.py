"""The command line, as a person meets it."""

import os
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest

from zoo import devices

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def zoo_train(*flags, cwd=None):
    env = os.environ | {"PYTHONPATH": ROOT}
    return subprocess.run(
        [sys.executable, "-m", "zoo.train", *flags], cwd=cwd or ROOT, env=env, capture_output=True, text=True
    )


HAS_ACCELERATOR = devices.look() != devices.Found((), ())


class CommandLineTest(absltest.TestCase):
    def assert_refused(self, run, *words):
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        last = run.stderr.strip().splitlines()[-1]
        self.assertStartsWith(last, "zoo.train: ")
        for word in words:
            self.assertIn(word, last)

    def test_mistakes(self):
        self.assert_refused(zoo_train(), "--gin_file is missing", "gin/smoke.gin")
        self.assert_refused(zoo_train("--gin_file=gin/nothing.gin"), "gin/nothing.gin", "gin/resnet_tpu.gin")
        self.assert_refused(zoo_train("--gin_fiel=gin/resnet_cpu.gin"), "'gin_fiel'", "gin_file", "--help")
        self.assert_refused(zoo_train("gin/resnet_cpu.gin"), "'gin/resnet_cpu.gin' is left over", "--gin_file=")
        self.assert_refused(
            zoo_train("--gin_file=gin/resnet_cpu.gin", "--gin_bindings=Experiment.precision = float32"), "float32"
        )

    @absltest.skipIf(HAS_ACCELERATOR, "about machines with neither TPU nor GPU")
    def test_no_device(self):
        """In less time than TensorFlow takes to import; with commands that can be copied."""
        started = time.perf_counter()
        run = zoo_train("--gin_file=gin/resnet_tpu.gin")
        self.assertLess(time.perf_counter() - started, 3)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        self.assertIn("python -m zoo.train --gin_file=gin/resnet_tpu.gin --gin_file=gin/smoke.gin", run.stderr)

    def test_dry_run_from_another_directory_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            small = [f"--gin_bindings=Experiment.{b}" for b in ("input_size = 64", "global_batch_size = 4")]
            run = zoo_train("--gin_file=gin/resnet_cpu.gin", "--dry_run", *small, cwd=folder)
            self.assertEqual(run.returncode, 0, run.stderr)
            for words in ("MirroredStrategy over 1 CPU", "resnet50", "one step", "Nothing was written"):
                self.assertIn(words, run.stdout)
            self.assertEqual(os.listdir(folder), [])

    def test_default_workdir_banner_and_last_line_of_a_rehearsal(self):
        with tempfile.TemporaryDirectory() as folder:
            few = ["train_epochs = None", "train_steps = 1", "train_examples = 32", "eval_examples = 10"]
            run = zoo_train(
                "--gin_file=gin/resnet_tpu.gin",
                "--gin_file=gin/smoke.gin",
                *(f"--gin_bindings=Experiment.{b}" for b in few),
                cwd=folder,
            )
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("REHEARSAL", run.stdout)
            self.assertIn("REHEARSAL", run.stdout.strip().splitlines()[-1])
            self.assertContainsSubset(
                {"metrics.jsonl", "config.gin", "operative_config.gin", "checkpoints", "model.keras", "tensorboard"},
                os.listdir(os.path.join(folder, "runs", "resnet_tpu-smoke")),
            )
            self.assertIn("Gin flag:   Experiment.train_steps = 1", run.stdout)


if __name__ == "__main__":
    absltest.main()
