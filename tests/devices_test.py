"""What is looked at before TensorFlow is imported, on made-up machines."""

import json
import os
import tempfile

from absl.testing import absltest, parameterized

from zoo import devices
from zoo.devices import Found
from zoo.guards import NoDevice, UserError

COMMAND = ["python", "-m", "zoo.train", "--gin_file=gin/resnet_tpu.gin", "--gin_bindings=Experiment.seed = 1"]


class LookTest(parameterized.TestCase):
    def machine(self, *files, vendor=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in (*files, *(["sys/bus/pci/devices/0000:00:04.0/vendor"] if vendor else [])):
            os.makedirs(os.path.join(folder.name, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(folder.name, name), "w") as file:
                file.write(f"{vendor}\n" if vendor else "")
        return folder.name

    def test_nothing(self):
        found = devices.look(self.machine("dev/null", "dev/nvidiactl"), {})
        self.assertEqual(found, Found((), ()))
        self.assertIn("neither a TPU nor a GPU", str(found))

    def test_tpu(self):
        self.assertEqual(devices.look(self.machine("dev/accel0", "dev/accel1"), {}).tpu, ("/dev/accel0", "/dev/accel1"))
        self.assertEqual(devices.look(self.machine("dev/vfio/0", vendor="0x1ae0"), {}).tpu, ("/dev/vfio/0",))
        self.assertEqual(devices.look(self.machine("dev/vfio/0", vendor="0x10de"), {}).tpu, ())
        self.assertEqual(devices.look(self.machine(), {"TPU_NAME": "mine"}).tpu, ("TPU_NAME",))

    def test_gpu(self):
        machine = self.machine("dev/nvidia0", "dev/nvidia1", "dev/nvidiactl")
        self.assertEqual(devices.look(machine, {}).gpu, ("/dev/nvidia0", "/dev/nvidia1"))
        for hidden in ("", "-1"):
            self.assertEqual(devices.look(machine, {"CUDA_VISIBLE_DEVICES": hidden}).gpu, ())
        self.assertLen(devices.look(machine, {"CUDA_VISIBLE_DEVICES": "0"}).gpu, 2)


class CheckDevicesTest(parameterized.TestCase):
    @parameterized.parameters(
        ("auto", False, "a TPU or GPUs"), ("tpu", True, "asks for a TPU"), ("gpu", True, "asks for GPUs")
    )
    def test_what_can_be_done_instead(self, accelerator, allow_cpu, asked):
        with self.assertRaises(NoDevice) as caught:
            devices.check_devices(Found((), ()), accelerator=accelerator, allow_cpu=allow_cpu, command=COMMAND)
        text = str(caught.exception)
        self.assertIn(asked, text)
        start = "python -m zoo.train --gin_file=gin/resnet_tpu.gin '--gin_bindings=Experiment.seed = 1'"
        self.assertIn(f"{start} --gin_file=gin/smoke.gin\n", text)
        self.assertIn(f"{start} --dry_run\n", text)
        self.assertEndsWith(text, "python -m zoo.train --gin_file=gin/resnet_cpu.gin")
        self.assertEqual(caught.exception.exit_code, 3)

    @parameterized.parameters(
        ("auto", True, "local", Found((), ())),
        ("auto", False, "local", Found(("/dev/accel0",), ())),
        ("auto", False, "local", Found((), ("/dev/nvidia0",))),
        ("auto", False, "my-tpu", Found((), ())),
        ("tpu", False, "grpc://10.0.0.2:8470", Found((), ())),
        ("cpu", False, "local", Found((), ())),
    )
    def test_what_can_be_met(self, accelerator, allow_cpu, tpu, found):
        devices.check_devices(found, accelerator=accelerator, allow_cpu=allow_cpu, tpu=tpu, command=COMMAND)

    def test_a_plan_needs_no_device(self):
        devices.check_devices(Found((), ()), accelerator="tpu", allow_cpu=False, command=COMMAND, dry_run=True)


class CheckEnvironmentTest(parameterized.TestCase):
    def test_this_one_is_sound(self):
        devices.check_environment(Found((), ()), accelerator="auto", environ={"KERAS_HOME": "/nowhere"})

    @parameterized.parameters(
        ({"KERAS_BACKEND": "jax"}, "backend of Keras is 'jax'.*export KERAS_BACKEND=tensorflow"),
        ({"TF_USE_LEGACY_KERAS": "1"}, "TF_USE_LEGACY_KERAS=1.*unset TF_USE_LEGACY_KERAS"),
    )
    def test_variables(self, environ, message):
        with self.assertRaisesRegex(UserError, message):
            devices.check_environment(Found((), ()), accelerator="auto", environ={"KERAS_HOME": "/nowhere"} | environ)

    def test_keras_json(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "keras.json"), "w") as file:
                json.dump({"backend": "torch"}, file)
            with self.assertRaisesRegex(UserError, "backend of Keras is 'torch'"):
                devices.check_environment(Found((), ()), accelerator="cpu", environ={"KERAS_HOME": folder})

    def test_a_tpu_without_its_build(self):
        found, environ = Found(("/dev/accel0",), ()), {"KERAS_HOME": "/nowhere"}
        with self.assertRaisesRegex(
            UserError, r"a TPU \(/dev/accel0\), but tensorflow.* is installed.*requirements-tpu.txt"
        ):
            devices.check_environment(found, accelerator="auto", environ=environ)
        devices.check_environment(found, accelerator="cpu", environ=environ)

    @parameterized.parameters(
        (
            {"tensorflow": "2.21.0", "tensorflow-tpu": "2.20.0"},
            "3.15.1",
            "2 builds of TensorFlow.*tensorflow, tensorflow-tpu",
        ),
        ({}, "3.15.1", "0 builds of TensorFlow"),
        ({"tensorflow": "2.19.1"}, "3.15.1", "tensorflow 2.19.1: zoo needs 2.20 or newer"),
        ({"tensorflow": "2.21.0"}, "2.15.0", "keras 2.15.0: zoo needs Keras 3"),
        ({"tensorflow": "2.21.0"}, None, "keras None"),
    )
    def test_versions(self, builds, keras, message):
        with self.assertRaisesRegex(UserError, message):
            devices.check_versions(builds, keras)

    def test_versions_that_work(self):
        devices.check_versions({"tensorflow-cpu": "2.20.0"}, "3.10.0")
        devices.check_versions({"tensorflow-tpu": "2.20.0"}, "3.15.1")


if __name__ == "__main__":
    absltest.main()
