"""Accelerators and prices: what is known, and no guess where something is not."""

from absl.testing import absltest, parameterized

from zoo.benchmark import accelerators, hardware
from zoo.guards import UserError
from zoo.strategy import create_strategy


class HardwareTest(parameterized.TestCase):
    def test_this_cpu(self):
        found = hardware.look(create_strategy("cpu"))
        self.assertEqual((found.accelerator, found.chips, found.boards), ("cpu", 1, 1))
        self.assertGreaterEqual(found.cores, 1)
        self.assertGreater(found.memory_bytes, 1e9)

    @parameterized.parameters(
        ("tpu-v2-8", 4), ("tpu-v2-32", 16), ("tpu-v3-8", 4), ("tpu-v4-8", 4), ("tpu-v5e-8", 8), ("tpu-v6e-1", 1)
    )
    def test_chips_of_a_slice(self, name, chips):
        self.assertEqual(accelerators.tpu_chips(name), chips)

    def test_names_that_are_not_known(self):
        with self.assertRaisesRegex(UserError, "tpu-v2: a TPU needs its size"):
            accelerators.tpu_chips("tpu-v2")
        with self.assertRaisesRegex(UserError, "tpu-v99-8: not known; there are tpu-v2"):
            accelerators.tpu_chips("tpu-v99-8")

    @parameterized.parameters(
        (("Tesla V100-SXM2-16GB",) * 8, "v100-16gb"),
        (("Tesla P100-PCIE-16GB",), "p100"),
        (("NVIDIA A100-SXM4-40GB",), "a100-40gb"),
        (("NVIDIA H100 80GB HBM3",), "h100-sxm-80gb"),
        (("NVIDIA L40S",), None),
        (("Tesla T4", "Tesla V100-SXM2-16GB"), None),
    )
    def test_names_of_drivers(self, names, expected):
        self.assertEqual(hardware._gpu_name(names), expected)

    def test_peaks(self):
        """A TPU v2-8 has 180 TFLOP/s; a V100 15.7 in float32, which it can't multiply as TF32."""
        self.assertEqual(accelerators.peak("tpu-v2-8", 4, "mixed_bfloat16")[0], 180e12)
        self.assertIsNone(accelerators.peak("tpu-v2-8", 4, "float32"))
        self.assertEqual(accelerators.peak("v100-16gb", 8, "float32")[0], 8 * 15.7e12)
        self.assertIsNone(accelerators.peak("v100-16gb", 1, "mixed_bfloat16"))
        value, source = accelerators.peak("a100-40gb", 1, "float32", tf32=True)
        self.assertEqual(value, 156e12)
        self.assertStartsWith(source, "tf32: NVIDIA A100")
        self.assertIsNone(accelerators.peak("cpu", 1, "float32"))

    def test_every_price_is_of_an_accelerator_that_is_known(self):
        for row in accelerators._table("prices.csv"):
            self.assertIn(accelerators.generation(row["accelerator"]), accelerators.accelerators())

    def test_prices(self):
        found, about = accelerators.price("tpu-v2-8", 4)
        self.assertEqual((found.usd_per_hour, found.as_of, found.includes_host), (4.5, "2025", True))
        self.assertRegex(about, r"\$4.50 an hour, on_demand, host included, 2025")
        self.assertEqual(accelerators.price("tpu-v4-8", 4)[0].usd_per_hour, 4 * 3.22)
        self.assertEqual(accelerators.price("v100-16gb", 8)[0].usd_per_hour, 8 * 3.06)

    def test_no_price_without_its_host(self):
        found, about = accelerators.price("p100", 1)
        self.assertIsNone(found)
        self.assertRegex(about, r"known without its host alone: \$1.46 a gpu.*Bind Experiment.usd_per_hour")
        for name in ("cpu", None, "t4"):
            found, about = accelerators.price(name, 1)
            self.assertIsNone(found)
            self.assertRegex(about, "none is known for.*Bind Experiment.usd_per_hour")

    def test_a_price_that_is_given(self):
        found, about = accelerators.price("p100", 1, 1.83)
        self.assertEqual((found.usd_per_hour, found.kind), (1.83, "given"))
        self.assertRegex(about, r"\$1.83 an hour, as given")


if __name__ == "__main__":
    absltest.main()
