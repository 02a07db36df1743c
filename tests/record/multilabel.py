"""Metrics of rows with several labels by scikit-learn, losses with weights of classes and labels by PyTorch, to
tests/data/multilabel.h and weighted_losses.h. Run with both installed."""

import pathlib
import warnings

import numpy as np
import torch
from sklearn import metrics as sk
from sklearn.utils.class_weight import compute_class_weight

warnings.filterwarnings("ignore")
rng = np.random.default_rng(7)
out = ["/* Recorded by tests/record/multilabel.py; do not edit. */", "/* clang-format off */"]
rows, wants = [], []


def number(value):
    return "NAN" if np.isnan(value) else f"{float(value):.17g}"


def item(kind, v):
    text = str(int(v)) if kind == "int32_t" else f"{v:.9g}"
    return text + (("" if "." in text or "e" in text else ".0") + "F" if kind == "float" else "")


def array(kind, name, values):
    out.append(f"static const {kind} {name}[] = {{ {', '.join(item(kind, v) for v in np.asarray(values).reshape(-1))} }};")


def multilabel(name, scores, targets):
    scores = np.asarray(scores, np.float32)
    targets = np.asarray(targets)
    n, width = scores.shape
    array("float", f"{name}_scores", scores)
    array("float", f"{name}_targets", targets)
    rows.append(f'    {{ "{name}", {name}_scores, {name}_targets, {n}, {width} }},')
    predicted = scores > 0

    def want(metric, options, value, part=""):
        wants.append(f'    {{ "{name}", "{metric}", "{options}", "{part}", {number(value)} }},')

    want("accuracy", "", sk.accuracy_score(targets, predicted))
    present = [c for c in range(width) if targets[:, c].any() or predicted[:, c].any()]
    for metric, function in [("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)]:
        each = function(targets, predicted, average=None, zero_division=0)
        want(metric, "average: micro", function(targets, predicted, average="micro", zero_division=0))
        want(metric, "average: macro", each[present].mean())
        want(metric, "average: weighted", function(targets, predicted, average="weighted", zero_division=0))
        for c in range(width):
            want(metric, "per_class: true", each[c] if c in present else np.nan, str(c))
    area = [sk.roc_auc_score(targets[:, c], scores[:, c]) if 0 < targets[:, c].sum() < n else np.nan for c in range(width)]
    precision = [sk.average_precision_score(targets[:, c], scores[:, c]) if targets[:, c].any() else np.nan
                 for c in range(width)]
    for metric, each in [("auroc", np.array(area)), ("average_precision", np.array(precision))]:
        known = ~np.isnan(each)
        weights = targets.sum(0)[known]
        want(metric, "", each[known].mean())
        want(metric, "average: weighted", (each[known] * weights).sum() / weights.sum())
        for c in range(width):
            want(metric, "per_class: true", each[c], str(c))


targets = rng.random((60, 4)) < [0.5, 0.3, 0.1, 0.6]
multilabel("mixed", rng.normal(size=(60, 4)) + 1.5 * targets - 0.7, targets)
targets = rng.random((30, 2)) < 0.5
multilabel("two_labels", np.round(rng.normal(size=(30, 2)) + targets, 0) - 0.5, targets)
multilabel("never", rng.normal(size=(20, 3)) - [0, 0, 9], np.stack([rng.random(20) < 0.5, rng.random(20) < 0.3, np.zeros(20)], 1) > 0)

metrics, out = out, out[:2]

# ---- Losses ----------------------------------------------------------------------------

logits = torch.tensor(rng.normal(size=(6, 3)) * 2, dtype=torch.float32)
truth = torch.tensor((rng.random((6, 3)) < 0.4).astype(np.float32))
classes = torch.tensor([0, 2, 1, 1, 2, 1])
counts = [50, 20, 130]
balanced = compute_class_weight("balanced", classes=np.arange(3), y=np.repeat(np.arange(3), counts))
positive = np.array([(200 - c) / c for c in counts])
array("float", "loss_logits", logits)
array("float", "loss_truth", truth)
array("int32_t", "loss_classes", classes)
array("int32_t", "loss_counts", counts)


def loss(name, function):
    x = logits.clone().double().requires_grad_()
    value = function(x)
    value.backward()
    out.append(f"static const double {name} = {value.item():.17g};")
    array("double", f"{name}_gradient", x.grad)


F = torch.nn.functional
loss("bce", lambda x: F.binary_cross_entropy_with_logits(x, truth.double()))
loss("bce_weighted", lambda x: F.binary_cross_entropy_with_logits(x, truth.double(), pos_weight=torch.tensor([1.0, 3.0, 0.5])))
loss("bce_balanced", lambda x: F.binary_cross_entropy_with_logits(x, truth.double(), pos_weight=torch.tensor(positive)))
loss("ce_weighted", lambda x: F.cross_entropy(x, classes, weight=torch.tensor([1.0, 3.0, 0.5]).double()))
loss("ce_balanced", lambda x: F.cross_entropy(x, classes, weight=torch.tensor(balanced)))

data = pathlib.Path(__file__).resolve().parents[1] / "data"
(data / "multilabel.h").write_text("\n".join(metrics + [
    "static const ValueRows multilabel_rows[] = {", *rows, "};", "static const Want multilabel_wants[] = {", *wants, "};"]) + "\n")
(data / "weighted_losses.h").write_text("\n".join(out) + "\n")
