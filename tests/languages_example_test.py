"""The example of the languages: its data from message catalogues, and its experiment on them."""

import csv
import dataclasses
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from absl.testing import absltest

from zoo import gin_config
from zoo.experiment import Experiment
from zoo.train_and_evaluate import train_and_evaluate

EXAMPLE = Path(__file__).parents[1] / "examples" / "languages"
LANGUAGES = ("de", "es", "fr", "it", "nl", "pl", "pt", "sv")


def write_catalogue(path: Path, messages: dict[str, str]) -> None:
    """A binary message catalogue, as the GNU gettext manual describes it in "The Format of GNU MO Files"."""
    pairs = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **messages}.items())
    texts = [[text.encode() for text in column] for column in zip(*pairs, strict=True)]
    tables, offset = [], 28 + 16 * len(pairs)
    for column in texts:
        for text in column:
            tables += [len(text), offset]
            offset += len(text) + 1
    head = [0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, offset]
    body = b"".join(text + b"\0" for column in texts for text in column)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.array(head + tables, "<u4").tobytes() + body)


def made_up(language: str, number: int) -> str:
    """A line that is as long as is wanted, whose letters no other language and number have."""
    digits = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return f'{language}x "{digits}" und so weiter'


def rows(folder: Path, split: str) -> list[tuple[str, str]]:
    with open(folder / f"{split}.tsv", encoding="utf-8", newline="") as file:
        header, *found = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert header == ["text", "label"]
    return [tuple(row) for row in found]


class LanguagesTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for language in LANGUAGES:
            messages = {f"message {i}": made_up(language, i) for i in range(1_100)}
            messages |= {
                "short": "kurz",
                "long": "x" * 65,
                "shared": "the same in all languages",
                "m": "same message here",
            }
            messages |= {f"shared {i}": made_up("many", i) for i in range(200)}
            messages |= {"again": made_up(language, 7).upper(), "same message here": "same message here"}
            write_catalogue(cls.folder / "locale" / language / "LC_MESSAGES" / "made.mo", messages)
        (cls.folder / "locale" / "de" / "LC_MESSAGES" / "damaged.mo").write_bytes(b"no catalogue")
        cls.made = cls.make("data", "--lines=80")

    @classmethod
    def make(cls, out, *flags):
        command = [sys.executable, str(EXAMPLE / "make_languages.py"), f"--out={cls.folder / out}"]
        flags = [f"--locale_dir={cls.folder / 'locale'}", *flags]
        return subprocess.run([*command, *flags], capture_output=True, text=True)

    def test_data(self):
        self.assertEqual(self.made.returncode, 0, self.made.stderr)
        self.assertRegex(self.made.stderr, "left out .*damaged.mo")
        train, held_out = (rows(self.folder / "data", split) for split in ("train", "validation"))
        self.assertEqual((len(train), len(held_out)), (8 * 80, 8 * 500))
        texts = [text.casefold() for text, _ in train + held_out]
        self.assertLen(set(texts), len(texts))
        for text, language in train + held_out:
            self.assertStartsWith(text.casefold(), language + "x ")

    def test_the_same_data_again(self):
        self.make("again", "--lines=80")
        for split in ("train", "validation"):
            self.assertEqual(rows(self.folder / "again", split), rows(self.folder / "data", split))

    def test_too_few_lines(self):
        made = self.make("none", f"--locale_dir={self.folder}")
        self.assertEqual(made.returncode, 1)
        self.assertIn("0 lines, 1000 are needed", made.stderr)
        self.assertFalse((self.folder / "none").exists())

    def test_trains(self):
        gin_config.parse([str(EXAMPLE / "languages.gin")], ["bilstm.units = 8"])
        experiment = dataclasses.replace(Experiment(), train_epochs=None, train_steps=10, steps_per_loop=10)
        workdir = os.path.join(self.folder, "run")
        result = train_and_evaluate(experiment, workdir=workdir, data_dir=str(self.folder / "data"))
        self.assertEqual((result.steps, result.validation["examples"]), (10, 4_000))
        self.assertEqual(Path(workdir, "labels.txt").read_text().split(), list(LANGUAGES))


if __name__ == "__main__":
    absltest.main()
