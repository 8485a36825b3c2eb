"""Rows of metrics: written, cut, shown again."""

import io
import json
import os
import sys
import tempfile
import time
from unittest import mock

import tensorflow as tf
from absl.testing import absltest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from zoo.progress import Bar, Metrics


def scalars(workdir, split, tag):
    accumulator = EventAccumulator(os.path.join(workdir, "tensorboard", split)).Reload()
    return [(e.step, tf.make_ndarray(e.tensor_proto).item()) for e in accumulator.Tensors(tag)]


class MetricsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.workdir = self.folder.name
        metrics = Metrics(self.workdir, 0)
        for step in (5, 10, 15):
            metrics.write(step, "train", {"loss": 1 / step})
            metrics.write_timing(step, "train", {"examples_per_second": 2.0 * step})
        metrics.write(15, "validation", {"top1": 0.5})
        metrics.close()

    def lines(self, name="metrics.jsonl"):
        with open(os.path.join(self.workdir, name)) as file:
            return file.read().splitlines()

    def test_rows(self):
        self.assertEqual(json.loads(self.lines()[0]), {"step": 5, "split": "train", "loss": 0.2})
        self.assertLen(self.lines(), 4)
        self.assertNotIn("second", "".join(self.lines()))

    def test_rows_beyond_the_step_are_cut_everywhere(self):
        metrics = Metrics(self.workdir, 10)
        self.assertEqual(metrics.last("train")["step"], 10)
        self.assertEqual(metrics.last("validation"), {})
        metrics.write(15, "train", {"loss": 7.0})
        metrics.close()
        self.assertEqual([json.loads(line)["step"] for line in self.lines()], [5, 10, 15])
        self.assertLen(self.lines("timing.jsonl"), 2)
        self.assertEqual([step for step, _ in scalars(self.workdir, "train", "loss")], [5, 10, 15])
        self.assertEqual(scalars(self.workdir, "train", "examples_per_second"), [(5, 10.0), (10, 20.0)])

    def test_half_a_line_is_cut(self):
        with open(os.path.join(self.workdir, "metrics.jsonl"), "a") as file:
            file.write('{"step": 15, "sp')
        Metrics(self.workdir, 15).close()
        self.assertLen(self.lines(), 4)

    def test_events_equal_rows(self):
        self.assertEqual(scalars(self.workdir, "validation", "top1"), [(15, 0.5)])
        values = [value for _, value in scalars(self.workdir, "train", "loss")]
        for value, line in zip(values, self.lines(), strict=False):
            self.assertAlmostEqual(value, json.loads(line)["loss"], places=6)


class BarTest(absltest.TestCase):
    def test_plain_lines_where_there_is_no_terminal(self):
        with mock.patch.object(sys, "stderr", io.StringIO()) as stderr:
            bar = Bar(total_steps=30, start_step=0, examples_per_step=8, plain_seconds=0)
            bar.advance(10, 10, None, {"loss": 2.0})
            bar.advance(20, 10, 4.0, {"loss": 1.0})
            bar.note("a note")
            bar.close()
        self.assertEqual(
            stderr.getvalue().splitlines(),
            ["step 10/30: loss 2", "step 20/30: loss 1, 20 examples/s, 4 s left", "a note"],
        )

    def test_a_wait_is_explained_while_it_lasts(self):
        with mock.patch.object(sys, "stderr", io.StringIO()) as stderr:
            bar = Bar(total_steps=30, start_step=0, examples_per_step=8)
            with bar.waiting("Compiling", every_seconds=0.05):
                time.sleep(0.18)
        lines = stderr.getvalue().splitlines()
        self.assertEqual(lines[:2], ["Compiling ...", "Compiling ... 0 s so far"])
        self.assertBetween(len(lines), 3, 4)


if __name__ == "__main__":
    absltest.main()
