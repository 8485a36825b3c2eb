"""Writes lines of translated messages, and the language of each, as `train.tsv` and `validation.tsv`.

    python examples/languages/make_languages.py --out=data/languages

The lines come from the message catalogues (`LC_MESSAGES/*.mo`) of the programs on this machine, as every Debian or Ubuntu with
translations has them; nothing is downloaded. No two lines of the whole set have the same letters.
"""

import argparse
import csv
import gettext
import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from glob import glob

LANGUAGES = ("de", "es", "fr", "it", "nl", "pl", "pt", "sv")
LONGEST, SHORTEST = 64, 16  # bytes of UTF-8
HELD_OUT = 500  # of each language


def messages(locale_dir: str, language: str) -> Iterator[str]:
    """All translations of all catalogues of a language; a catalogue that can't be read is left out, and said."""
    for path in sorted(glob(os.path.join(locale_dir, language, "LC_MESSAGES", "*.mo"))):
        try:
            with open(path, "rb") as file:
                catalogue = gettext.GNUTranslations(file)._catalog
        except (OSError, UnicodeDecodeError) as error:
            print(f"left out {path}: {error}", file=sys.stderr)
            continue
        yield from (text for original, text in catalogue.items() if original and text != original)


def lines(locale_dir: str, language: str) -> dict[str, str]:
    """Lines of fitting length, by their letters in small: what differs in figures, signs or case counts once."""
    found = {}
    for message in messages(locale_dir, language):
        for line in message.splitlines():
            line = " ".join(line.split())
            if SHORTEST <= len(line.encode()) <= LONGEST:
                found.setdefault(letters(line), line)
    return found


def letters(text: str) -> str:
    return re.sub(r"[\W\d_]+", " ", text.casefold()).strip()


def order(key: str) -> bytes:
    """Shuffles the same way on every machine."""
    return hashlib.sha256(key.encode()).digest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder to write to")
    parser.add_argument("--locale_dir", default="/usr/share/locale", help="where the message catalogues are")
    parser.add_argument(
        "--lines", type=int, default=6_500, help="training lines of each language; fewer where it has fewer"
    )
    flags = parser.parse_args()
    found = {language: lines(flags.locale_dir, language) for language in LANGUAGES}
    languages_of = Counter(key for by_letters in found.values() for key in by_letters)
    rows = {"train": [], "validation": []}
    for language in LANGUAGES:
        keys = sorted((key for key in found[language] if languages_of[key] == 1), key=order)
        if len(keys) < 2 * HELD_OUT:
            sys.exit(
                f"{flags.locale_dir}/{language}: {len(keys)} lines, {2 * HELD_OUT} are needed. Install programs with their "
                "translations, or name --locale_dir."
            )
        rows["validation"] += [(found[language][key], language) for key in keys[:HELD_OUT]]
        rows["train"] += [(found[language][key], language) for key in keys[HELD_OUT : HELD_OUT + flags.lines]]
    os.makedirs(flags.out, exist_ok=True)
    for split, texts in rows.items():
        path = os.path.join(flags.out, f"{split}.tsv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, lineterminator="\n")
            writer.writerows([("text", "label"), *texts])
        print(f"{path}: {len(texts):,} lines of {', '.join(LANGUAGES)}")


if __name__ == "__main__":
    main()
