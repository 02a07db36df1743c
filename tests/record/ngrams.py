"""The ids that fastText 0.9 gives lines of text, for tokenizer=ngrams: tests/data/ngrams.json.

    PYTHON tests/record/ngrams.py        (a Python with fasttext)

fastText has no function for the ids of a line. But the vector of a line is the mean of its rows of the input matrix, so
with the identity as that matrix it counts each id."""
import json
import pathlib
import tempfile

import fasttext
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Each word has a count of its own, as fastText does not define the order of equally frequent ones.
COUNTS = {"the": 14, "fox": 11, "Straße": 10, "日本語": 9, "naïve": 8, "a": 7, "don't": 6, "😀!": 5, ",": 4, "x1": 3}
LINES = ["", "the", "the fox", "the fox , the fox", "  a\ttab  and\v other \f spaces ", "Straße 日本語 naïve 😀!",
         "unknown words only", "don't x1 the 日本語 unbekannt the", "é", "a a a a a a", "<the> fo ox> <fo"]
SETTINGS = [dict(word_ngrams=1, minn=0, maxn=0, buckets=0), dict(word_ngrams=2, minn=0, maxn=0, buckets=1009),
            dict(word_ngrams=5, minn=0, maxn=0, buckets=997), dict(word_ngrams=1, minn=2, maxn=4, buckets=1013),
            dict(word_ngrams=3, minn=1, maxn=6, buckets=1021), dict(word_ngrams=1, minn=3, maxn=6, buckets=2000000)]


def texts():
    """13 lines that have each word as often as COUNTS says."""
    return [" ".join(word for word, n in COUNTS.items() if n > i) for i in range(12, 0, -1)] + ["the the"]


def line_ids(model, line, rows):
    """The ids of a line, in ascending order, each as often as it occurs."""
    vector = np.array(model.get_sentence_vector(line), dtype=np.float64)
    for length in range(1, 1000):
        counts = vector * length
        if abs(counts - counts.round()).max() < 1e-3 and round(counts.sum()) == length:
            return np.repeat(np.arange(rows), counts.round().astype(int)).tolist()
    raise ValueError(line)


def record(setting, path):
    model = fasttext.train_supervised(path, dim=4, epoch=1, minCount=1, wordNgrams=setting["word_ngrams"],
                                      minn=setting["minn"], maxn=setting["maxn"], bucket=setting["buckets"], thread=1,
                                      verbose=0)
    out = dict(setting, words=model.get_words())
    out["subwords"] = {word: model.get_subwords(word)[1].tolist() for word in [*COUNTS, "unbekannt", "日本"]}
    rows = model.get_input_matrix().shape[0]
    if rows < 2000:
        model.set_matrices(np.eye(rows, dtype=np.float32), np.zeros((len(model.get_labels()), rows), dtype=np.float32))
        out["lines"] = {line: line_ids(model, line, rows) for line in LINES}
    return out


with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    file.writelines(f"__label__{i % 2} {text}\n" for i, text in enumerate(texts()))
    file.flush()
    result = {"texts": texts(), "settings": [record(setting, file.name) for setting in SETTINGS]}
(ROOT / "tests/data/ngrams.json").write_text(json.dumps(result, ensure_ascii=False) + "\n")
