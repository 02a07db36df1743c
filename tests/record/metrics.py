"""Values of metrics by scikit-learn, torchmetrics, sacrebleu and seqeval, to
tests/data/metrics.h: random and degenerate inputs. Run with those packages installed."""

import pathlib
import warnings

import numpy as np
import sacrebleu
import torch
import torchmetrics
from seqeval import metrics as seqeval
from sklearn import metrics as sk

warnings.filterwarnings("ignore")
rng = np.random.default_rng(20)
out = ["/* Recorded by tests/record/metrics.py; do not edit. */", "/* clang-format off */"]


def number(value):
    value = float(value)
    return "NAN" if np.isnan(value) else f"{value:.17g}"


def array(kind, name, values):
    flat = np.asarray(values).reshape(-1)
    text = [f"{v:.9g}f" if kind == "float" and ("." in f"{v:.9g}" or "e" in f"{v:.9g}") else
            f"{v:.9g}.0f" if kind == "float" else str(int(v)) for v in flat]
    out.append(f"static const {kind} {name}[] = {{ {', '.join(text)} }};")


def text(value):
    return '"' + "".join(
        c if 32 <= ord(c) < 127 and c not in '"\\?' else "".join(f"\\{b:03o}" for b in c.encode()) for c in value) + '"'


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- Classes --------------------------------------------------------------------------

class_rows, class_wants = [], []


def classes(name, scores, labels):
    scores = np.asarray(scores, np.float32)
    labels = np.asarray(labels, np.int64)
    n, width = scores.shape
    array("float", f"{name}_scores", scores)
    array("int32_t", f"{name}_labels", labels)
    class_rows.append(f'    {{ "{name}", {name}_scores, {name}_labels, {n}, {width} }},')
    wide = scores.astype(np.float64)
    if width == 1:
        one = 1 / (1 + np.exp(-wide[:, 0]))
        p = np.stack([1 - one, one], 1)
        predicted = (wide[:, 0] > 0).astype(int)
    else:
        p = softmax(wide)
        predicted = wide.argmax(1)
    count = p.shape[1]

    def want(metric, options, value, part=""):
        class_wants.append(f'    {{ "{name}", "{metric}", "{options}", "{part}", {number(value)} }},')

    want("accuracy", "", sk.accuracy_score(labels, predicted))
    if count > 2:
        for k in [2, count - 1]:
            want("accuracy", f"top_k: {k}",
                 sk.top_k_accuracy_score(labels, wide, k=k, labels=range(count)))
    averages = ["micro", "macro", "weighted"] + (["binary"] if count == 2 else [])
    for metric, function in [("precision", sk.precision_score), ("recall", sk.recall_score),
                             ("f1", sk.f1_score), ("dice", sk.f1_score), ("iou", sk.jaccard_score)]:
        for average in averages:
            want(metric, f"average: {average}",
                 function(labels, predicted, average=average, zero_division=0))
        present = set(labels) | set(predicted)
        each = function(labels, predicted, labels=range(count), average=None, zero_division=0)
        for c in range(count):
            want(metric, "per_class: true", each[c] if c in present else np.nan, str(c))
    matrix = sk.confusion_matrix(labels, predicted, labels=range(count))
    for normalize in ["none", "true", "pred", "all"]:
        shares = matrix if normalize == "none" else sk.confusion_matrix(
            labels, predicted, labels=range(count), normalize=normalize)
        want("confusion_matrix", f"normalize: '{normalize}'", shares[0, 1], "0/1")
        want("confusion_matrix", f"normalize: '{normalize}'", shares[1, 1], "1/1")
    want("log_loss", "", torch.nn.functional.nll_loss(torch.log(torch.from_numpy(p)),
                                                      torch.from_numpy(labels)))
    perplexity = torchmetrics.text.Perplexity()
    if width > 1:
        perplexity.set_dtype(torch.float64)
        perplexity.update(torch.from_numpy(wide)[None], torch.from_numpy(labels)[None])
        want("perplexity", "", perplexity.compute())
    # One class against the rest; those that don't occur, or are all there is, are left out.
    one_hot = labels[:, None] == np.arange(count)
    area = [sk.roc_auc_score(one_hot[:, c], p[:, c]) if 0 < one_hot[:, c].sum() < n else np.nan
            for c in range(count)]
    precision = [sk.average_precision_score(one_hot[:, c], p[:, c]) if one_hot[:, c].any() else np.nan
                 for c in range(count)]
    weights = one_hot.sum(0)
    for metric, each in [("auroc", np.array(area)), ("average_precision", np.array(precision))]:
        known = ~np.isnan(each)
        own = each[1] if count == 2 else each[known].mean() if known.any() else np.nan
        want(metric, "", own)
        if count > 2:
            want(metric, "average: weighted",
                 (each[known] * weights[known]).sum() / weights[known].sum() if known.any() else np.nan)
        for c in range(count):
            want(metric, "per_class: true", each[c], str(c))
    if count > 2 and len(set(labels)) == count:  # that the means above are theirs
        assert np.isclose(sk.roc_auc_score(labels, p, multi_class="ovr"), np.mean(area))
        assert np.isclose(sk.roc_auc_score(labels, p, multi_class="ovr", average="weighted"),
                          (np.array(area) * weights).sum() / n)


