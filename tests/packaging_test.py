"""What pip installs."""

import email
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from absl.testing import absltest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class ImportTest(absltest.TestCase):
    def test_import_is_light(self):
        program = "import sys, zoo; assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)

    def test_help_does_not_import_tensorflow(self):
        for module in ("zoo.train", "zoo.data"):
            run = subprocess.run(
                [sys.executable, "-X", "importtime", "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True
            )
            self.assertNotIn("| tensorflow\n", run.stderr)
            self.assertIn("gin_file" if module == "zoo.train" else "make-fake", run.stdout)


class WheelTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        source = os.path.join(cls.folder.name, "source")  # a copy, so that build/ does not appear in the checkout
        for name in ("zoo", "gin"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(source, name))
        for name in ("setup.py", "pyproject.toml", "README.md", "MANIFEST.in"):
            shutil.copy(os.path.join(ROOT, name), source)
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "."]
        subprocess.run([*command, f"--wheel-dir={cls.folder.name}"], cwd=source, check=True, capture_output=True)
        (wheel,) = (name for name in os.listdir(cls.folder.name) if name.endswith(".whl"))
        cls.wheel = zipfile.ZipFile(os.path.join(cls.folder.name, wheel))
        cls.addClassCleanup(cls.wheel.close)

    def test_every_gin_file_travels(self):
        inside = {name.removeprefix("zoo/") for name in self.wheel.namelist() if name.endswith(".gin")}
        outside = set()
        for folder, _, names in os.walk(os.path.join(ROOT, "gin")):
            outside |= {os.path.relpath(os.path.join(folder, n), ROOT) for n in names if n.endswith(".gin")}
        self.assertEqual(inside, outside)
        self.assertGreater(len(inside), 3)

    def test_nothing_else_does(self):
        tops = {name.split("/")[0] for name in self.wheel.namelist()}
        self.assertLen(tops, 2)
        self.assertIn("zoo", tops)
        for module in ("zoo/data/__main__.py", "zoo/models/resnet.py", "zoo/input_pipelines/images.py"):
            self.assertIn(module, self.wheel.namelist())

    def test_metadata(self):
        (info,) = {name.split("/")[0] for name in self.wheel.namelist() if ".dist-info/" in name}
        metadata = email.message_from_bytes(self.wheel.read(f"{info}/METADATA"))
        self.assertEqual((metadata["Name"], metadata["Requires-Python"]), ("accelerator-zoo", ">=3.11"))
        self.assertLessEqual({"gpu", "test", "dev"}, set(metadata.get_all("Provides-Extra")))
        self.assertIn("zoo-train = zoo.train:run", self.wheel.read(f"{info}/entry_points.txt").decode())

    def test_a_tpu_host_gets_every_dependency(self):
        (info,) = {name.split("/")[0] for name in self.wheel.namelist() if ".dist-info/" in name}
        asked = email.message_from_bytes(self.wheel.read(f"{info}/METADATA")).get_all("Requires-Dist")
        names = {re.match(r"[\w.-]+", line)[0] for line in asked if "extra ==" not in line}
        with open(os.path.join(ROOT, "requirements-tpu.txt")) as file:
            lines = file.read().splitlines()
        listed = {re.match(r"[\w.-]+", line)[0] for line in lines if not line.startswith("#")}
        self.assertEqual(listed - names, {"tensorflow-tpu", "libtpu"})
        self.assertEqual(names - listed, {"tensorflow"})

    def test_gin_is_no_package(self):
        self.assertFalse(os.path.exists(os.path.join(ROOT, "gin", "__init__.py")))


if __name__ == "__main__":
    absltest.main()
