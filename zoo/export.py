"""Writes what a run has learned for others: python -m zoo.export --workdir=runs/mine --out=saved_model"""

import argparse
import os

from zoo import command_line
from zoo.guards import UserError, check, first_line


def main(args: argparse.Namespace) -> None:
    check(bool(args.out), "--out is empty: name a new folder, or a file that ends in .keras.")
    check(not os.path.exists(args.out), f"--out={args.out}: is there already. Choose another, or remove it.")
    import tensorflow as tf

    from zoo.predictor import load_predictor
    from zoo.saving import export_keras, write_names

    predictor = load_predictor(args.workdir, args.checkpoint)
    try:
        tf.io.gfile.makedirs(os.path.dirname(os.path.abspath(args.out)))
        if args.out.endswith(".keras"):
            export_keras(predictor.model, args.out)
            write_names(f"{args.out.removesuffix('.keras')}.", predictor.labels, predictor.vocabulary)
        else:
            predictor.save(args.out)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"--out={args.out}: can't be written ({first_line(error)}). Choose another.") from error
    print(f"{args.out}: {predictor.model.name} at {predictor.checkpoint}.")


def parser() -> argparse.ArgumentParser:
    top = command_line.run_parser(
        "zoo.export",
        "Writes the network of a run as a SavedModel (from JPEG or PNG bytes, or texts, to probabilities) or, if --out ends in "
        ".keras, as a Keras file (from uint8 images or token ids to logits; labels and vocabulary go beside it).",
    )
    top.add_argument("--out", required=True, help="a folder that is not there yet, or FILE.keras")
    return top


if __name__ == "__main__":
    command_line.run(parser(), main)
