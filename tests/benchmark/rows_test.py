"""Rows of results are appended and read whatever a killed process left behind."""

import os
import tempfile

from absl.testing import absltest

from zoo.benchmark import rows
from zoo.guards import UserError


class RowsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "new", "rows.jsonl")

    def test_a_half_written_last_line(self):
        for i in range(2):
            rows.append(self.path, {"i": i})
        with open(self.path, "a") as file:
            file.write('{"schema": 1, "i": 9')
        self.assertEqual([row["i"] for row in rows.read(self.path)], [0, 1])
        rows.append(self.path, {"i": 2})
        self.assertEqual(rows.read(self.path), [{"schema": 1, "i": i} for i in range(3)])

    def test_bad_lines(self):
        rows.append(self.path, {})
        for line, message in (
            ("{", ":2: no JSON"),
            ("[1]", ":2: no row of results"),
            ('{"schema": 7}', ":2: its schema is 7, this zoo reads 1"),
        ):
            with open(self.path, "a") as file:
                position = file.tell()
                file.write(line + "\n")
            with self.assertRaisesRegex(UserError, message):
                rows.read(self.path)
            os.truncate(self.path, position)

    def test_not_a_number_is_not_written(self):
        with self.assertRaises(ValueError):
            rows.append(self.path, {"examples_per_second": float("nan")})

    def test_no_such_file(self):
        with self.assertRaisesRegex(UserError, "rows.jsonl: can't be read"):
            rows.read(self.path)

    def test_table(self):
        text = rows.table([{"a": 1234.5}, {"a": None, "b": 2}], {"A": "{a:,.1f}", "B": "{b}"})
        self.assertEqual(text.splitlines()[2:], ["| 1,234.5 | – |", "| – | 2 |"])


if __name__ == "__main__":
    absltest.main()
