"""Boxes after transforms of their image, by torchvision.transforms.v2, to tests/data/moved_boxes.h. Run with torchvision."""
import pathlib

import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

HEIGHT, WIDTH = 60, 80
BOXES = [[20, 12, 52, 36], [70, 50, 80, 60], [0, 0, 9.5, 60], [33.25, 20.5, 34.25, 21.5], [2, 3, 78, 57]]


def move(transform, clamp):
    boxes = tv_tensors.BoundingBoxes(torch.tensor(BOXES, dtype=torch.float64), format="XYXY", canvas_size=(HEIGHT, WIDTH),
                                     clamping_mode="hard" if clamp else None)
    return transform(boxes)


def area(box):
    return max(float(box[2] - box[0]), 0.0) * max(float(box[3] - box[1]), 0.0)


def record(name, kind, numbers, transform):
    """Numbers are what the C test makes the same transform of; boxes of which less than a tenth remains are all 0."""
    cut, whole = move(transform, True), move(transform, False)
    height, width = cut.canvas_size
    rows = [([0.0] * 4 if area(c) < 0.1 * area(w) else [float(v) + 0.0 for v in c]) for c, w in zip(cut, whole)]
    values = ", ".join(f"{{ {', '.join(f'{v + 0.0:.9g}' for v in row)} }}" for row in rows)
    return (f"    {{ \"{name}\", {kind}, {{ {', '.join(f'{v:.17g}' for v in numbers)} }}, {height}, {width},\n"
            f"      {{ {values} }} }},")


def affine(name, angle, translate, scale, shear):
    return record(name, "AFFINE", [angle, *translate, scale, *shear],
                  lambda b: F.affine(b, angle=angle, translate=translate, scale=scale, shear=shear))


def rotation(name, angle):
    return record(name, "AFFINE", [-angle, 0, 0, 1, 0, 0], lambda b: F.rotate(b, angle=angle))


def perspective(name, to):
    corners = [[0, 0], [WIDTH - 1, 0], [WIDTH - 1, HEIGHT - 1], [0, HEIGHT - 1]]
    return record(name, "PERSPECTIVE", [v for point in to for v in point], lambda b: F.perspective(b, startpoints=corners, endpoints=to))


def crop(name, top, left, height, width):
    return record(name, "PART", [top, left, height, width], lambda b: F.crop(b, top, left, height, width))


def resized_crop(name, top, left, height, width, size):
    return record(name, "PART", [top, left, height, width], lambda b: F.resized_crop(b, top, left, height, width, size=size))


cases = [
    affine("moved", 0.0, [7, -5], 1.0, [0.0, 0.0]),
    affine("scaled", 0.0, [0, 0], 1.6, [0.0, 0.0]),
    affine("turned and sheared", 33.0, [-11, 8], 0.7, [12.0, -7.0]),
    affine("out of view", 0.0, [60, 0], 1.2, [0.0, 0.0]),
    rotation("rotated", 25.0),
    rotation("rotated by 90", -90.0),
    perspective("perspective", [[5, 9], [71, 2], [66, 50], [12, 57]]),
    perspective("strong perspective", [[19, 14], [60, 0], [79, 59], [0, 45]]),
    crop("crop", 10, 15, 32, 48),
    crop("padded crop", -8, -6, 60, 80),
    resized_crop("resized crop", 6, 21, 40, 37, [96, 112]),
    record("flip", "FLIP", [0], F.horizontal_flip),
    record("vertical flip", "FLIP", [1], F.vertical_flip),
]
text = ["/* Recorded by tests/record/moved_boxes.py; do not edit. */", "/* clang-format off */",
        f"enum {{ MOVED_HEIGHT = {HEIGHT}, MOVED_WIDTH = {WIDTH}, MOVED_BOXES = {len(BOXES)} }};",
        "enum { AFFINE, PERSPECTIVE, PART, FLIP };",
        "static const float moved_boxes[MOVED_BOXES][4] = {",
        *(f"    {{ {', '.join(f'{v:g}' for v in box)} }}," for box in BOXES), "};",
        "static const struct {", "    const char *name;", "    int kind;", "    double numbers[8];", "    int64_t height, width;",
        "    double boxes[MOVED_BOXES][4];", "} moved[] = {", *cases, "};", "/* clang-format on */"]
(pathlib.Path(__file__).parent.parent / "data/moved_boxes.h").write_text("\n".join(text) + "\n")
