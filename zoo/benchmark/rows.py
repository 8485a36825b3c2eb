"""Rows of results: one JSON object per line, with a versioned schema that docs/measuring.md describes."""

import json
import os
from collections.abc import Iterable

from zoo.guards import UserError, check

SCHEMA = 1


def append(path: str, row: dict) -> None:
    """Adds a row to a file. A last line that was not written whole is cut off first.

    Raises:
      UserError: if the file can't be written.
    """
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "a+b") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            file.write(json.dumps({"schema": SCHEMA} | row, allow_nan=False).encode() + b"\n")
    except OSError as error:
        raise UserError(f"{path}: can't be written ({error.strerror}). Choose another --out.") from error


def read(path: str) -> list[dict]:
    """The rows of a file. A last line that was not written whole is left out.

    Raises:
      UserError: if it can't be read, or a line is no row.
    """
    try:
        with open(path, encoding="utf-8", errors="strict") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: can't be read ({getattr(error, 'strerror', 'not UTF-8')}).") from error
    return [_row(path, number, line) for number, line in enumerate(lines[:-1], start=1) if line.strip()]


def read_one(path: str) -> dict:
    """The row that a training leaves as `result.json`.

    Raises:
      UserError: if it is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return _row(path, 1, file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: can't be read ({getattr(error, 'strerror', 'not UTF-8')}).") from error


def _row(path: str, number: int, line: str) -> dict:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{number}: no JSON ({error}). Take the line out.") from error
    check(isinstance(row, dict) and "schema" in row, f"{path}:{number}: no row of results: it has no 'schema'.")
    check(
        row["schema"] == SCHEMA,
        f"{path}:{number}: its schema is {row['schema']}, this zoo reads {SCHEMA}. Measure anew, or use the zoo that wrote it.",
    )
    return row


def table(rows: Iterable[dict], columns: dict[str, str]) -> str:
    """Rows as a table in Markdown.

    Args:
      rows: of results.
      columns: the head of each column, and a format of the row, such as '{examples_per_second:,.1f}'; what a row does not have
        shows as a dash.
    """
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(layout, row) for layout in columns.values()) + " |" for row in rows]
    return "\n".join(lines)


def _cell(layout: str, row: dict) -> str:
    try:
        return layout.format(**row)
    except (KeyError, TypeError):  # None has no format
        return "–"
