"""Records what PyTorch computes for samples between pixels, boxes, volumes, results whose size is data, einsum and
weights divided by a norm: writes tests/data/ops/vision.h. Images are [N, H, W, C], as kiln has them.

    python tests/record/vision.py        (needs torch, torchvision)
"""

import torch
import torch.nn.functional as F
import torchvision.ops

from groups import leaf, run, write

torch.manual_seed(61)


def first(x):
    """Channels first, as PyTorch has them."""
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            x, grid = leaf(2, 4, 5, 3), (torch.randn(2, 3, 4, 2) * 1.2).requires_grad_()
            y = F.grid_sample(first(x), grid, mode, padding, corners)
            run(f"grid_{mode}_{padding}" + ("_corners" if corners else ""), last(y), x=x, grid=grid)

boxes = torch.tensor([[0, 1.0, 0.5, 5.5, 4.0], [1, -2.0, 1.0, 3.0, 9.0], [1, 2.2, 2.1, 2.6, 2.4]])
for name, options in {"roi_align": (0.75, 2, True), "roi_align_adaptive": (1.0, 0, False)}.items():
    x = leaf(2, 6, 7, 3)
    run(name, last(torchvision.ops.roi_align(first(x), boxes, (3, 2), *options)), x=x, boxes=boxes)

corner, other = torch.rand(9, 2) * 3, torch.rand(4, 2) * 3
a = torch.cat([corner, corner + torch.rand(9, 2) * 2 + 0.1], 1).requires_grad_()
b = torch.cat([other, other + torch.rand(4, 2) * 2 + 0.1], 1).requires_grad_()
run("box_iou", torchvision.ops.box_iou(a, b), a=a, b=b)
corner = torch.rand(40, 2) * 4
boxes, scores = torch.cat([corner, corner + 1 + torch.rand(40, 2)], 1), torch.randn(40)
kept = torchvision.ops.nms(boxes, scores, 0.3)
run("nms", F.pad(kept, (0, 40 - len(kept)), value=-1).float(), boxes=boxes, scores=scores)

x, mask = leaf(4, 6), (torch.rand(4, 6) > 0.5).to(torch.uint8)
y = x.masked_select(mask.bool())
run("masked_select", F.pad(y, (0, 24 - len(y))), x=x, mask=mask)
run("nonzero", F.pad(mask.flatten().nonzero()[:, 0], (0, 24 - len(y)), value=-1).float(), mask=mask)
x = torch.randint(-3, 5, (3, 7))
values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
run("unique_values", F.pad(values, (0, 21 - len(values))).float(), x=x)
run("unique_inverse", inverse.float(), x=x)
run("unique_counts", F.pad(counts, (0, 21 - len(counts))).float(), x=x)

for name, equation, shapes in (
    ("product", "ij,jk->ik", ((3, 4), (4, 5))),
    ("batch", "bhid,bhjd->bhij", ((2, 3, 4, 5), (2, 3, 6, 5))),
    ("implied", "kj,ji", ((3, 4), (4, 2))),
    ("outer", "i,jk->kij", ((3,), (4, 2))),
    ("sums", "ijk,jl->l", ((2, 3, 4), (3, 5))),
    ("elements", "ij,ij->ij", ((3, 4), (3, 4))),
    ("diagonal", "iij->ji", ((3, 3, 2),)),
    ("trace", "ii", ((4, 4),)),
    ("bilinear", "bn,anm,bm->ba", ((2, 3), (5, 3, 4), (2, 4))),
):
    leaves = [leaf(*shape) for shape in shapes]
    run(f"einsum_{name}", torch.einsum(equation, *leaves), **dict(zip("abc", leaves)))

v, g = leaf(4, 3, 2), leaf(4, 1, 1)
run("weight_norm", torch._weight_norm(v, g, 0), v=v, g=g)
layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Conv1d(3, 4, 2, bias=False))
norm, weight = layer.parametrizations.weight[0], layer.parametrizations.weight.original
weight = weight.detach().clone().requires_grad_()
u, v = norm._u.clone(), norm._v.clone()
run("spectral_norm", norm(weight), weight=weight, u=u, v=v)

x, w, bias = leaf(2, 4, 5, 3, 2), leaf(4, 1, 2, 3, 2), leaf(4)
run("conv3d", last(F.conv3d(first(x), w, bias, (2, 1, 1), (1, 1, 0), (1, 2, 1), 2)), x=x, weight=w, bias=bias)
x, w, bias = leaf(1, 3, 2, 4, 3), leaf(3, 2, 3, 2, 2), leaf(2)
y = F.conv_transpose3d(first(x), w, bias, (2, 1, 3), (1, 0, 1), (1, 0, 2))
run("conv_transpose3d", last(y), x=x, weight=w, bias=bias)

corner = torch.rand(40, 2) * 4
boxes, scores = torch.cat([corner, corner + 1 + torch.rand(40, 2)], 1), torch.randn(40)
groups = torch.arange(40) * 7 % 5
kept = torchvision.ops.batched_nms(boxes, scores, groups, 0.3)
run("batched_nms", F.pad(kept, (0, 40 - len(kept)), value=-1).float(), boxes=boxes, scores=scores, groups=groups)

write("vision")
