"""Labels images or texts with what a run has learned: python -m zoo.predict --workdir=runs/mine FILE..."""

import argparse
import os
import sys
import typing
from collections.abc import Iterator, Sequence

from zoo import command_line
from zoo.guards import UserError, check

if typing.TYPE_CHECKING:
    from zoo.predictor import Predictor

BATCH = 32
TOP = 5


def predict(predictor: "Predictor", inputs: Sequence[bytes | str]) -> Iterator[list[tuple[str, float]]]:
    """The most probable classes of each input, up to five: name (or number) and probability, the greatest first.

    Args:
      predictor: of `zoo.predictor.load_predictor`.
      inputs: contents of JPEG or PNG files, or texts.
    """
    import tensorflow as tf

    for start in range(0, len(inputs), BATCH):
        for probabilities in predictor(tf.constant(inputs[start : start + BATCH]))["probabilities"].numpy():
            best = (-probabilities).argsort(kind="stable")[:TOP]
            names = predictor.labels or range(len(probabilities))
            yield [(str(names[i]), float(probabilities[i])) for i in best]


def _read_images(predictor: "Predictor", paths: Sequence[str]) -> list[bytes]:
    import tensorflow as tf

    contents = []
    for path in paths:
        content = _read(path)
        try:
            predictor.preprocess(tf.constant(content))
        except tf.errors.OpError as error:
            raise UserError(f"{path}: not a JPEG or PNG that can be decoded. Convert it, or leave it out.") from error
        contents.append(content)
    return contents


def _read_lines(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Place and text of each line."""
    lines = []
    for path in paths:
        try:
            texts = (
                _read(path).decode("utf-8-sig").removesuffix("\n").split("\n")
            )  # as training does: at no other breaks
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not a text in UTF-8 ({error.reason}). The run takes lines of text.") from error
        lines += [(f"{path}:{number}", text.removesuffix("\r")) for number, text in enumerate(texts, start=1)]
    return lines


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}.") from error


def main(args: argparse.Namespace) -> None:
    missing = [path for path in args.files if path != "-" and (os.path.isdir(path) or not os.path.exists(path))]
    check(not missing, f"{', '.join(missing[:3])}: no such file.")
    from zoo.predictor import load_predictor

    predictor = load_predictor(args.workdir, args.checkpoint)
    if predictor.takes_images:
        places, inputs = args.files, _read_images(predictor, args.files)
    else:
        lines = _read_lines(args.files)
        places, inputs = [place for place, _ in lines], [text for _, text in lines]
    for place, best in zip(places, predict(predictor, inputs), strict=True):
        print(f"{place}: " + ", ".join(f"{name} {probability:.4f}" for name, probability in best))


def parser() -> argparse.ArgumentParser:
    top = command_line.run_parser("zoo.predict", "Prints the most probable classes of each input, with probabilities.")
    top.add_argument(
        "files", nargs="+", metavar="FILE", help="a JPEG or PNG; or a file with a text per line, - for stdin"
    )
    return top


if __name__ == "__main__":
    command_line.run(parser(), main)