labels = rng.integers(0, 5, 60)
classes("random", rng.normal(size=(60, 5)) + 1.5 * np.eye(5)[labels], labels)
labels = rng.integers(0, 2, 50)
classes("two", rng.normal(size=(50, 2)) + np.eye(2)[labels], labels)
classes("single", (rng.normal(size=(50, 1)) + 1.4 * labels[:, None] - 0.5), labels)
labels = rng.integers(0, 3, 40)
classes("ties", np.stack([rng.integers(0, 3, 40) * 0.5, rng.integers(0, 3, 40) * 0.5 + 0.125,
                          rng.integers(0, 3, 40) * 0.5 + 0.25], 1), labels)
classes("tied", np.zeros((9, 1)) + 0.5, [0, 1, 1, 0, 1, 0, 0, 0, 1])
classes("absent", rng.normal(size=(20, 4)) - [0, 0, 0, 9], rng.integers(0, 2, 20))
classes("alone", rng.normal(size=(6, 3)), [2] * 6)
classes("one_row", [[0.5, -1.0, 2.0]], [0])
classes("certain", [[90, -90], [-90, 90], [-90, 90], [90, -90.0]], [0, 1, 0, 0])

# ---- Values ---------------------------------------------------------------------------

value_rows, value_wants = [], []


def values(name, predictions, targets):
    predictions, targets = np.asarray(predictions, np.float32), np.asarray(targets, np.float32)
    array("float", f"{name}_predictions", predictions)
    array("float", f"{name}_targets", targets)
    value_rows.append(f'    {{ "{name}", {name}_predictions, {name}_targets, '
                      f'{predictions.shape[0]}, {predictions.shape[1]} }},')
    x, y = predictions.astype(np.float64), targets.astype(np.float64)
    for metric, options, value in [
            ("mae", "", sk.mean_absolute_error(y, x)), ("mse", "", sk.mean_squared_error(y, x)),
            ("mse", "root: true", np.sqrt(sk.mean_squared_error(y, x))),
            ("r2", "", sk.r2_score(y, x) if len(y) > 1 else np.nan)]:
        value_wants.append(f'    {{ "{name}", "{metric}", "{options}", "", {number(value)} }},')


targets = rng.normal(size=(40, 1)) * 3 + 100
values("line", targets + rng.normal(size=(40, 1)), targets)
targets = rng.normal(size=(30, 3)) * [1, 5, 1e-3] + [0, 1e3, 1]
values("three", targets + rng.normal(size=(30, 3)) * [0.3, 2, 1e-3], targets)
values("constant", rng.normal(size=(8, 1)), np.full((8, 1), 0.1))
values("exact", np.full((8, 1), 0.1), np.full((8, 1), 0.1))
values("single_value", [[1.0]], [[2.0]])

# ---- Rankings --------------------------------------------------------------------------

ranking_rows, ranking_wants = [], []


