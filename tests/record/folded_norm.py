"""Records what PyTorch computes in evaluation for convolutions with batch normalization by random
running statistics: a stem with a bias and a residual block of ResNet-18's kind, which has a shortcut
of its own. Writes tests/data/ops/folded_norm.h. Images are stored as [N, H, W, C], as kiln has them.

    python tests/record/folded_norm.py        (needs torch)
"""

import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(31)
records = []


def keep(name, tensor):
    values = tensor.movedim(1, -1) if name in ("x", "y") else tensor
    records.append((name, values.reshape(-1).tolist()))
    return tensor


def short(*shape, scale=1.0):
    """Random numbers that take few digits."""
    return (torch.randn(*shape) * scale * 64).round() / 64


def conv(name, inputs, outputs, kernel):
    return keep(f"{name}_weight", short(outputs, inputs, kernel, kernel, scale=0.3))


def norm(name, x, channels):
    """With statistics and factors that are far from 0 and 1."""
    weight, bias, mean = (keep(f"{name}_{what}", short(channels)) for what in ("scale", "bias", "mean"))
    var = keep(f"{name}_var", (torch.rand(channels) * 128).round() / 64 + 0.25)
    return F.batch_norm(x, mean, var, weight, bias, False)


x = keep("x", short(2, 3, 20, 18))
stem_bias = keep("stem_conv_bias", short(8))
x = F.relu(norm("stem", F.conv2d(x, conv("stem", 3, 8, 3), stem_bias, 1, 1), 8))
y = F.relu(norm("first", F.conv2d(x, conv("first", 8, 16, 3), None, 2, 1), 16))
y = norm("second", F.conv2d(y, conv("second", 16, 16, 3), None, 1, 1), 16)
keep("y", F.relu(y + norm("down", F.conv2d(x, conv("down", 8, 16, 1), None, 2), 16)))

lines = ["/* Written by tests/record/folded_norm.py with PyTorch; not edited by hand. */",
         "#ifndef KILN_TEST_DATA_OPS_FOLDED_NORM_H", "#define KILN_TEST_DATA_OPS_FOLDED_NORM_H", ""]
for name, values in records:
    lines.append(f"static const float folded_{name}[] = {{")
    texts = [f"{value:.9g}" for value in values]
    texts = [f"{text}f," if "." in text or "e" in text else f"{text}.0f," for text in texts]
    lines += ["    " + " ".join(texts[at:at + 8]) for at in range(0, len(texts), 8)]
    lines.append("};")
lines += ["", "#endif"]
path = pathlib.Path(__file__).parent.parent / "data" / "ops" / "folded_norm.h"
path.write_text("\n".join(lines) + "\n")
print(f"{path}: {len(records)} records")
