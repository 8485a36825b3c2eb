"""`python -m zoo.report`: ratios by hand, what is refused, the files, and the page as a browser shows it."""

import contextlib
import csv
import http.server
import io
import json
import os
import shutil
import subprocess
import tempfile
import threading

import numpy as np
from absl.testing import absltest, parameterized
from PIL import Image

from zoo.benchmark import rows
from zoo.guards import UserError
from zoo.report import __main__ as report
from zoo.report import points, ratios, runs
from zoo.report.points import Point

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROW = {
    "kind": "throughput",
    "status": "ok",
    "basis": "measured",
    "time": "2026-12-01T00:00:00+00:00",
    "model": "resnet50",
    "variant": "v1.5",
    "model_options": {},
    "data_source": "fake_imagenet",
    "feed": "both",
    "mode": "train",
    "global_batch_size": 32,
    "precision": "float32",
    "tf32": False,
    "accelerator": "cpu",
    "cpu": "<script>alert(1)</script> & Sons",
    "cores": 2,
    "chips": 1,
    "boards": 1,
    "examples_per_second": 60.0,
    "standard_error": 1.5,
    "usd_per_hour": None,
    "price_as_of": None,
    "rehearsal": False,
    "input_size": 75,
    "versions": {"zoo": "0", "tensorflow": "2"},
}


