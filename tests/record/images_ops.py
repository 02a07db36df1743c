"""Records what PyTorch computes for convolutions, pooling and normalization: writes
tests/data/ops/images.h. Images are stored as [N, H, W, C] and sequences as
[N, L, C], as kiln has them.

    python tests/record/images_ops.py        (needs torch)
"""

import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(22)
records = []


def short(*shape):
    """Random numbers that take few digits."""
    return (torch.randn(*shape) * 32).round() / 32


def plain(tensor, images):
    """In kiln's order, when it is an image or a sequence."""
    if images and tensor.dim() > 2:
        return tensor.movedim(1, -1)
    return tensor


def keep(name, tensor):
    tensor = tensor.detach()
    records.append((name, list(tensor.shape), tensor.reshape(-1).tolist()))


def record(name, function, *leaves, images=True):
    """y = function(*leaves); leaf 0 and y are images. Keeps leaves l0, l1, ...,
    y, its gradient dy, and those of the leaves, d0, d1, ..."""
    leaves = [short(*shape).requires_grad_() for shape in leaves]
    y = function(*leaves)
    dy = short(*y.shape)
    y.backward(dy)
    for i, leaf in enumerate(leaves):
        keep(f"{name}.l{i}", plain(leaf, images and i == 0))
        keep(f"{name}.d{i}", plain(leaf.grad, images and i == 0))
    keep(f"{name}.y", plain(y, images))
    keep(f"{name}.dy", plain(dy, images))


record("conv_depthwise", lambda x, w, b: F.conv2d(x, w, b, 1, 1, 1, 5), (2, 5, 7, 3), (5, 1, 3, 3), (5,))
record("conv_groups", lambda x, w, b: F.conv2d(x, w, b, 2, 1, 1, 3), (2, 6, 5, 7), (9, 2, 3, 3), (9,))
record("conv_dilated", lambda x, w, b: F.conv2d(x, w, b, 1, 2, 2), (1, 3, 7, 5), (2, 3, 3, 3), (2,))
record("conv_apart", lambda x, w: F.conv2d(x, w, None, (2, 3), (0, 2), (3, 1)), (1, 2, 11, 7), (3, 2, 2, 3))
record("conv_row", lambda x, w, b: F.conv2d(x, w, b, 1, 1), (1, 1, 1, 7), (1, 1, 3, 3), (1,))
record("conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 3, 2, 2), (2, 4, 13), (6, 2, 3), (6,))
record("conv_transpose", lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), (2, 3, 3, 5), (3, 2, 3, 3), (2,))
record("conv_transpose_groups", lambda x, w, b: F.conv_transpose2d(x, w, b, 3, 1, 2, 2, 2),
       (1, 4, 2, 3), (4, 3, 3, 2), (6,))
