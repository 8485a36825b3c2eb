"""Whole runs: ended, continued, diverged, and killed with SIGKILL at awkward moments."""

import contextlib
import dataclasses
import errno
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests import tiny
from zoo import devices
from zoo import train_and_evaluate as run
from zoo.guards import INTERRUPTED, Diverged, UserError
from zoo.input_pipelines.text import fake_text
from zoo.optimizers import adam, rmsprop, step_decay
from zoo.train_and_evaluate import dry_run, evaluate, train_and_evaluate

STEPS = 40
GIN = f"""
Experiment.model = @resnet18
Experiment.input_size = 32
Experiment.num_classes = 10
Experiment.data = @fake_imagenet
Experiment.train_examples = 160
Experiment.eval_examples = 100
Experiment.optimizer = @sgd
Experiment.learning_rate = @cosine_decay
Experiment.global_batch_size = 16
Experiment.train_steps = {STEPS}
Experiment.steps_per_loop = 3
Experiment.checkpoint_every_steps = 8
Experiment.weight_decay = 1e-4
Experiment.accelerator = 'cpu'
Experiment.cpu_replicas = 2
"""


def rows(workdir):
    path = os.path.join(workdir, "metrics.jsonl")
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


class RunTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.workdir = os.path.join(folder.name, "run")

    def test_a_finished_run_is_left_alone(self):
        first = train_and_evaluate(tiny.experiment(), workdir=self.workdir)
        before = rows(self.workdir)
        again = train_and_evaluate(tiny.experiment(), workdir=self.workdir)
        self.assertEqual(rows(self.workdir), before)
        self.assertEqual(again, first)
        self.assertEqual(first.validation["examples"], 40)
        self.assertEqual([row["step"] for row in before if row["split"] == "validation"], [4, 8, 12, 16, 20])

    def test_tensorboard_shows_what_the_files_say(self):
        train_and_evaluate(tiny.experiment(train_steps=50, train_examples=400, steps_per_loop=7), workdir=self.workdir)
        with open(os.path.join(self.workdir, "timing.jsonl")) as file:
            timing = [json.loads(line) for line in file]
        written = [row for row in rows(self.workdir) if row["split"] == "train"]
        self.assertEqual([row["step"] for row in written][-2:], [49, 50])
        for split in ("train", "validation"):
            expected = [row for row in rows(self.workdir) + timing if row["split"] == split]
            board = os.path.join(self.workdir, "tensorboard", split)
            events = EventAccumulator(board, size_guidance={"tensors": 0}).Reload()
            scalars = [tag for tag in events.Tags()["tensors"] if "." not in tag and tag != "augmented inputs"]
            self.assertContainsSubset({"loss", "top1"}, scalars)
            for tag in scalars:
                shown = [(e.step, tf.make_ndarray(e.tensor_proto).item()) for e in events.Tensors(tag)]
                steps = [step for step, _ in shown]
                self.assertEqual(steps, sorted(set(steps)))
                of_files = [(row["step"], row[tag]) for row in expected if tag in row]
                np.testing.assert_allclose(shown, of_files, rtol=1e-6)
        events = EventAccumulator(os.path.join(self.workdir, "tensorboard", "train")).Reload()
        self.assertContainsSubset({"config.gin", "operative_config.gin", "augmented inputs"}, events.Tags()["tensors"])
        compiles, *steady = [row for row in timing if row["split"] == "train"]
        self.assertTrue(compiles["compiles"])
        self.assertNotIn("examples_per_second", compiles)
        self.assertTrue(all(row["examples_per_second"] > 0 for row in steady))
        clock = [row["clock"] for row in timing]
        self.assertEqual(clock, sorted(clock))
        self.assertLess(sum(row["seconds"] for row in timing), clock[-1])

    def test_a_target(self):
        """Training ends at the first evaluation that reaches it, and a second start finds it reached."""
        experiment = tiny.experiment(target_top1=0.01, usd_per_hour=3600.0, checkpoint_every_steps=100)
        result = train_and_evaluate(experiment, workdir=self.workdir)
        self.assertEqual(result.steps, 4)
        with open(os.path.join(self.workdir, "result.json")) as file:
            row = json.load(file)
        self.assertTrue(row["reached"])
        self.assertEqual(
            (row["steps"], row["epochs"], row["examples"], row["top1"]), (4, 1.0, 64, result.validation["top1"])
        )
        with open(os.path.join(self.workdir, "timing.jsonl")) as file:
            last = [json.loads(line) for line in file][-1]
        self.assertEqual((last["split"], last["step"]), ("validation", 4))
        self.assertAlmostEqual(row["hours"] * 3600, last["clock"])
        self.assertAlmostEqual(row["usd"], last["clock"])  # a dollar a second
        self.assertGreater(row["compile_seconds"], 0.3 * last["clock"])
        self.assertLess(row["compile_seconds"], last["clock"])
        self.assertEqual(train_and_evaluate(experiment, workdir=self.workdir), result)
        # A higher target goes on where it ended, and the clock with it.
        experiment = dataclasses.replace(experiment, target_top1=1.0, train_steps=20)
        self.assertEqual(train_and_evaluate(experiment, workdir=self.workdir).steps, 20)
        with open(os.path.join(self.workdir, "result.json")) as file:
            self.assertGreater(json.load(file)["hours"] * 3600, last["clock"] + 0.1)

    def test_the_last_checkpoints_are_kept(self):
        train_and_evaluate(tiny.experiment(keep_checkpoints=2), workdir=self.workdir)
        kept = {name.split(".")[0] for name in os.listdir(os.path.join(self.workdir, "checkpoints"))}
        self.assertEqual(kept, {"checkpoint", "ckpt-16", "ckpt-20"})

    def test_divergence_names_the_step_and_keeps_the_last_good_checkpoint(self):
        experiment = tiny.experiment(
            learning_rate=functools.partial(
                step_decay, base_learning_rate=1e30, warmup_epochs=0, boundaries_epochs=(45,)
            ),
            clip_norm=None,
            checkpoint_every_steps=1,
        )
        with self.assertRaisesRegex(Diverged, r"Step \d+: loss or gradient is not finite.*ckpt-\d+"):
            train_and_evaluate(experiment, workdir=self.workdir)
        step = rows(self.workdir)[-1]["step"]
        newest = tf.train.latest_checkpoint(os.path.join(self.workdir, "checkpoints"))
        self.assertEndsWith(newest, f"ckpt-{step}")
        self.assertTrue(np.isfinite(rows(self.workdir)[-1]["loss"]))

    def test_a_loss_of_evaluation_that_is_not_finite(self):
        """At the end of the run, too; the row is not written and the checkpoint is not saved."""
        for bad in (8, 20):
            workdir = f"{self.workdir}{bad}"

            def evaluate_once(*args, workdir=workdir, bad=bad, **kwargs):
                result = evaluate(*args, **kwargs)
                return result | {"loss": float("nan")} if rows(workdir)[-1]["step"] == bad else result

            with (
                mock.patch.object(run, "evaluate", evaluate_once),
                self.assertRaisesRegex(Diverged, rf"Step {bad}: .*validation loss is nan.*The last good checkpoint"),
            ):
                train_and_evaluate(tiny.experiment(), workdir=workdir)
            self.assertFalse(os.path.exists(os.path.join(workdir, "checkpoints", f"ckpt-{bad}.index")))
            self.assertEqual((rows(workdir)[-1]["step"], rows(workdir)[-1]["split"]), (bad, "train"))

    def test_a_full_disk(self):
        error = tf.errors.ResourceExhaustedError(None, None, "ckpt-8.data; No space left on device")
        for raised in (error, OSError(errno.ENOSPC, "No space left on device", "ckpt-8")):
            with (
                mock.patch.object(run.Checkpoints, "save", side_effect=raised),
                self.assertRaisesRegex(UserError, "^The disk is full .*ckpt-8.*Make room.*the same command"),
            ):
                train_and_evaluate(tiny.experiment(), workdir=self.workdir)

    def test_a_workdir_of_another_run(self):
        train_and_evaluate(tiny.experiment(train_steps=1), workdir=self.workdir)
        with self.assertRaisesRegex(
            UserError, "holds another run: total steps is 1 there, 2 here. Choose another --workdir"
        ):
            train_and_evaluate(tiny.experiment(train_steps=2), workdir=self.workdir)
        with self.assertRaisesRegex(UserError, "Experiment.model is @resnet_model there, @plain_model here"):
            train_and_evaluate(tiny.experiment(train_steps=1, model=tiny.plain_model), workdir=self.workdir)

    @parameterized.parameters(None, "", "[]", "null", "{")
    def test_a_workdir_without_a_readable_description(self, text):
        train_and_evaluate(tiny.experiment(train_steps=1), workdir=self.workdir)
        path = os.path.join(self.workdir, "experiment.json")
        os.remove(path)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        with self.assertRaisesRegex(UserError, "experiment.json.*another --workdir"):
            train_and_evaluate(tiny.experiment(train_steps=1, seed=3), workdir=self.workdir)

    def test_a_folder_of_something_else(self):
        path = os.path.join(self.workdir, "tensorboard", "mine")
        os.makedirs(os.path.dirname(path))
        open(path, "w").close()
        with self.assertRaisesRegex(UserError, r"holds tensorboard, but no experiment.json.*another --workdir"):
            train_and_evaluate(tiny.experiment(train_steps=1), workdir=self.workdir)
        self.assertTrue(os.path.exists(path))

    def test_a_log_beside_the_run(self):
        os.makedirs(self.workdir)
        open(os.path.join(self.workdir, "log.txt"), "w").close()
        train_and_evaluate(tiny.experiment(train_steps=1), workdir=self.workdir)

    def test_other_devices_and_intervals_go_on_with_it(self):
        """Unless fewer examples would be normalized together."""
        experiment = tiny.experiment(train_steps=4, model=tiny.plain_model)
        first = train_and_evaluate(experiment, workdir=self.workdir)
        other = {"cpu_replicas": 2, "steps_per_loop": 2, "keep_checkpoints": 1}
        again = train_and_evaluate(dataclasses.replace(experiment, **other), workdir=self.workdir)
        self.assertEqual(again, first)
        train_and_evaluate(tiny.experiment(train_steps=4), workdir=self.workdir + "2")
        with self.assertRaisesRegex(UserError, "examples normalized together is 16 there, 8 here"):
            train_and_evaluate(tiny.experiment(train_steps=4, **other), workdir=self.workdir + "2")

    @parameterized.named_parameters(
        ("images", tiny.experiment(model=tiny.two_headed_model, average_decay=0.9, optimizer=rmsprop)),
        ("texts", tiny.text_experiment(data=fake_text, sequence_length=20, optimizer=adam)),
    )
    def test_averages_dropout_and_slots_resume(self, experiment):
        """Set back to an earlier checkpoint, as a kill would leave it, a run ends with the same files."""
        experiment = dataclasses.replace(experiment, keep_checkpoints=5, cpu_replicas=2)
        train = functools.partial(train_and_evaluate, workdir=self.workdir, data_dir=self.workdir + "-data")
        first = train(experiment)
        before, weights = rows(self.workdir), keras.models.load_model(first.keras_file).get_weights()
        folder = os.path.join(self.workdir, "checkpoints")
        for name in os.listdir(folder):
            if name.startswith(("ckpt-16", "ckpt-20")):
                os.remove(os.path.join(folder, name))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            again = train(experiment)
        self.assertIn("Resumed at step 8 of 20", out.getvalue())
        self.assertEqual(rows(self.workdir), before)
        for a, b in zip(keras.models.load_model(again.keras_file).get_weights(), weights, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_dry_run_writes_nothing(self):
        before = os.listdir(".")
        dry_run(tiny.experiment(), self.workdir)
        self.assertFalse(os.path.exists(self.workdir))
        self.assertEqual(os.listdir("."), before)

    @absltest.skipIf(devices.look() != devices.Found((), ()), "about machines with neither TPU nor GPU")
    def test_a_dry_run_without_a_device_is_the_plan_alone(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            dry_run(tiny.experiment(accelerator="tpu"), self.workdir)
        self.assertIn("trainable parameters", out.getvalue())
        self.assertIn("Dry run:    the plan alone.", out.getvalue())


class KillTest(parameterized.TestCase):
    """A run that is killed again and again leaves what an uninterrupted one leaves, to the bit."""

    def start(self, workdir):
        command = [sys.executable, "-m", "zoo.train", f"--gin_file={self.gin}", f"--workdir={workdir}"]
        process = subprocess.Popen(
            [*command, f"--data_dir={self.folder}/data"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as a shell starts background jobs
        )
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")))
        reader.start()
        return process, lines, reader

    def run_until(self, workdir, reached, sent=signal.SIGKILL, exit_code=-signal.SIGKILL):
        """Sends the run a signal as soon as `reached(lines)`; returns its output."""
        process, lines, reader = self.start(workdir)
        deadline = time.monotonic() + 120
        while process.poll() is None and not reached(lines) and time.monotonic() < deadline:
            time.sleep(0.005)
        self.assertIsNone(process.poll(), "".join(lines))
        process.send_signal(sent)
        self.assertEqual(process.wait(timeout=60), exit_code)
        reader.join()
        return "".join(lines)

    def finish(self, workdir):
        process, lines, reader = self.start(workdir)
        self.assertEqual(process.wait(timeout=240), 0, "".join(lines))
        reader.join()
        return "".join(lines)

    def test_killed_equals_uninterrupted(self):
        with tempfile.TemporaryDirectory() as self.folder:
            self.gin = os.path.join(self.folder, "run.gin")
            with open(self.gin, "w") as file:
                file.write(GIN)
            whole, killed = os.path.join(self.folder, "whole"), os.path.join(self.folder, "killed")
            self.finish(whole)

            def row_at(step):
                return lambda lines: any(row["step"] >= step for row in rows(killed))

            def evaluating_at(step):
                return lambda lines: any(f"Evaluating at step {step} " in line for line in lines)

            outputs = [self.run_until(killed, reached) for reached in (row_at(11), evaluating_at(20))]
            outputs.append(self.run_until(killed, row_at(34), signal.SIGTERM, INTERRUPTED))
            self.assertIn("interrupted. The same command goes on", outputs[-1])
            outputs.append(self.finish(killed))
            self.assertNotIn("Resumed", outputs[0])
            for output, at_least in zip(outputs[1:], (8, 16, 32), strict=True):
                resumed = re.search(rf"Resumed at step (\d+) of {STEPS}", output)
                self.assertIsNotNone(resumed, output)
                self.assertGreaterEqual(int(resumed[1]), at_least)
                self.assertLess(int(resumed[1]), STEPS)
            self.assert_same(whole, killed)

    def assert_same(self, whole, killed):
        with open(os.path.join(whole, "metrics.jsonl")) as a, open(os.path.join(killed, "metrics.jsonl")) as b:
            self.assertEqual(a.read(), b.read())
        a, b = (tf.train.load_checkpoint(os.path.join(w, "checkpoints", f"ckpt-{STEPS}")) for w in (whole, killed))
        names = [name for name in a.get_variable_to_shape_map() if name != "_CHECKPOINTABLE_OBJECT_GRAPH"]
        self.assertGreater(len(names), 100)
        for name in names:
            np.testing.assert_array_equal(a.get_tensor(name), b.get_tensor(name), err_msg=name)


if __name__ == "__main__":
    absltest.main()