def run(*argv):
    """What the command line prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        report.main(report.parser().parse_args(argv))
    return out.getvalue()


def write_run(folder, name, *, seed, tops, usd_per_hour=2.0, target=None):
    """A workdir with an evaluation every ten steps and half an hour."""
    workdir = os.path.join(folder, name)
    os.makedirs(workdir)
    with open(os.path.join(workdir, "metrics.jsonl"), "w") as file:
        for i, top in enumerate(tops, start=1):
            file.write(json.dumps({"step": 10 * i, "split": "train", "loss": 1.0}) + "\n")
            file.write(json.dumps({"step": 10 * i, "split": "validation", "top1": top}) + "\n")
        file.write('{"step": 99, "split": "vali')  # killed
    with open(os.path.join(workdir, "timing.jsonl"), "w") as file:
        for i in range(1, len(tops) + 1):
            file.write(json.dumps({"step": 10 * i, "split": "validation", "seconds": 1.0, "clock": 1800.0 * i}) + "\n")
    with open(os.path.join(workdir, "operative_config.gin"), "w") as file:
        file.write(f"Experiment.seed = {seed}\nExperiment.model = @resnet50\nresnet50.variant = 'v1.5'\n")
    result = ROW | {"schema": 1, "kind": "convergence", "seed": seed, "target_top1": target, "top1": tops[-1]}
    result |= {"reached": target is not None and tops[-1] >= target, "hours": len(tops) / 2, "epochs": 3.0}
    with open(os.path.join(workdir, "result.json"), "w") as file:
        json.dump(result | {"usd_per_hour": usd_per_hour, "usd": usd_per_hour * len(tops) / 2}, file, indent=2)
    return workdir


class RatioTest(parameterized.TestCase):
    def test_the_lstm_of_2018(self):
        """21,402 over 1,658 and over 2,778; a digest of the post prints 16.9 for the first."""
        flags = ["published", "--where=model=bilstm1024", "--ratio=tpu-v2-8/p100", "--ratio=tpu-v2-8/v100-16gb"]
        first, second = run(*flags).splitlines()
        self.assertIn("12.91 per board, 3.23 per chip. Not stated by one of them: precision", first)
        self.assertIn("7.70 per board, 1.93 per chip", second)

    def test_the_resnet_of_2018_is_of_different_things(self):
        flags = ["published", "--where=model=resnet50", "--where=data=synthetic", "--ratio=tpu-v2-8/v100-16gb"]
        with self.assertRaisesRegex(
            UserError, "different things.*variant: v1.5 / v1; precision.*boards.*--allow_unlike"
        ):
            run(*flags)
        text = run(*flags, "--allow_unlike")
        self.assertIn("4.07 per board, 1.02 per chip. DIFFERENT: variant: v1.5 / v1; precision: mixed_b", text)
        self.assertIn("boards: 1 of 4 chip(s) / 4 of 4 chip(s)", text)

    def test_published_ratios(self):
        """The ratios that the post printed follow from the speeds that it printed."""
        for row in points._table("ratios.csv"):
            if row["workload"] == "bilstm1024":
                names = [row["numerator"], {"v100": "v100-16gb"}.get(row["denominator"], row["denominator"])]
                text = run("published", "--where=model=bilstm1024", f"--ratio={'/'.join(names)}")
                self.assertAlmostEqual(float(text.split(" per board")[0].split()[-1]), float(row["ratio"]), delta=0.05)

    @parameterized.parameters(
        ({"model": "resnet18"}, "model: resnet50 / resnet18"),
        ({"variant": "v1"}, "variant"),
        ({"precision": "mixed_float16"}, "precision"),
        ({"data": "imagenet"}, "data"),
        ({"feed": "device"}, "feed"),
        ({"mode": "inference"}, "mode"),
        ({"size": 96}, "size"),
        ({"rehearsal": True}, "rehearsal"),
        ({"boards": 2, "chips": 2}, "boards"),
    )
    def test_what_must_be_alike(self, change, named):
        one = points.measured_point(ROW)
        other = Point(**vars(one) | change)
        self.assertStartsWith(ratios.ratio(one, other).differences[0], named)
        self.assertEqual(ratios.ratio(one, Point(**vars(one) | {"rate": 30.0})).per_chip, 2.0)
        kept, table = ratios.matrix([one, other], allow_unlike=False)
        self.assertEqual((kept, table), ([], []))
        self.assertLen(ratios.matrix([one, other], allow_unlike=True)[0], 2)

    def test_questions_that_are_none(self):
        for question, message in (("tpu-v2-8", "must look like"), ("tpu-v9/p100", "no two such figures.*k80")):
            with self.assertRaisesRegex(UserError, message):
                run("published", f"--ratio={question}")


class ReportTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rows, self.out = (os.path.join(self.folder, name) for name in ("rows.jsonl", "report"))
        for change in (
            {},
            {"feed": "input", "examples_per_second": 900.0},
            {"usd_per_hour": 0.5, "precision": "mixed_bfloat16"},
        ):
            rows.append(self.rows, ROW | change)
        failed = {
            "kind": "throughput",
            "status": "failed",
            "error": "Out of memory with 512",
            "gin_files": [],
            "gin_bindings": [],
        }
        rows.append(self.rows, failed)
        self.runs = [
            write_run(self.folder, "a", seed=0, tops=[0.3, 0.8], target=0.7),
            write_run(self.folder, "b", seed=1, tops=[0.2, 0.5, 0.6], target=0.7),
        ]

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as file:
            return file.read()

    def test_curves(self):
        run_a = runs.read(self.runs[0])
        self.assertEqual(run_a.curve("step"), [(10, 0.3), (20, 0.8)])
        self.assertEqual(run_a.curve("hours"), [(0.5, 0.3), (1.0, 0.8)])
        self.assertEqual(run_a.curve("dollars"), [(1.0, 0.3), (2.0, 0.8)])
        self.assertEqual(runs.difference(*map(runs.read, self.runs)), [("Experiment.seed", "0", "1")])

    def test_files(self):
        text = run(self.rows, "published", *self.runs, f"--out={self.out}")
        self.assertIn("28 speeds, 16 times to accuracy, 2 runs", text)
        for name in ("speed-resnet50", "dollars-resnet50", "speedups-resnet50", "time-resnet50", "curves-hours"):
            for theme in ("", "-dark"):
                with Image.open(os.path.join(self.out, f"{name}{theme}.png")) as image:
                    self.assertGreater(image.width, 500)
        table = list(csv.DictReader(self.read("speed-resnet50.csv").splitlines()))
        self.assertEqual(table[0]["figure"], "8× h200-sxm-141gb · v1.5 · float16 · synthetic")
        self.assertEqual((table[0]["examples/s"], table[0]["per board"]), ("24,479.0", "3,059.9"))
        self.assertIn("| Experiment.seed | 0 | 1 |", self.read("difference-1.md"))
        page = self.read("index.html")
        for words in ("did not reach top1 70.0%", "Out of memory with 512", "measured", "published"):
            self.assertIn(words, page)
        self.assertIn("Left out, since the price of the whole machine is not known", page)
        self.assertNotIn("<script", page)
        self.assertIn("&lt;script&gt;", page)

    @absltest.skipUnless(BROWSER, "no Chromium here: apt-get install chromium")
    def test_in_a_browser(self):
        """Charts are there in both themes, the page asks for nothing but itself, and the console is empty."""
        run(self.rows, "published", *self.runs, f"--out={self.out}")
        asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(handler):
                asked.append(handler.path)
                super().do_GET()

            def log_message(handler, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Handler(*args, directory=self.out))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,2000"]
        # Every other host leads here too, where its requests are seen.
        flags += [
            f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
            "--enable-logging=stderr",
            f"--user-data-dir={self.folder}/c",
        ]
        flags += ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
        flags += ["--disable-features=NetworkTimeServiceQuerying"]  # the browser's own wish
        shades = []
        for theme in ([], ["--blink-settings=preferredColorScheme=0"]):
            shot = os.path.join(self.folder, f"shot{len(shades)}.png")
            command = [BROWSER, *flags, *theme, f"--screenshot={shot}", f"http://127.0.0.1:{port}/index.html"]
            log = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stderr
            self.assertNotIn("CONSOLE", log)
            with Image.open(shot) as image:
                pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
            shades.append(pixels[0].mean())
            for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):  # the marks of what was measured and published
                self.assertGreater(np.count_nonzero((pixels == colour).all(-1)), 20)
        self.assertEqual(set(asked), {"/index.html"})
        self.assertGreater(shades[0], 200)
        self.assertLess(shades[1], 60)

    def test_mistakes(self):
        for argv, message in (
            ([self.folder, f"--out={self.out}"], "no run in it: metrics.jsonl is missing"),
            (["nowhere.jsonl", f"--out={self.out}"], "nowhere.jsonl: can't be read"),
            ([self.rows], "--out is missing"),
            ([self.rows, f"--out={self.out}", "--where=model=vgg"], "nothing is left to show"),
            (
                [self.rows, f"--out={self.out}", "--where=modle=vgg"],
                "must look like model=resnet50; there are .*precision",
            ),
            ([self.rows, f"--out={self.rows}/x"], "can't be written to"),
        ):
            with self.assertRaisesRegex(UserError, message):
                run(*argv)


if __name__ == "__main__":
    absltest.main()
