"""The self-test tells a sound machine from one that computes something else."""

import contextlib
import io
import json
import sys
from unittest import mock

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
        self.assertEqual(set(report["training steps"]["losses"]), {"resnet50", "inception_v3"})
        self.assertIn("tensorflow", "".join(report["versions"]))

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
