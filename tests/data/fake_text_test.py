"""Fake texts: only the order of their markers gives the class away."""

import itertools

import numpy as np
from absl.testing import absltest, parameterized
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from zoo.data.fake_text import fake_text, markers, shortest


class FakeTextTest(parameterized.TestCase):
    @parameterized.parameters(2, 10, 100)
    def test_the_class_is_in_the_order(self, classes):
        rng = np.random.default_rng(0)
        first, second = markers(classes)
        for label in range(classes):
            words = fake_text(label, classes, shortest(classes) + 20, rng).split()
            marks = [word for word in words if word[0] in "ab"]
            self.assertLen(set(marks), first + second)
            self.assertLen(marks, first + second)
            a = next(int(word[1:]) for word in marks if word[0] == "a")
            b = next(int(word[1:]) for word in reversed(marks) if word[0] == "b")
            self.assertEqual(a * second + b, label)
            self.assertFalse(any(x[0] in "ab" and y[0] in "ab" for x, y in itertools.pairwise(words)))

    def test_counts_of_words_and_pairs_say_nothing(self):
        rng = np.random.default_rng(1)
        labels = rng.integers(0, 2, 4_000)
        texts = [fake_text(int(label), 2, 32, rng) for label in labels]
        model = make_pipeline(
            CountVectorizer(ngram_range=(1, 2), token_pattern=r"\S+", min_df=2),
            LogisticRegression(C=0.01, max_iter=300),
        ).fit(texts[:2_000], labels[:2_000])
        self.assertLess(abs(model.score(texts[2_000:], labels[2_000:]) - 0.5), 0.03)


if __name__ == "__main__":
    absltest.main()
