"""How well logistic regressions on n-grams of letters tell the languages of examples/languages.

    python examples/languages/make_languages.py --out=data/languages
    python benchmarks/languages_vs_ngrams.py --data_dir=data/languages

The peer of `python -m zoo.train --gin_file=examples/languages/languages.gin --data_dir=data/languages`, on the same lines.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from zoo.data.tables import read_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", default="data/languages")
    data_dir = parser.parse_args().data_dir
    train, held_out = (
        read_rows(os.path.join(data_dir, f"{split}.tsv"), "text", "label") for split in ("train", "validation")
    )
    for longest in (1, 2, 3, 5):
        started = time.perf_counter()
        features = TfidfVectorizer(analyzer="char", ngram_range=(1, longest), sublinear_tf=True, min_df=2)
        model = make_pipeline(features, LogisticRegression(C=10, max_iter=1000))
        model.fit([row.text for row in train], [row.label for row in train])
        accuracy = model.score([row.text for row in held_out], [row.label for row in held_out])
        seconds = time.perf_counter() - started
        print(f"logistic regression on 1- to {longest}-grams: {accuracy:.4f}, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
