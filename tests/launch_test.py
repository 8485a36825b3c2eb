"""Wrong launches, each with its exit code and its message; and launches from Python, one after the other."""

import contextlib
import io
import os
import tempfile
from unittest import mock

import keras
import numpy as np
from absl.testing import absltest, parameterized

import zoo
from zoo.data.records import imagenet_example, write_shards
from zoo.devices import Found
from zoo.guards import UserError
from zoo.launch import launch

NOTHING = Found((), ())
TPU, GPU = Found(("/dev/accel0",), ()), Found((), ("/dev/nvidia0",))
CPU = ["gin/resnet_cpu.gin"]
SMALL = (
    "Experiment.model = @resnet18",
    "Experiment.input_size = 32",
    "Experiment.train_epochs = None",
    "Experiment.train_steps = 2",
    "Experiment.train_examples = 32",
    "Experiment.eval_examples = 8",
    "Experiment.global_batch_size = 8",
)


def flag(name, value):
    return f"Experiment.{name} = {value}"


# name: files, bindings after SMALL, other arguments, exit code, the message (a regular expression).
WRONG = {
    # Gin; more of it in gin_checks_test.py.
    "no_such_file": (["gin/resent.gin"], [], {}, 2, "gin/resent.gin: no such file.*gin/resnet_tpu.gin"),
    "misspelt": (CPU, ["Experiment.sede = 1"], {}, 2, "sede; did you mean seed"),
    "unquoted": (CPU, ["Experiment.precision = float32"], {}, 2, "unquoted string"),
    "no_equals_sign": (CPU, ["Experiment.seed"], {}, 2, "this is no binding"),
    "arithmetic": (CPU, ["Experiment.seed = 1 + 1"], {}, 2, "no arithmetic"),
    "wrong_type": (CPU, ["Experiment.seed = '1'"], {}, 2, "'1' is a string"),
    "unreachable": (CPU, ["step_decay.decay = 0.2"], {}, 2, "nothing in this experiment uses"),
    "unknown_network": (CPU, ["Experiment.model = @resnet51"], {}, 2, "no such configurable; did you mean resnet"),
    "empty_workdir": (CPU, [], {"workdir": ""}, 2, "--workdir= is empty"),
    "empty_data_dir": (CPU, [], {"data_dir": ""}, 2, "--data_dir= is empty"),
    # Numbers.
    "two_batches": (CPU, [flag("per_replica_batch_size", 4)], {}, 2, "exactly one"),
    "two_lengths": (CPU, [flag("train_epochs", 2)], {}, 2, "exactly one"),
    "no_steps": (CPU, [flag("train_steps", 0)], {}, 2, "train_steps = 0: must be positive"),
    "negative_interval": (CPU, [flag("checkpoint_every_steps", -5)], {}, 2, "checkpoint_every_steps = -5"),
    "no_loop": (CPU, [flag("steps_per_loop", 0)], {}, 2, "steps_per_loop = 0"),
    "one_class": (CPU, [flag("num_classes", 1)], {}, 2, "num_classes = 1"),
    "indivisible_replicas": (CPU, [flag("cpu_replicas", 3)], {}, 2, "multiple of 3"),
    "indivisible_microbatches": (CPU, [flag("microbatches", 3)], {}, 2, "multiple of 3.*global_batch_size = 9"),
    "batch_over_examples": (CPU, [flag("global_batch_size", 64)], {}, 2, "only 32 training examples"),
    "no_replicas": (CPU, [flag("cpu_replicas", 0)], {}, 2, "cpu_replicas = 0"),
    "smoothing": (CPU, [flag("label_smoothing", 1.5)], {}, 2, "label_smoothing = 1.5"),
    "seed": (CPU, [flag("seed", -1)], {}, 2, "seed = -1"),
    "pure_float16": (CPU, [flag("precision", "'float16'")], {}, 2, "Pure 16-bit"),
    "unknown_variant": (CPU, ["resnet18.variant = 'v2'"], {}, 2, "variant = 'v2'"),
    "synchronized_xla": (
        CPU,
        ["resnet18.synchronized_norm = True", flag("xla", True), flag("cpu_replicas", 2)],
        {},
        2,
        "xla = True: does not go with",
    ),
    # Devices and environment.
    "no_device": (["gin/resnet_tpu.gin"], [], {"found": NOTHING}, 3, "gin/smoke.gin"),
    "no_gpu": (["gin/resnet_gpu.gin"], [], {"found": NOTHING}, 3, "asks for GPUs"),
    "no_tpu": (CPU, [flag("accelerator", "'tpu'")], {"found": NOTHING}, 3, "asks for a TPU"),
    "unknown_accelerator": (CPU, [flag("accelerator", "'npu'")], {}, 2, "'npu': must be one of"),
    "tpu_without_its_build": (["gin/resnet_tpu.gin"], [], {"found": TPU}, 2, "requirements-tpu.txt"),
    "gpu_that_tensorflow_does_not_see": (["gin/resnet_gpu.gin"], [], {"found": GPU}, 2, "TensorFlow sees none"),
    "keras_backend": (CPU, [], {"environ": {"KERAS_BACKEND": "torch"}}, 2, "export KERAS_BACKEND=tensorflow"),
    "legacy_keras": (CPU, [], {"environ": {"TF_USE_LEGACY_KERAS": "1"}}, 2, "unset TF_USE_LEGACY_KERAS"),
    # Data.
    "no_data": (CPU, ["Experiment.data = @imagenet"], {}, 2, "no train files here"),
    "too_many_classes": (CPU, [flag("num_classes", 1001)], {}, 2, "1001 classes: choose from 2 to 1000"),
    "data_dir_is_a_file": (CPU, [], {"data_dir": "{folder}/file"}, 2, "can't be written to"),
    "labels_out_of_range": (
        CPU,
        ["Experiment.data = @imagenet", flag("num_classes", 3)],
        {"data_dir": "{folder}/real"},
        2,
        "a label of 4, but Experiment.num_classes = 3",
    ),
    "too_few_examples": (
        CPU,
        ["Experiment.data = @imagenet", flag("train_examples", 99)],
        {"data_dir": "{folder}/real"},
        2,
        "hold 40 examples, 99 are asked for. Lower Experiment.train_examples",
    ),
    # Workdir.
    "workdir_is_a_file": (CPU, [], {"workdir": "{folder}/file"}, 2, "file: can't be used"),
    "workdir_of_another_run": (
        CPU,
        [flag("seed", 7)],
        {"workdir": "{folder}/other"},
        2,
        "holds another run: Experiment.seed is 0 there, 7 here",
    ),
}


class WrongLaunchTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        open(os.path.join(cls.folder, "file"), "w").close()

        def example(i):
            jpeg = b"\xff\xd8\xff"  # never decoded
            return imagenet_example(jpeg, 1 + i % 4, 8, 8, f"{i}.JPEG")

        for split, count in (("train", 40), ("validation", 8)):
            write_shards(os.path.join(cls.folder, "real"), split, example, examples=count, shards=1)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            launch(CPU, SMALL, workdir=os.path.join(cls.folder, "other"), data_dir=os.path.join(cls.folder, "data"))

    @parameterized.named_parameters((name, *case) for name, case in WRONG.items())
    def test_is_refused(self, files, bindings, arguments, exit_code, message):
        arguments = (
            {name: value for name, value in arguments.items() if name not in ("environ", "found")}
            | {name: value for name, value in arguments.items() if name == "found"}
            | {"environ": arguments.get("environ", {})}
        )
        environ = arguments.pop("environ")
        arguments = {n: v.format(folder=self.folder) if isinstance(v, str) else v for n, v in arguments.items()}
        arguments = {"workdir": f"{self.folder}/new", "data_dir": f"{self.folder}/data"} | arguments
        found = arguments.get("found", NOTHING)
        bindings = [*SMALL, *bindings] if files == CPU else bindings
        out = io.StringIO()
        with (
            mock.patch.dict(os.environ, environ),
            mock.patch("zoo.devices.look", return_value=found),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            self.assertRaisesRegex(UserError, message) as caught,
        ):
            launch(files, bindings, **arguments)
        self.assertEqual(caught.exception.exit_code, exit_code)
        self.assertFalse(os.path.exists(f"{self.folder}/new/checkpoints"))

    def test_there_are_many(self):
        self.assertGreaterEqual(len(WRONG), 30)


class FromPythonTest(absltest.TestCase):
    def test_again_and_again(self):
        """Other replicas and precisions each time, and the first one's weights again at the end."""
        weights = []
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            second = [flag("cpu_replicas", 2), flag("precision", "'mixed_bfloat16'"), flag("microbatches", 2)]
            for i, other in enumerate(([], second, [])):
                result = zoo.train(
                    "gin/resnet_cpu.gin", [*SMALL, *other], workdir=f"{folder}/run{i}", data_dir=f"{folder}/data"
                )
                self.assertEqual((result.steps, result.validation["examples"]), (2, 8))
                self.assertGreater(result.train["loss"], 0)
                weights.append(keras.models.load_model(result.keras_file).get_weights())
                self.assertEqual(keras.config.dtype_policy().name, "float32")
        for a, b in zip(weights[0], weights[2], strict=True):
            np.testing.assert_array_equal(a, b)
        self.assertFalse(np.array_equal(weights[0][0], weights[1][0]))


if __name__ == "__main__":
    absltest.main()
