"""The notebook runs from top to bottom."""

import contextlib
import io
import json
import os
import tempfile

from absl.testing import absltest

NOTEBOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "quickstart.ipynb")


class NotebookTest(absltest.TestCase):
    def test_runs_from_top_to_bottom(self):
        with open(NOTEBOOK) as file:
            cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 4)
        before, out, names = os.getcwd(), io.StringIO(), {}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            os.chdir(folder)
            try:
                for number, source in enumerate(cells):
                    exec(compile(source, f"{NOTEBOOK}, code cell {number}", "exec"), names)
            finally:
                os.chdir(before)
        self.assertEqual(names["logits"].shape, (1, 10))
        self.assertGreater(names["result"].validation["top1"], 0.3)  # chance is 0.1
        self.assertEqual(names["again"].steps, 4)
        self.assertIn("did you mean precision?", out.getvalue())


if __name__ == "__main__":
    absltest.main()
