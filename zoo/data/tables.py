"""Rows of CSV, TSV and JSONL files: a text and a label each, with the line that they stand on."""

import csv
import io
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from zoo.guards import UserError, check

FORMATS = (".csv", ".tsv", ".jsonl")


class Row(NamedTuple):
    """A text, its label as it stands in the file, and its line, from 1."""

    text: str
    label: str
    line: int


def read_rows(path: str, text_column: str, label_column: str) -> list[Row]:
    """All rows of a file, by its ending: `.csv` (RFC 4180), `.tsv` (no quotes, IANA) or `.jsonl` (an object per line), UTF-8.

    Raises:
      UserError: naming file and line, where a column is missing, a line is not UTF-8 or not of its format.
    """
    ending = os.path.splitext(path)[1]
    check(ending in FORMATS, f"{path}: unknown ending {ending!r}; texts are read from {', '.join(FORMATS)}.")
    check(tf.io.gfile.exists(path), f"{path}: no such file. Point --data_dir at the folder of the texts.")
    with tf.io.gfile.GFile(path, "rb") as file:
        lines = list(_decoded(path, file.read()))
    read = _json_rows if ending == ".jsonl" else _table_rows
    check(any(line.strip() for line in lines), f"{path}: empty. Write the texts again, or name another file.")
    rows = list(read(path, lines, text_column, label_column))
    check(bool(rows), f"{path}: no rows.")
    for row in rows:
        check(
            "\n" not in row.label and "\r" not in row.label,
            f"{path}:{row.line}: the label {row.label!r} has a line break.",
        )
    return rows


def _decoded(path: str, content: bytes) -> Iterator[str]:
    for number, line in enumerate(io.BytesIO(content), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}:{number}: not UTF-8 ({error.reason}). Convert the file.") from error


def _table_rows(path: str, lines: list[str], text_column: str, label_column: str) -> Iterator[Row]:
    csv.field_size_limit(2**31 - 1)
    tabs = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    line = 1  # that a row starts on: one in quotes may have several
    reader = csv.reader(lines, strict=True, **(tabs if path.endswith(".tsv") else {}))
    try:
        header = next(reader, [])
        for column in (text_column, label_column):
            check(column in header, f"{path}:1: no column {column!r}, but {', '.join(header)}. Name the column in Gin.")
        text, label = header.index(text_column), header.index(label_column)
        line = reader.line_num + 1
        for row in reader:
            if row:
                check(len(row) == len(header), f"{path}:{line}: {len(row)} columns, the header has {len(header)}.")
                yield Row(row[text], row[label], line)
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}:{line}: {error}. An open quote may be the cause.") from error


def _json_rows(path: str, lines: list[str], text_column: str, label_column: str) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: not JSON ({error}).") from error
        check(isinstance(row, dict), f"{path}:{number}: not a JSON object.")
        for column in (text_column, label_column):
            check(column in row, f"{path}:{number}: no column {column!r}, but {', '.join(row)}.")
        check(isinstance(row[text_column], str), f"{path}:{number}: {text_column} is no string.")
        check(
            isinstance(row[label_column], str | int),
            f"{path}:{number}: {label_column} is neither a string nor an integer.",
        )
        found = Row(row[text_column], str(row[label_column]), number)
        try:
            (found.text + found.label).encode()
        except UnicodeEncodeError as error:
            raise UserError(f"{path}:{number}: no Unicode text ({error.reason}).") from error
        yield found
