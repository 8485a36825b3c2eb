"""What is ordered is what runs, or an error that says what to do."""

import os
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.guards import NoDevice, UserError
from zoo.strategy import create_strategy, logical_cpus

HAS_ACCELERATOR = bool(tf.config.list_physical_devices("GPU") or tf.config.list_physical_devices("TPU"))


@absltest.skipIf(HAS_ACCELERATOR, "about machines with neither TPU nor GPU")
class NoAcceleratorTest(absltest.TestCase):
    def test_auto_takes_a_cpu_only_where_allowed(self):
        with self.assertRaisesRegex(UserError, "neither a TPU nor a GPU.*smoke.gin.*allow_cpu = True"):
            create_strategy("auto")
        choice = create_strategy("auto", allow_cpu=True)
        self.assertEqual((choice.accelerator, choice.replicas), ("cpu", 1))
        self.assertRegex(str(choice), "MirroredStrategy over 1 CPU.*neither TPU nor GPU")

    def test_gpu_is_an_order(self):
        with self.assertRaisesRegex(UserError, "accelerator = 'gpu'.*no GPU here.*'cpu'"):
            create_strategy("gpu", allow_cpu=True)

    def test_tpu_is_an_order(self):
        with self.assertRaisesRegex(NoDevice, "'tpu': there is no TPU here"):
            create_strategy("tpu", allow_cpu=True)

    def test_auto_does_not_pass_over_a_tpu_that_the_environment_names(self):
        with (
            mock.patch.dict(os.environ, {"TPU_NAME": "mine"}),
            self.assertRaisesRegex(UserError, "'auto': TPU_NAME speaks of a TPU.*bind Experiment.tpu"),
        ):
            create_strategy("auto", allow_cpu=True)


class CpuTest(parameterized.TestCase):
    @parameterized.parameters(1, 2, 4)
    def test_replicas(self, replicas):
        choice = create_strategy("cpu", cpu_replicas=replicas)
        self.assertIsInstance(choice.strategy, tf.distribute.MirroredStrategy)
        self.assertEqual(choice.replicas, replicas)
        self.assertIn("ordered", str(choice))
        total = choice.strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones([])))
        self.assertEqual(float(choice.strategy.experimental_local_results(total)[0]), replicas)

    def test_more_replicas_than_the_process_was_started_with(self):
        tf.ones([]).numpy()
        with self.assertRaisesRegex(UserError, "64 CPU replicas.*already runs with 4.*new process"):
            logical_cpus(64)

    def test_no_replicas(self):
        with self.assertRaisesRegex(UserError, "cpu_replicas = 0: must be at least 1"):
            create_strategy("cpu", cpu_replicas=0)

    def test_unknown_accelerator(self):
        with self.assertRaisesRegex(UserError, "'npu'.*'auto', 'tpu', 'gpu', 'cpu'"):
            create_strategy("npu")


if __name__ == "__main__":
    absltest.main()
