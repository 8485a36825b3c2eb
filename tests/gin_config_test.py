"""Gin files: found, read, and every shipped one runs."""

import dataclasses
import os
import tempfile

import gin
from absl.testing import absltest, parameterized

from zoo import gin_config
from zoo.experiment import Experiment
from zoo.guards import UserError
from zoo.train_and_evaluate import train_and_evaluate

SHIPPED = gin_config.shipped_files()
EXPERIMENTS = [name for name in SHIPPED if name != "gin/smoke.gin"]


class FindFileTest(absltest.TestCase):
    def test_from_another_directory(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                self.assertTrue(os.path.isfile(gin_config.find_file("gin/smoke.gin")))
                gin_config.parse(["gin/resnet_tpu.gin"])  # its include too
            finally:
                os.chdir(before)

    def test_missing(self):
        with self.assertRaisesRegex(UserError, r"gin/resnet_tup.gin: no such file.*gin/resnet_tpu.gin"):
            gin_config.find_file("gin/resnet_tup.gin")


class ParseTest(parameterized.TestCase):
    def test_the_later_wins(self):
        with tempfile.TemporaryDirectory() as folder:
            late = os.path.join(folder, "late.gin")
            with open(late, "w") as file:
                file.write("Experiment.seed = 5\nExperiment.num_classes = 7\n")
            gin_config.parse(["gin/resnet_tpu.gin", "gin/smoke.gin", late], ["Experiment.seed = 6"])
            experiment = Experiment()
        self.assertEqual((experiment.seed, experiment.num_classes, experiment.global_batch_size), (6, 7, 32))

    def test_nothing_is_left_of_an_earlier_parse(self):
        gin_config.parse(["gin/resnet_tpu.gin"], ["Experiment.seed = 6"])
        gin_config.parse(["gin/resnet_tpu.gin"])
        self.assertEqual(Experiment().seed, 0)

    @parameterized.parameters(
        ("Experiment.sede = 1", "sede"),
        ("Experimnt.seed = 1", "Experimnt"),
        ("Experiment.data = imagenet", "imagenet"),
        ("resnet50.num_classes = 10", "num_classes"),
    )
    def test_mistakes_are_user_errors(self, binding, word):
        with self.assertRaisesRegex(UserError, word):
            gin_config.parse(["gin/resnet_tpu.gin"], [binding])

    def test_missing_required_value(self):
        with self.assertRaisesRegex(UserError, "Experiment.model has no value: it must be bound"):
            gin_config.parse([], ["Experiment.seed = 1"])


class ShippedFilesTest(parameterized.TestCase):
    def test_there_are_the_promised_ones(self):
        for name in ("resnet_tpu", "resnet_gpu", "resnet_cpu", "smoke"):
            self.assertIn(f"gin/{name}.gin", SHIPPED)

    @parameterized.parameters(*((name,) for name in SHIPPED))
    def test_header(self, name):
        """Each says what it is from, what it needs, what to expect and how to run it, in at most 25 bindings."""
        with open(gin_config.find_file(name)) as file:
            text = file.read()
        header = text[: text.index("\n\n")]
        for word in ("Source:", "Hardware:", "Expect:", "Run:"):
            self.assertIn(word, header)
        self.assertIn(name, header)
        bindings = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
        self.assertLessEqual(len(bindings), 25)

    @parameterized.parameters(*((name,) for name in EXPERIMENTS if not name.endswith("_tpu.gin")))
    def test_with_smoke_every_file_of_a_network_is_the_same_experiment(self, name):
        """So that the runs of the TPU files below are runs of all files."""
        gin_config.parse([name, "gin/smoke.gin"])
        experiment = Experiment()
        gin_config.parse([f"{name.rsplit('_', 1)[0]}_tpu.gin", "gin/smoke.gin"])
        self.assertEqual(experiment, Experiment())

    @parameterized.parameters(*((name,) for name in EXPERIMENTS if name.endswith("_tpu.gin")))
    def test_runs_two_steps_and_an_evaluation(self, name):
        gin_config.parse([name, "gin/smoke.gin"])
        experiment = Experiment()
        self.assertTrue(experiment.rehearsal)
        experiment = dataclasses.replace(
            experiment, train_epochs=None, train_steps=2, train_examples=64, eval_examples=40
        )
        with tempfile.TemporaryDirectory() as folder:
            result = train_and_evaluate(
                experiment, workdir=os.path.join(folder, "run"), data_dir=os.path.join(folder, "data")
            )
            self.assertEqual(result.steps, 2)
            self.assertEqual(result.validation["examples"], 40)
            with open(os.path.join(folder, "run", "operative_config.gin")) as file:
                self.assertIn("Experiment.rehearsal = True", file.read())
            self.assertTrue(os.path.exists(result.keras_file))

    def test_smoke_binds_only_what_every_experiment_has(self):
        with open(gin_config.find_file("gin/smoke.gin")) as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
        fields = {field.name for field in dataclasses.fields(Experiment)}
        for line in lines:
            scope, name = line.split(" = ")[0].split(".")
            self.assertEqual(scope, "Experiment")
            self.assertIn(name, fields)


class WorkdirTest(absltest.TestCase):
    def test_default(self):
        self.assertEqual(
            gin_config.default_workdir(["gin/resnet_tpu.gin", "gin/smoke.gin"], True), "runs/resnet_tpu-smoke"
        )
        self.assertEqual(gin_config.default_workdir(["gin/resnet_tpu.gin"], False), "runs/resnet_tpu")

    def test_writes_the_configuration(self):
        gin.parse_config("Experiment.seed = 3")
        with tempfile.TemporaryDirectory() as folder:
            gin_config.write(os.path.join(folder, "new"))
            with open(os.path.join(folder, "new", "config.gin")) as file:
                self.assertIn("Experiment.seed = 3", file.read())
        gin.clear_config()


if __name__ == "__main__":
    absltest.main()
