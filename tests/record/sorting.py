"""Records what PyTorch computes for sorting and groups of rows: writes tests/data/ops/sorting.h.

    python tests/record/sorting.py        (needs torch)
"""

import torch

from groups import leaf, run, write

torch.manual_seed(60)

x = leaf(3, 7)
run("sort", x.sort(1).values, x=x)
x = leaf(4, 5, 2)
run("sort_descending", x.sort(1, descending=True).values, x=x)
# Negative numbers become NaN, which is above all others; 0 and 1 are there twice.
x = torch.tensor([[2.0, -1.0, 1.0, 0.0, 5.0, 1.0, -3.0, 0.0], [1.0, 1.0, -1.0, 0.0, 0.0, 7.0, -1.0, 3.0]])
run("argsort", x.log().argsort(dim=1, stable=True).float(), x=x)
run("argsort_descending", x.log().argsort(dim=1, descending=True, stable=True).float(), x=x)
run("argsort_integers", x.int().argsort(dim=0, stable=True).float(), x=x)
x = leaf(3, 70)
run("topk", x.topk(5, 1).values, x=x)
run("topk_indices", x.detach().topk(5, 1).indices.float(), x=x.detach())
x = leaf(9, 4)
run("topk_smallest", x.topk(3, 0, largest=False).values, x=x)


def segment(group, how, x):
    """Largest elements start from -inf: the gradient would share with an initial 0 that equals them."""
    ids = torch.tensor([3, 0, 0, 4, 3, 3, 0, 1])
    start = torch.full((6, 3), -torch.inf) if how == "amax" else torch.zeros(6, 3)
    y = start.scatter_reduce(0, ids[:, None].expand(8, 3), x, how, include_self=False)
    run(group, y.masked_fill(y == -torch.inf, 0), x=x, ids=ids)


segment("segment_sum", "sum", leaf(8, 3))
segment("segment_mean", "mean", leaf(8, 3))
segment("segment_max", "amax", leaf(8, 3))
segment("segment_max_equals", "amax", torch.randn(8, 3).round().requires_grad_())

write("sorting")