def rankings(name, scores, relevances, sizes):
    scores, relevances = np.asarray(scores, np.float32), np.asarray(relevances, np.float32)
    array("float", f"{name}_ranks", scores)
    array("float", f"{name}_relevances", relevances)
    array("int64_t", f"{name}_sizes", sizes)
    ranking_rows.append(f'    {{ "{name}", {name}_ranks, {name}_relevances, {name}_sizes, '
                        f'{len(scores)}, {len(sizes)} }},')
    ends = np.cumsum(sizes)
    groups = [(scores[e - s:e].astype(float), relevances[e - s:e].astype(float))
              for s, e in zip(sizes, ends)]
    for empty, value_of_empty in [("zero", 0.0), ("one", 1.0), ("skip", None)]:
        def mean(function):
            each = [function(s, r) if (r > 0).any() else value_of_empty for s, r in groups]
            each = [e for e in each if e is not None]
            return np.mean(each) if each else np.nan

        def want(metric, options, value):
            options += f"{', ' if options else ''}empty: {empty}"
            ranking_wants.append(f'    {{ "{name}", "{metric}", "{options}", "", {number(value)} }},')

        def ndcg(s, r, k=None):
            return sk.ndcg_score([r], [s], k=k) if len(s) > 1 else 1.0

        want("mean_average_precision", "", mean(lambda s, r: sk.average_precision_score(r > 0, s)))
        want("ndcg", "", mean(ndcg))
        for k in [1, 3]:
            want("ndcg", f"k: {k}", mean(lambda s, r: ndcg(s, r, k)))
        want("ndcg", "gain: exp2", mean(lambda s, r: ndcg(s, 2 ** r - 1)))
    if len(set(scores)) == len(scores):  # without ties torchmetrics says the same (of positive scores)
        for s, r in groups:
            if (r > 0).any() and len(s) > 1:
                pair = torch.from_numpy(s - s.min() + 1), torch.from_numpy(r).long()
                ap = torchmetrics.functional.retrieval.retrieval_average_precision(pair[0], pair[1] > 0)
                ndcg = torchmetrics.functional.retrieval.retrieval_normalized_dcg(*pair)
                assert np.isclose(sk.average_precision_score(r > 0, s), ap)
                assert np.isclose(sk.ndcg_score([r], [s]), ndcg)


sizes = [5, 1, 8, 3, 12, 2, 4]
rankings("queries", rng.normal(size=35), rng.integers(0, 4, 35) * (rng.random(35) < 0.6), sizes)
rankings("tied_queries", rng.integers(0, 3, 35), rng.integers(0, 3, 35), sizes)
rankings("irrelevant", rng.normal(size=6), np.zeros(6), [2, 4])

# ---- Texts ---------------------------------------------------------------------------------

text_rows, text_wants = [], []


def texts(name, sequences, references):
    n = len(references[0])
    out.append(f"static const char *const {name}_texts[] = {{ {', '.join(map(text, sequences))} }};")
    flat = [r[i] for i in range(n) for r in references]
    out.append(f"static const char *const {name}_references[] = {{ {', '.join(map(text, flat))} }};")
    text_rows.append(f'    {{ "{name}", {name}_texts, {name}_references, {n}, {len(references)} }},')


def bleus(name, sequences, references):
    texts(name, sequences, references)
    for options, arguments in [
            ("", {}), ("tokenize: none", {"tokenize": "none"}), ("tokenize: intl", {"tokenize": "intl"}),
            ("tokenize: char", {"tokenize": "char"}),
            ("smooth: none", {"smooth_method": "none"}), ("smooth: floor", {"smooth_method": "floor"}),
            ("smooth: floor, smooth_value: 0.5", {"smooth_method": "floor", "smooth_value": 0.5}),
            ("smooth: add_k", {"smooth_method": "add-k"}),
            ("effective_order: true", {"effective_order": True}),
            ("max_order: 2", {"max_ngram_order": 2})]:
        value = sacrebleu.BLEU(**arguments).corpus_score(sequences, references).score
        text_wants.append(f'    {{ "{name}", "bleu", "{options}", "", {number(value)} }},')
    for options, arguments in [
            ("", {}), ("word_order: 2", {"word_order": 2}), ("whitespace: true", {"whitespace": True}),
            ("word_order: 2, eps_smoothing: true", {"word_order": 2, "eps_smoothing": True}),
            ("char_order: 3, beta: 1.0", {"char_order": 3, "beta": 1})]:
        value = sacrebleu.CHRF(**arguments).corpus_score(sequences, references).score
        text_wants.append(f'    {{ "{name}", "chrf", "{options}", "", {number(value)} }},')


