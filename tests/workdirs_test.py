"""What is made of a finished run: evaluations, predictions, exports; from Python and from the command line."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo import command_line, evaluate, export, predict
from zoo.devices import Found
from zoo.guards import UserError
from zoo.launch import launch
from zoo.predictor import load_predictor

COMMON = (
    "Experiment.accelerator = 'cpu'",
    "Experiment.global_batch_size = 16",
    "Experiment.train_examples = 48",
    "Experiment.eval_examples = 21",
    "Experiment.checkpoint_every_steps = 2",
    "Experiment.steps_per_loop = 2",
    "Experiment.train_epochs = None",
    "Experiment.train_steps = 4",
    "Experiment.num_classes = 3",
)
IMAGES = ("Experiment.model = @resnet18", "Experiment.input_size = 32")
TEXTS = (
    "Experiment.sequence_length = 12",
    "Experiment.vocabulary_size = 60",
    "Experiment.data = @text_files",
    "Experiment.average_decay = 0.9",
    "bilstm.units = 8",
    "bilstm.embedding_units = 4",
)
WORDS = ("alpha", "beta", "gamma")


def write_texts(folder):
    rng = np.random.default_rng(0)
    for name, count in (("train", 48), ("validation", 21)):
        with open(os.path.join(folder, f"{name}.tsv"), "w") as file:
            file.write("text\tlabel\n")
            file.writelines(f"{' '.join(rng.choice(WORDS, 5))} {WORDS[i % 3]}\tL{i % 3}\n" for i in range(count))


class WorkdirsTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.results = folder.name, {}
        write_texts(cls.folder)
        for name, file, bindings in (
            ("images", "gin/resnet_cpu.gin", IMAGES),
            ("texts", "gin/bilstm_gpu.gin", (*TEXTS, "Experiment.per_replica_batch_size = None")),
        ):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                cls.results[name] = launch(
                    [file], [*COMMON, *bindings], workdir=os.path.join(cls.folder, name), data_dir=cls.folder
                )

    def image(self, seed=0):
        path = os.path.join(self.folder, f"image-{seed}.jpg")
        pixels = np.random.default_rng(seed).integers(0, 256, (50, 40, 3)).astype("uint8")
        tf.io.write_file(path, tf.io.encode_jpeg(pixels))
        return path

    def run_main(self, module, *argv):
        """Exit code, stdout and stderr of a command line."""
        out, err = io.StringIO(), io.StringIO()
        arguments = ["x", *argv]
        with (
            mock.patch.object(sys, "argv", arguments),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                command_line.run(module.parser(), module.main)
                code = 0
            except SystemExit as error:
                code = error.code
        return code, out.getvalue(), err.getvalue()

    @parameterized.parameters("images", "texts")
    def test_evaluates_as_the_training_did(self, name):
        result = self.results[name]
        with open(os.path.join(result.workdir, "metrics.jsonl")) as file:
            rows = [row for row in map(json.loads, file) if row["split"] == "validation"]
        self.assertLen(rows, 2)
        for checkpoint, row in (("ckpt-4", rows[-1]), (None, rows[-1])):
            found = evaluate.evaluate(result.workdir, checkpoint=checkpoint, data_dir=self.folder)
            self.assertEqual(found.keys(), row.keys())
            self.assertEqual((found["step"], found["top1"]), (row["step"], row["top1"]))
            self.assertAlmostEqual(found["loss"], row["loss"], places=5)
        earlier = evaluate.evaluate(result.workdir, checkpoint="2", data_dir=self.folder)
        self.assertEqual((earlier["step"], earlier["examples"]), (2, 21))
        self.assertNotEqual(earlier["loss"], rows[-1]["loss"])

    def test_evaluates_the_training_split_and_other_files(self):
        workdir = self.results["texts"].workdir
        flags = [f"--data_dir={self.folder}", "--split=train", "--gin_bindings=Experiment.xla = False"]
        code, out, err = self.run_main(evaluate, f"--workdir={workdir}", *flags)
        self.assertEqual((code, json.loads(out)["examples"], json.loads(out)["split"]), (0, 48, "train"), err)
        with open(os.path.join(self.folder, "other.tsv"), "w") as file:
            file.write("text\tlabel\nalpha beta\tL1\n")
        bindings = ["text_files.eval_file = 'other.tsv'", "Experiment.eval_examples = None"]
        self.assertEqual(evaluate.evaluate(workdir, data_dir=self.folder, bindings=bindings)["examples"], 1)

    def test_other_data_are_refused(self):
        with tempfile.TemporaryDirectory() as other:
            for name in ("train", "validation"):
                with open(os.path.join(other, f"{name}.tsv"), "w") as file:
                    file.write("text\tlabel\n" + "".join(f"delta w{i}\tL{i % 3}\n" for i in range(48)))
            with self.assertRaisesRegex(UserError, "vocabulary.txt says otherwise than these data"):
                evaluate.evaluate(self.results["texts"].workdir, data_dir=other)

    def test_a_remote_workdir(self):
        """TensorFlow's file system in memory stands for gs://."""
        local, remote = self.results["texts"].workdir, "ram://remote"
        for folder, _, names in tf.io.gfile.walk(local):
            for name in names:
                path = os.path.join(folder, name)
                copy = path.replace(local, remote)
                tf.io.gfile.makedirs(os.path.dirname(copy))
                tf.io.gfile.copy(path, copy, overwrite=True)
        found, expected = (evaluate.evaluate(place, data_dir=self.folder) for place in (remote, local))
        self.assertEqual(found, expected)
        with self.assertRaisesRegex(UserError, "no run in it"):
            evaluate.evaluate("ram://nowhere")

    def test_predicts_what_the_keras_file_says(self):
        """By way of the file, its own preprocessing written by hand."""
        result, paths = self.results["images"], [self.image(0), self.image(1)]
        code, out, err = self.run_main(predict, f"--workdir={result.workdir}", *paths)
        self.assertEqual(code, 0, err)
        network = keras.models.load_model(result.keras_file)
        for path, line in zip(paths, out.splitlines(), strict=True):
            pixels = tf.io.decode_jpeg(tf.io.read_file(path)).numpy()
            side = round(0.875 * 40)
            top, left = (50 - side) // 2, (40 - side) // 2
            crop = tf.image.resize(pixels[top : top + side, left : left + side], (32, 32), "bicubic")
            logits = network(tf.cast(tf.round(tf.clip_by_value(crop, 0, 255)), tf.uint8)[None])
            probabilities = tf.nn.softmax(logits)[0].numpy()
            best = int(probabilities.argmax())
            self.assertStartsWith(line, f"{path}: {best} {probabilities[best]:.4f}, ")

    def test_predicts_lines_of_text(self):
        path = os.path.join(self.folder, "lines.txt")
        with open(path, "w") as file:
            file.write("Alpha, beta!\n\nnothing known\n")
        code, out, err = self.run_main(
            predict, f"--workdir={self.results['texts'].workdir}", "--checkpoint=ckpt-4", path
        )
        self.assertEqual(code, 0, err)
        lines = out.splitlines()
        self.assertLen(lines, 3)
        network = keras.models.load_model(self.results["texts"].keras_file)
        with open(os.path.join(self.results["texts"].workdir, "vocabulary.txt")) as file:
            words = file.read().split("\n")
        ids = np.zeros((1, 12), "int32")
        ids[0, :2] = words.index("alpha"), words.index("beta")
        probabilities = tf.nn.softmax(network(ids))[0].numpy()
        best = int(probabilities.argmax())
        self.assertStartsWith(lines[0], f"{path}:1: L{best} {probabilities[best]:.4f}, ")
        self.assertLen(lines[0].split(", "), 3)

    @parameterized.parameters("images", "texts")
    def test_saved_model_without_zoo(self, name):
        result, out = self.results[name], os.path.join(self.folder, f"saved-{name}")
        code, _, err = self.run_main(export, f"--workdir={result.workdir}", f"--out={out}")
        self.assertEqual(code, 0, err)
        texts = ["alpha beta", "", "alpha unknown gamma beta"]
        raw = [tf.io.read_file(self.image(0)).numpy()] if name == "images" else texts
        expected = load_predictor(result.workdir)(tf.constant(raw))["probabilities"].numpy()
        self.assertAlmostEqual(expected.sum(), len(raw), places=4)
        np.save(os.path.join(self.folder, "raw.npy"), np.array(raw, object), allow_pickle=True)
        program = (
            "import sys, numpy, tensorflow as tf\n"
            "serve = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
            "raw = list(numpy.load('raw.npy', allow_pickle=True))\n"
            "numpy.save('found.npy', serve(inputs=tf.constant(raw))['probabilities'])\n"
            "assert 'zoo' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", program, out], cwd=self.folder, check=True, capture_output=True)
        np.testing.assert_allclose(np.load(os.path.join(self.folder, "found.npy")), expected, atol=1e-6)
        self.assertEqual(os.path.exists(os.path.join(out, "assets.extra", "labels.txt")), name == "texts")

    def test_starts_a_run_with_a_network_of_other_sizes(self):
        """The network of the run is built from what the run bound, not from what is bound now."""
        bindings = ["Experiment.per_replica_batch_size = None", *TEXTS, "bilstm.units = 4"]
        bindings += [f"Experiment.init_from = '{self.results['texts'].workdir}'", "Experiment.train_steps = 1"]
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            launch(
                ["gin/bilstm_gpu.gin"],
                [*COMMON[:-2], COMMON[-1], *bindings],
                workdir=os.path.join(self.folder, "smaller"),
                data_dir=self.folder,
            )
        self.assertRegex(
            out.getvalue(), r"3 of 3 words of the embedding were there; newly drawn: bilstm \(.*, logits \("
        )

    def test_lines_end_where_training_ends_them(self):
        path = os.path.join(self.folder, "lines.txt")
        with open(path, "w", newline="") as file:
            file.write("alpha\u2028beta\r\n\x0cgamma\n\nalpha")
        code, out, err = self.run_main(predict, f"--workdir={self.results['texts'].workdir}", path)
        self.assertEqual((code, len(out.splitlines())), (0, 4), err)

    def test_exports_a_keras_file_of_an_earlier_checkpoint(self):
        out = os.path.join(self.folder, "earlier.keras")
        result = self.results["images"]
        code, said, err = self.run_main(export, f"--workdir={result.workdir}", "--checkpoint=2", f"--out={out}")
        self.assertEqual(code, 0, err)
        self.assertIn("resnet18 at ", said)
        first, last = (keras.models.load_model(path).get_weights()[0] for path in (out, result.keras_file))
        self.assertEqual(first.shape, last.shape)
        self.assertGreater(np.abs(first - last).max(), 0)

    def test_what_a_machine_without_the_devices_of_the_run_says(self):
        flags = [f"--workdir={self.results['images'].workdir}", "--gin_bindings=Experiment.accelerator = 'gpu'"]
        with mock.patch("zoo.devices.look", return_value=Found((), ())):
            code, _, err = self.run_main(evaluate, *flags)
        self.assertEqual(code, 3)
        self.assertRegex(err, 'asks for GPUs.*On this CPU: python -m zoo.evaluate .*Experiment.accelerator = "cpu"')
        self.assertNotIn("--gin_file", err)

    @parameterized.parameters(
        (evaluate, ["--workdir=nowhere"], "zoo.evaluate: --workdir=nowhere: no run in it"),
        (evaluate, ["--workdir=IMAGES", "--checkpoint=ckpt-3"], "no ckpt-3 in it; there are ckpt-2, ckpt-4"),
        (evaluate, ["--workdir=IMAGES", "--split=test"], "--split=test: must be one of validation, train"),
        (evaluate, ["--workdir=IMAGES", "--gin_bindings=Experiment.sede = 1"], "sede; did you mean seed"),
        (evaluate, ["--workdir=IMAGES", "--gin_bindings=Experiment.steps_per_loop = 0"], "steps_per_loop = 0"),
        (evaluate, ["--workdir=IMAGES", "--gin_bindings=Experiment.global_batch_size = None"], "exactly one"),
        (predict, ["--workdir=nowhere", __file__], "zoo.predict: --workdir=nowhere: no run in it"),
        (predict, ["--workdir=IMAGES", "nowhere.jpg"], "nowhere.jpg: no such file"),
        (predict, ["--workdir=IMAGES", __file__], "not a JPEG or PNG that can be decoded"),
        (predict, ["--workdir=TEXTS", "BINARY"], "not a text in UTF-8"),
        (export, ["--workdir=IMAGES", "--out="], "--out is empty"),
        (export, ["--workdir=IMAGES", f"--out={__file__}"], "is there already"),
        (export, ["--workdir=IMAGES", "--out=/proc/x/y.keras"], "--out=/proc/x/y.keras: can't be written"),
        (export, ["--workdir=IMAGES", "--out=/proc/x"], "--out=/proc/x: can't be written"),
    )
    def test_mistakes(self, module, argv, message):
        places = {
            "IMAGES": self.results["images"].workdir,
            "TEXTS": self.results["texts"].workdir,
            "BINARY": self.image(),
        }
        for name, place in places.items():
            argv = [argument.replace(name, place) for argument in argv]
        code, out, err = self.run_main(module, *argv)
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn(message, err)
        self.assertNotIn("Traceback", err)


if __name__ == "__main__":
    absltest.main()