record("max_pool_apart", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)), (2, 3, 7, 5))
record("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 11))
record("avg_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 7, 5))
record("avg_pool_exclude", lambda x: F.avg_pool2d(x, (3, 5), (2, 3), (1, 2), count_include_pad=False), (1, 2, 7, 11))
record("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 11))
record("adaptive_pool", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (2, 3, 7, 5))
record("adaptive_pool_one", lambda x: F.adaptive_avg_pool2d(x, 1), (1, 17, 3, 2))
record("adaptive_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), (2, 3, 7))
record("layer_norm", lambda x, w, b: F.layer_norm(x, (19,), w, b), (3, 5, 19), (19,), (19,), images=False)
record("layer_norm_axes", lambda x, w, b: F.layer_norm(x, (5, 7), w, b), (3, 5, 7), (5, 7), (5, 7), images=False)
record("rms_norm", lambda x, w: F.rms_norm(x, (19,), w), (3, 5, 19), (19,), images=False)
record("group_norm", lambda x, w, b: F.group_norm(x, 3, w, b), (2, 6, 5, 3), (6,), (6,))
record("group_norm1d", lambda x, w, b: F.group_norm(x, 1, w, b), (3, 5, 7), (5,), (5,))


def norm_relu():
    """relu(batch_norm(x) + more), with `more` in kiln's order too."""
    x, more = (short(3, 5, 4, 3).requires_grad_() for _ in range(2))
    weight, bias = (short(5).requires_grad_() for _ in range(2))
    y = F.relu(F.batch_norm(x, None, None, weight, bias, True) + more)
    dy = short(*y.shape)
    y.backward(dy)
    for i, leaf in enumerate((x, weight, bias, more)):
        keep(f"norm_relu.l{i}", plain(leaf, True))
        keep(f"norm_relu.d{i}", plain(leaf.grad, True))
    keep("norm_relu.y", plain(y, True))
    keep("norm_relu.dy", plain(dy, True))


norm_relu()

record("max_pool_ceil", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 6, 8))
record("max_pool_ceil_drops", lambda x: F.max_pool2d(x, (2, 3), (3, 2), (1, 0), ceil_mode=True), (1, 2, 4, 6))
record("max_pool_ceil_small", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (1, 2, 2, 5))
record("max_pool1d_ceil", lambda x: F.max_pool1d(x, 3, 2, ceil_mode=True), (2, 3, 8))
record("avg_pool_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 6, 8))
record("avg_pool_ceil_exclude", lambda x: F.avg_pool2d(x, (3, 5), (2, 3), (1, 2), True, False), (1, 2, 6, 9))
record("avg_pool1d_ceil", lambda x: F.avg_pool1d(x, 4, 3, 1, ceil_mode=True), (2, 3, 9))
record("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 2, 2, 2), (2, 4, 7), (4, 3, 3), (6,))
record("upsample_bicubic", lambda x: F.interpolate(x, (7, 9), mode="bicubic"), (2, 3, 5, 4))
record("upsample_bicubic_smaller", lambda x: F.interpolate(x, (4, 3), mode="bicubic"), (1, 2, 9, 8))
record("upsample_bicubic_corners", lambda x: F.interpolate(x, (3, 9), mode="bicubic", align_corners=True), (2, 3, 5, 4))
record("antialias", lambda x: F.interpolate(x, (4, 3), mode="bilinear", antialias=True), (1, 2, 11, 7))
record("antialias_larger", lambda x: F.interpolate(x, (11, 5), mode="bilinear", antialias=True), (1, 2, 5, 9))
record("antialias_bicubic", lambda x: F.interpolate(x, (3, 9), mode="bicubic", antialias=True), (1, 2, 11, 7))
record("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (2, 12, 2, 3))
record("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 3), (2, 2, 6, 3))
record("adaptive_max_pool", lambda x: F.adaptive_max_pool2d(x, (3, 2)), (2, 3, 7, 5))
unfold = {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}
record("unfold", lambda x: F.unfold(x, **unfold), (2, 3, 7, 5))
record("fold", lambda x: F.fold(x.mT, (7, 5), **unfold).movedim(1, -1), (2, 12, 18), images=False)

lines = ["/* Written by tests/record/images_ops.py with PyTorch; not edited by hand. */",
         "#ifndef KILN_TEST_DATA_OPS_IMAGES_H", "#define KILN_TEST_DATA_OPS_IMAGES_H", "",
         "#include <stddef.h>", "#include <stdint.h>", ""]
for i, (_, _, values) in enumerate(records):
    lines.append(f"static const float record_{i}[] = {{")
    for at in range(0, len(values), 8):
        lines.append("    " + " ".join(f"{value:.9g}f," if "." in f"{value:.9g}" or "e" in f"{value:.9g}"
                                       else f"{value:.9g}.0f," for value in values[at:at + 8]))
    lines.append("};")
lines += ["", "static const struct Record {", "    const char *name;", "    int rank;",
          "    int64_t dim[4];", "    const float *values;", "} records[] = {"]
for i, (name, shape, _) in enumerate(records):
    lines.append(f'    {{ "{name}", {len(shape)}, {{ {", ".join(map(str, shape))} }}, record_{i} }},')
lines += ["};", "", "#endif"]
path = pathlib.Path(__file__).parent.parent / "data" / "ops" / "images.h"
path.write_text("\n".join(lines) + "\n")
print(f"{path}: {len(records)} records")