words = "the cat dog sat, on a mat. and looked 3.5 -x at 10-20 (big) U.S. \"it\" isn't 1,000 &amp; 50%".split()
truth = [" ".join(rng.choice(words, rng.integers(3, 15))) for _ in range(12)]
second = [" ".join(rng.choice(words, rng.integers(3, 15))) for _ in range(12)]
noisy = [" ".join(w if rng.random() < 0.8 else rng.choice(words) for w in line.split()) for line in truth]
bleus("corpus", noisy, [truth, second])
bleus("odd", ["Caf\u00e9, na\u00efve\u3000text\u00a0here.  ", "a &lt;skipped&gt;b <skipped> &quot;q&quot; x-\ny z\n", "3,000.50 .5 5. ,,..x\u20ac.\u20ac2-3",
              "one[two]{three}~`four/five@six;seven:eight"],
      [["Caf\u00e9, na\u00efve text here .", "a <skipped>b \"q\" xy z", "3,000.50 . 5 5 . , , . . x\u20ac. \u20ac2 - 3",
        "one [two] {three} ~ ` four/five @ six; seven: eight"]])
bleus("world", ["\u201eGr\u00fc\u00df\u201c \u2013 3,5\u20ac; (1\u202f000) $5 \u00bd-x 2\u00b2 \u4f60\u597d\uff0c\u4e16\u754c\u3002 a..b 1.2. \u0661\u066b\u0662\u060c e\u0301+\u00d7",
                "\u2192 no. 7, p. 3\u20134! 100% isn't\u2026"],
      [["\u201eGr\u00fc\u00df\u201c \u2013 3,5 \u20ac; (1\u202f000) $ 5 \u00bd -x 2\u00b2 \u4f60\u597d \uff0c \u4e16\u754c\u3002 a. . b 1.2 . \u0661\u066b\u0662 \u060c e\u0301 + \u00d7",
        "\u2192 no . 7 , p . 3 \u2013 4 ! 100 % isn ' t \u2026"]])
bleus("short", ["a b", "c"], [["a b", "c d"]])
bleus("wrong", ["x y z w v", "q"], [["a b c d e", "f g"]])
bleus("nothing", ["", ""], [["a b c", "d"]])
bleus("longer", ["a b c d e f g h a a a a"], [["a b c d"]])


def slots(name, predicted, truth):
    texts(name, predicted, [truth])
    p, t = [s.split() for s in predicted], [s.split() for s in truth]
    for average in ["micro", "macro", "weighted"]:
        for part, function in [("", seqeval.f1_score), ("precision", seqeval.precision_score),
                               ("recall", seqeval.recall_score)]:
            text_wants.append(f'    {{ "{name}", "slot_f1", "average: {average}", "{part}", '
                              f'{number(function(t, p, average=average, zero_division=0))} }},')
    report = seqeval.classification_report(t, p, output_dict=True, zero_division=0)
    for kind, row in report.items():
        if not kind.endswith(" avg"):
            text_wants.append(f'    {{ "{name}", "slot_f1", "per_type: true", "{kind}", '
                              f'{number(row["f1-score"])} }},')


def tags(n, letters):
    return " ".join(rng.choice([f"{l}-{t}" for l in letters for t in ["PER", "LOC", "a-b"]] + ["O"] * 4, n))


for name, letters in [("iob", "BI"), ("iobes", "BIES"), ("io", "I")]:
    truth = [tags(n, letters) for n in rng.integers(1, 12, 40)]
    found = [" ".join(g if rng.random() < 0.75 else w for w, g in zip(line.split(), tags(len(line.split()), letters).split()))
             for line in truth]
    found = [f if rng.random() < 0.6 else t for f, t in zip(found, truth)]
    slots(name, found, truth)
slots("untyped", ["B I O B", "O O"], ["B I I O", "B O"])
slots("missed", ["O O O", "O"], ["B-X I-X O", "O"])

for kind, name, lists in [("ClassRows", "class_rows", class_rows), ("ValueRows", "value_rows", value_rows),
                          ("RankingRows", "ranking_rows", ranking_rows), ("TextRows", "text_rows", text_rows),
                          ("Want", "class_wants", class_wants), ("Want", "value_wants", value_wants),
                          ("Want", "ranking_wants", ranking_wants), ("Want", "text_wants", text_wants)]:
    out += [f"static const {kind} {name}[] = {{", *lists, "};"]
target = pathlib.Path(__file__).resolve().parents[1] / "data" / "metrics.h"
target.write_text("\n".join(out) + "\n")
