"""Rows of tables, with the lines that they stand on; bad ones name file and line."""

import os
import tempfile

from absl.testing import absltest, parameterized

from zoo.data.tables import read_rows
from zoo.guards import UserError


class TablesTest(parameterized.TestCase):
    def read(self, name, content):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            return read_rows(path, "text", "label")

    @parameterized.parameters(
        ("a.csv", b'text,label\n"one, ""two""\nthree",x\nfour,y\n', [('one, "two"\nthree', "x", 2), ("four", "y", 4)]),
        ("a.tsv", b'\xef\xbb\xbflabel\ttext\r\nx\t"one\r\n\r\ny\t\r\n', [('"one', "x", 2), ("", "y", 4)]),
        ("a.jsonl", b'{"text": "one", "label": 3}\n\n{"label": "y", "text": ""}\n', [("one", "3", 1), ("", "y", 3)]),
    )
    def test_reads(self, name, content, expected):
        self.assertEqual([tuple(row) for row in self.read(name, content)], expected)

    @parameterized.parameters(
        ("a.jsonl", b'{"text": "one", "label": 3}\n{"text": 4, "label": 3}\n', "a.jsonl:2: text is no string"),
        ("a.jsonl", b'{"text": "one"}\n', "a.jsonl:1: no column 'label', but text"),
        ("a.jsonl", b"{\n", "a.jsonl:1: not JSON"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: not a JSON object"),
        ("a.jsonl", b'{"text": "one", "label": 1.5}\n', "a.jsonl:1: label is neither a string nor an integer"),
        ("a.csv", b'text,label\n"one,x\n', "a.csv:2: unexpected end of data"),
        ("a.csv", b"text,label\none,x,y\n", "a.csv:2: 3 columns, the header has 2"),
        ("a.tsv", b"text\tlabel\none\tx\n\xff\ty\n", "a.tsv:3: not UTF-8"),
        ("a.csv", b'text,label\none,x\n"two,y\nthree,x\n', "a.csv:3: unexpected end of data. An open quote"),
        ("a.csv", b'text,label\n"o\nne",x\n"t\nwo",x,y\n', "a.csv:4: 3 columns"),
        ("a.csv", b'text,label\none,"x\ny"\n', "a.csv:2: the label 'x.ny' has a line break"),
        ("a.jsonl", b'{"text": "a \\ud800", "label": 3}\n', "a.jsonl:1: no Unicode text"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "a.jsonl:1: not JSON"),
        ("a.tsv", b"text\n", "a.tsv:1: no column 'label', but text"),
        ("a.tsv", b"", "a.tsv: empty"),
        ("a.txt", b"one", "unknown ending '.txt'"),
    )
    def test_bad_rows(self, name, content, message):
        with self.assertRaisesRegex(UserError, message):
            self.read(name, content)


if __name__ == "__main__":
    absltest.main()
