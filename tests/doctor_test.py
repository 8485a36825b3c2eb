"""The self-test tells a sound machine from one that computes something else."""

import contextlib
import io
import json
import sys
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

from zoo import doctor


class DoctorTest(absltest.TestCase):
    def test_this_machine(self):
        out = io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["doctor"]),
            contextlib.redirect_stdout(out),
            self.assertRaises(SystemExit) as ended,
        ):
            doctor.main()
        lines = out.getvalue().splitlines()
        self.assertEqual((ended.exception.code, lines[-2]), (0, "VERDICT: all is well"), out.getvalue())
        report = json.loads(lines[-1])
        self.assertGreater(report["matrix products"]["flops_per_second"]["float32"], 1e9)
        self.assertEqual(set(report["training steps"]["losses"]), {"resnet50", "inception_v3", "bilstm"})
        self.assertIn("tensorflow", "".join(report["versions"]))

    def test_recurrent_kernels(self):
        """There is no cuDNN here: a stand-in that computes the same, and one that reads a row too far."""
        from zoo.models import lstm

        def stand_in(inputs, weights, lengths):
            mask = tf.transpose(tf.sequence_mask(lengths, inputs.shape[0]))
            parts = [lstm.lstm(inputs, *w, mask, backwards=i == 1, keep=True) for i, w in enumerate(weights)]
            return tf.concat(parts, -1)

        for shift, expected in ((0, "^$"), (1, "LSTM, outputs: cuDNN differs from the loop by")):
            with mock.patch.object(lstm, "cudnn_lstm", lambda x, w, n, shift=shift: stand_in(x, w, n + shift)):
                self.assertRegex(doctor.compare_recurrent_kernels(), expected)

    def test_another_loss_is_found(self):
        with open(doctor.__file__.replace("doctor.py", doctor.TRACE)) as file:
            trace = json.load(file)
        self.assertEqual(doctor.compare_traces(trace, "cpu"), "")
        trace["resnet50"][1] *= 1.03
        self.assertRegex(doctor.compare_traces(trace, "cpu"), "resnet50, step 2: loss .* on our CPU .* 1%")
        self.assertEqual(doctor.compare_traces(trace, "tpu"), "")
        trace["resnet50"][1] = float("nan")
        self.assertRegex(doctor.compare_traces(trace, "tpu"), "resnet50, step 2: loss nan")


if __name__ == "__main__":
    absltest.main()
