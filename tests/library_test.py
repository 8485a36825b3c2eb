"""The lines of docs/library.md, run as they stand there."""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from unittest import mock

from absl.testing import absltest

import zoo.evaluate
import zoo.export
import zoo.predict
from zoo import command_line

PAGE = (Path(__file__).parents[1] / "docs" / "library.md").read_text()
MODULES = {"zoo.evaluate": zoo.evaluate, "zoo.predict": zoo.predict, "zoo.export": zoo.export}


class LibraryTest(absltest.TestCase):
    def test_every_line_runs(self):
        said = io.StringIO()
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            names = {}
            for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
                exec(compile(block, "docs/library.md", "exec"), names)
            (commands,) = re.findall(r"```\n(python -m .*?)```", PAGE, re.DOTALL)
            for line in commands.splitlines():
                _, _, module, *flags = shlex.split(line)
                with mock.patch.object(sys, "argv", [module, *flags]):
                    command_line.run(MODULES[module].parser(), MODULES[module].main)
            self.assertTrue(os.path.exists("network.keras") and os.path.isdir("saved"))
        self.assertIn("Init from:", said.getvalue())
        self.assertIn("newly drawn: logits", said.getvalue())


if __name__ == "__main__":
    absltest.main()
