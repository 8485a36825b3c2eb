"""Writes data to disk: python -m zoo.data make-fake --out=data/fake"""

import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def make_fake(args: argparse.Namespace) -> None:
    from zoo.data.fake_imagenet import write_fake_imagenet
    from zoo.guards import check

    check(bool(args.out), "--out= is empty: name a folder.")
    options = {name: value for name, value in vars(args).items() if name not in ("command", "out")}
    write_fake_imagenet(args.out, **options)
    print(f"{args.out}: {args.train_images:,} training and {args.validation_images:,} validation images.")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m zoo.data", description="Writes data to disk.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    fake = commands.add_parser(
        "make-fake",
        help="write JPEGs of textures, which a network can learn, as TFRecords in the official ImageNet layout",
        description="Writes a fake ImageNet. The same call continues an interrupted one; the files follow from the seed.",
    )
    fake.set_defaults(command=make_fake)
    fake.add_argument("--out", required=True, help="folder or gs:// address to write to")
    fake.add_argument("--train_images", type=int, default=51_200)
    fake.add_argument("--validation_images", type=int, default=5_000)
    fake.add_argument("--train_shards", type=int, help="files; one per 256 images, at most 1024, if not given")
    fake.add_argument("--validation_shards", type=int, help="files; one per 256 images, at most 128, if not given")
    fake.add_argument("--classes", type=int, default=1000, help="2 to 1000")
    fake.add_argument("--seed", type=int, default=0)
    fake.add_argument("--workers", type=int, help="threads; one per core if not given")
    return top


def main() -> None:
    args = parser().parse_args()
    try:
        args.command(args)
    except (ValueError, OSError) as error:
        print(f"zoo.data: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("zoo.data: interrupted. The same command goes on where this one ended.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
