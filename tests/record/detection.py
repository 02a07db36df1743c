"""Mean average precision by pycocotools, targets and losses of FCOS by torchvision, to tests/data/detection.h. Run with
pycocotools, torch and torchvision installed."""

import contextlib
import io
import pathlib

import numpy as np
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torchvision.models.detection.fcos import FCOS, FCOSHead
from torchvision.ops import generalized_box_iou_loss

out = ["/* Recorded by tests/record/detection.py; do not edit. */", "/* clang-format off */"]
cases = []


def item(v):
    text = f"{v:.9g}"
    return text + ("" if "." in text or "e" in text else ".0") + "F"


def floats(name, values):
    values = np.asarray(values, np.float32).reshape(-1)
    out.append(f"static const float {name}[] = {{ {', '.join(item(v) for v in values) or '0.0F'} }};")


def numbers(name, values):
    out.append(f"static const int64_t {name}[] = {{ {', '.join(str(int(v)) for v in values)} }};")


def evaluate(truth, found, n_classes):
    """The 12 values of COCOeval, and the precision of each class; rows as KILN_METRIC_DETECTIONS."""
    images = [{"id": i + 1} for i in range(len(truth))]
    gts, dts = [], []
    for i, rows in enumerate(truth):
        for x1, y1, x2, y2, label, crowd, area in rows.astype(np.float64):
            gts.append({"id": len(gts) + 1, "image_id": i + 1, "category_id": int(label) + 1,
                        "bbox": [x1, y1, x2 - x1, y2 - y1], "area": area, "iscrowd": int(crowd)})
    for i, rows in enumerate(found):
        for x1, y1, x2, y2, label, score in rows.astype(np.float64):
            dts.append({"image_id": i + 1, "category_id": int(label) + 1, "bbox": [x1, y1, x2 - x1, y2 - y1],
                        "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {"images": images, "annotations": gts,
                        "categories": [{"id": c + 1, "name": str(c)} for c in range(n_classes)]}
        coco.createIndex()
        run = COCOeval(coco, coco.loadRes(dts) if dts else COCO(), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    of_class = []
    for c in range(n_classes):
        p = run.eval["precision"][:, :, c, 0, 2]
        of_class.append(p[p > -1].mean() if (p > -1).any() else -1)
    return list(run.stats), of_class


def record(name, truth, found, n_classes):
    stats, of_class = evaluate(truth, found, n_classes)
    floats(f"{name}_boxes", np.concatenate(truth))
    floats(f"{name}_found", np.concatenate(found))
    numbers(f"{name}_sizes", [n for t, f in zip(truth, found) for n in (len(f), len(t))])
    values = ", ".join(f"{v:.17g}" for v in stats)
    classes = ", ".join(f"{v:.17g}" for v in of_class)
    cases.append(f'    {{ "{name}", {name}_found, {name}_boxes, {name}_sizes, {len(truth)}, {n_classes},\n'
                 f"      {{ {values} }},\n      {{ {classes} }} }},")


def draw(rng, n_images, n_classes, most, sides, crowds, step, extra=4):
    """Random boxes and detections near them; coordinates are multiples of `step`, so that overlaps meet thresholds."""
    truth, found = [], []
    for _ in range(n_images):
        t, f = [], []
        for _ in range(rng.integers(0, most + 1)):
            w, h = rng.uniform(*sides, 2)
            x, y = rng.uniform(0, 300, 2)
            box = np.round(np.array([x, y, x + w, y + h]) / step) * step
            label = rng.integers(0, n_classes - 1)  # the last class has no boxes
            area = (box[2] - box[0]) * (box[3] - box[1]) * rng.choice([1, 0.6])
            t.append([*box, label, rng.random() < crowds, area])
            for _ in range(rng.integers(0, 4)):
                moved = np.round((box + rng.normal(0, 0.1, 4) * [w, h, w, h]) / step) * step
                moved[2:] = np.maximum(moved[2:], moved[:2] + step)
                f.append([*moved, label if rng.random() < 0.9 else rng.integers(0, n_classes),
                          np.round(rng.random(), 2)])
        for _ in range(rng.integers(0, extra)):
            w, h = rng.uniform(*sides, 2)
            x, y = rng.uniform(0, 300, 2)
            f.append([x, y, x + w, y + h, rng.integers(0, n_classes), np.round(rng.random(), 2)])
        truth.append(np.array(t, np.float32).reshape(-1, 7))
        found.append(np.array(f, np.float32).reshape(-1, 6))
    return truth, found


rng = np.random.default_rng(3)
record("mixed", *draw(rng, 20, 4, 6, (5, 150), 0.0, 0.25), 4)
record("crowds", *draw(rng, 15, 3, 6, (10, 120), 0.3, 0.25), 3)
record("grid", *draw(rng, 15, 3, 5, (8, 40), 0.1, 4), 3)  # many overlaps and scores are equal
record("small", *draw(rng, 5, 2, 4, (4, 20), 0.0, 0.25), 2)  # no medium and large boxes
record("crowded", *draw(rng, 2, 2, 10, (20, 60), 0.1, 0.25, extra=160), 2)  # more than 100 detections in an image
record("empty", [np.zeros((0, 7), np.float32)] * 2, draw(rng, 2, 2, 3, (20, 60), 0, 0.25)[1], 2)
record("nothing_found", draw(rng, 3, 2, 3, (20, 60), 0, 0.25)[0], [np.zeros((0, 6), np.float32)] * 3, 2)

out += ["static const Evaluated evaluated[] = {"] + cases + ["};"]

# ---- Targets and losses of FCOS ----------------------------------------------------------------

SIZE, STRIDES, CLASSES = 64, (8, 16, 32), 3
places = np.array([[x * s, y * s, s] for s in STRIDES for y in range(SIZE // s) for x in range(SIZE // s)], np.float32)
boxes = [np.array([[4, 6, 40, 30], [10, 10, 26, 24], [0, 0, 64, 64]], np.float32), np.array([[30, 2, 63, 60]], np.float32),
         np.zeros((0, 4), np.float32)]
labels = [np.array([0, 2, 1]), np.array([1]), np.zeros(0, int)]
torch.manual_seed(5)
logits = torch.randn(3, len(places), CLASSES, requires_grad=True)
sides = torch.rand(3, len(places), 4).mul(2).requires_grad_()
middle = torch.randn(3, len(places), 1, requires_grad=True)
half = places[:, 2:] / 2
anchors = torch.tensor(np.concatenate([places[:, :2] - half, places[:, :2] + half], 1))


class Matches(FCOS):
    def __init__(self):
        torch.nn.Module.__init__(self)
        self.center_sampling_radius = 1.5
        self.head = FCOSHead(32, 1, CLASSES, 1)

    def compute_loss(self, *args):
        return super().compute_loss(*args)


net = Matches()
found = {}
net.head.compute_loss = lambda targets, outputs, anchors, matched: found.update(matched=matched) or \
    FCOSHead.compute_loss(net.head, targets, outputs, anchors, matched)
targets = [{"boxes": torch.tensor(b), "labels": torch.tensor(c)} for b, c in zip(boxes, labels)]
losses = net.compute_loss(targets, {"cls_logits": logits, "bbox_regression": sides, "bbox_ctrness": middle},
                          [anchors] * 3, [(SIZE // s) ** 2 for s in STRIDES])
rows = np.full((3, 3, 11), -1, np.float32)
for i, (b, c) in enumerate(zip(boxes, labels)):
    rows[i, :len(b), :4], rows[i, :len(b), 4], rows[i, :len(b), 5] = b, c, 0
stride = torch.tensor(places[:, 2:])
point = torch.tensor(places[:, :2])
decoded = torch.cat([point - sides[..., :2] * stride, point + sides[..., 2:] * stride], 2).detach()
floats("fcos_places", places)
floats("fcos_boxes", rows)
numbers("fcos_matched", torch.stack(found["matched"]).flatten())
floats("fcos_logits", logits.detach())
floats("fcos_decoded", decoded)
floats("fcos_middle", middle.detach())
floats("fcos_losses", [losses[k].item() for k in ("classification", "bbox_regression", "bbox_ctrness")])
a = torch.rand(12, 2) * 10
a = torch.cat([a, a + torch.rand(12, 2) * 5], 1).requires_grad_()
b = torch.rand(12, 2) * 10
b = torch.cat([b, b + torch.rand(12, 2) * 5], 1)
loss = generalized_box_iou_loss(a, b, reduction="none")
floats("giou_a", a.detach())
floats("giou_b", b)
floats("giou_loss", loss.detach())

target = pathlib.Path(__file__).resolve().parents[1] / "data" / "detection.h"
target.write_text("\n".join(out) + "\n")
