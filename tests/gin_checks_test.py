"""What Gin takes in silence and zoo does not."""

import os
import tempfile

from absl.testing import absltest, parameterized

from zoo import gin_checks, gin_config
from zoo.guards import UserError


class WrongTest(parameterized.TestCase):
    """Each case: lines of a file that comes after gin/resnet_tpu.gin, and what the message must say."""

    @parameterized.named_parameters(
        ("misspelt_parameter", "Experiment.sede = 1", r"late.gin:1: .*no parameter sede; did you mean seed\?"),
        ("misspelt_configurable", "Experimnt.seed = 1", r"no such configurable; did you mean Experiment\?"),
        (
            "misspelt_reference",
            "Experiment.model = @resnet5",
            r"@resnet5: no such configurable; did you mean resnet50\?",
        ),
        (
            "unquoted_string",
            "Experiment.precision = float32",
            "unquoted string; write Experiment.precision = 'float32'",
        ),
        ("forgotten_at", "Experiment.data = imagenet", "unquoted string.*or @imagenet for a function"),
        ("arithmetic", "Experiment.global_batch_size = 8 * 128", "Gin does no arithmetic"),
        ("lower_case_true", "Experiment.allow_cpu = true", "write True"),
        ("null", "Experiment.train_steps = null", "write None"),
        ("typographic_quotes", "Experiment.precision = ‘float32’", "typographic quotes"),
        ("open_quote", "Experiment.precision = 'float32", "a quote that does not end"),
        ("no_value", "Experiment.seed =", "no value behind the equals sign"),
        ("no_binding", "Experiment.seed", "this is no binding"),
        (
            "string_for_int",
            "Experiment.global_batch_size = '64'",
            "'64' is a string, but .* takes .*write 64 without quotes",
        ),
        ("float_for_int", "Experiment.steps_per_loop = 1e3", "1000.0 is a float.*an integer; write 1_000"),
        ("int_for_bool", "Experiment.allow_cpu = 1", "1 is an integer, but allow_cpu takes True or False"),
        ("bool_for_int", "Experiment.seed = True", "True is a truth value, but seed takes an integer"),
        (
            "string_for_function",
            "Experiment.model = 'resnet50'",
            "'resnet50' is a string, but model takes a function, @name",
        ),
        ("parentheses", "Experiment.optimizer = @sgd()", "write @sgd without parentheses"),
        ("tuple_of_strings", "step_decay.boundaries_epochs = ('30', 60)", "is a tuple, but boundaries_epochs takes"),
        ("wrong_type_in_macro", "Experiment.seed = %S\nS = 'x'", "late.gin:1: .*'x' is a string"),
        ("what_the_code_passes", "resnet50.num_classes = 10", "gives num_classes itself. Bind Experiment.num_classes"),
        (
            "never_called",
            "cosine_decay.warmup_epochs = 3",
            "nothing in this experiment uses the configurable cosine_decay",
        ),
        (
            "misspelt_scope",
            "big/resnet50.variant = 'v1'",
            "nothing in this experiment uses the configurable big/resnet50",
        ),
        (
            "unknown_macro",
            "LAST_SEED = 2\nExperiment.seed = %LASTSEED",
            r"%LASTSEED: no such macro; did you mean LAST_SEED\?",
        ),
        ("unused_macro", "LAST_SEED = 2", "nothing in this experiment uses the macro LAST_SEED"),
        (
            "twice",
            "Experiment.seed = 1\nExperiment.seed = 2",
            "late.gin:2: .*bound in this file already, 1 at .*late.gin:1",
        ),
        ("missing_include", "include 'gin/none.gin'", "gin/none.gin: no such file"),
    )
    def test_file(self, text, message):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "late.gin")
            with open(path, "w") as file:
                file.write(text + "\n")
            with self.assertRaisesRegex(UserError, message):
                gin_config.parse(["gin/resnet_tpu.gin", path])

    def test_flag(self):
        with self.assertRaisesRegex(UserError, r"--gin_bindings='Experiment.precision = float32': .*double quotes"):
            gin_config.parse(["gin/resnet_tpu.gin"], ["Experiment.precision = float32"])

    def test_missing_required(self):
        with self.assertRaisesRegex(UserError, "Experiment.data has no value"):
            gin_config.parse(["gin/recipes/resnet50_imagenet.gin"])
        with self.assertRaisesRegex(UserError, "tfds_images.name has no value"):
            gin_config.parse(["gin/resnet_tpu.gin"], ["Experiment.data = @tfds_images"])


class RightTest(absltest.TestCase):
    def test_overrides_are_listed(self):
        lines = gin_config.parse(["gin/resnet_tpu.gin", "gin/smoke.gin"], ["Experiment.seed = 1"])
        text = "\n".join(lines)
        self.assertRegex(
            text, r"Experiment.num_classes = 10 \(gin/smoke.gin:\d+\) instead of 1000 \(.*imagenet.gin:\d+\)"
        )
        self.assertIn("Gin flag:   Experiment.seed = 1", text)
        self.assertNotIn("Experiment.seed = 1 (", text)  # it overrides nothing

    def test_a_recipe_whose_model_is_replaced(self):
        """resnet50's bindings are of no use then, but they are no mistake."""
        gin_config.parse(["gin/resnet_tpu.gin"], ["Experiment.model = @resnet18", "resnet18.variant = 'v1'"])

    def test_an_included_recipe_whose_model_is_replaced(self):
        with tempfile.NamedTemporaryFile("w", suffix=".gin") as file:
            file.write("include 'gin/resnet_tpu.gin'\nExperiment.model = @resnet18\n")
            file.flush()
            gin_config.parse([file.name])

    def test_macros_and_scopes_that_are_used(self):
        gin_config.parse(
            ["gin/resnet_tpu.gin"],
            ["SEED = 3", "Experiment.seed = %SEED", "Experiment.model = @old/resnet50", "old/resnet50.variant = 'v1'"],
        )

    def test_int_where_a_float_is_wanted(self):
        gin_config.parse(["gin/resnet_tpu.gin"], ["Experiment.train_epochs = 3", "Experiment.clip_norm = 1"])

    def test_the_last_binding_counts(self):
        found = gin_checks.read(
            [gin_config.find_file(name) for name in ("gin/resnet_tpu.gin", "gin/smoke.gin")], [], gin_config.find_file
        )
        final = gin_checks.effective(found.bindings)
        self.assertEqual(final["Experiment.accelerator"].value, "auto")
        self.assertIs(final["Experiment.allow_cpu"].value, True)


if __name__ == "__main__":
    absltest.main()
