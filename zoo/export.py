"""Writes what a run has learned for others: python -m zoo.export --workdir=runs/mine --out=saved_model"""

import argparse
import os

from zoo import command_line
from zoo.guards import check


def main(args: argparse.Namespace) -> None:
    check(bool(args.out), "--out is empty: name a new folder, or a file that ends in .keras.")
    check(not os.path.exists(args.out), f"--out={args.out}: is there already. Choose another, or remove it.")
    from zoo.predictor import load_predictor
    from zoo.saving import export_keras

    predictor = load_predictor(args.workdir, args.checkpoint)
    if args.out.endswith(".keras"):
        export_keras(predictor.model, args.out)
    else:
        predictor.save(args.out)
    print(f"{args.out}: {predictor.model.name} at {predictor.checkpoint}.")


def parser() -> argparse.ArgumentParser:
    top = command_line.run_parser(
        "zoo.export",
        "Writes the network of a run as a SavedModel (from JPEG or PNG bytes, or texts, to probabilities) or, if --out ends in "
        ".keras, as a Keras file (from uint8 images or token ids to logits).",
    )
    top.add_argument("--out", required=True, help="a folder that is not there yet, or FILE.keras")
    return top


if __name__ == "__main__":
    command_line.run(parser(), main)
