"""Records what PyTorch computes for losses, moving and picking by index: writes
tests/data/ops/losses.h. Images are stored as [N, H, W, C], as kiln has them, and classes last.

    python tests/record/losses.py        (needs torch)
"""

import torch
import torch.nn.functional as F

from groups import leaf, run, write

torch.manual_seed(40)


def last(x, axis=1):
    """The classes, or channels, from axis 1 to the end."""
    return x.movedim(axis, -1)


def ints(high, *shape):
    return torch.randint(0, high, shape)


# Losses over classes: recorded logits are [N, L, C].
def classes(group, loss):
    x, labels, weight = leaf(4, 3, 5), ints(5, 4, 3), torch.rand(5) + 0.5
    labels[1, 2] = labels[3, 0] = 2
    y = loss(x.movedim(-1, 1), labels, weight)
    run(group, y, x=x, labels=labels, weight=weight)


classes("entropy", lambda x, t, w: F.cross_entropy(x, t, w, ignore_index=2, label_smoothing=0.2))
classes("entropy_sum", lambda x, t, w: F.cross_entropy(x, t, w, reduction="sum"))
classes("entropy_none", lambda x, t, w: F.cross_entropy(x, t, ignore_index=2, reduction="none",
                                                        label_smoothing=0.1))
classes("nll", lambda x, t, w: F.nll_loss(x, t, w, ignore_index=2))
classes("nll_none", lambda x, t, w: F.nll_loss(x, t, w, reduction="none"))


def soft(group, **options):
    x, weight = leaf(6, 5), torch.rand(5) + 0.5
    target = torch.softmax(torch.randn(6, 5), -1)
    y = F.cross_entropy(x, target, weight, **options)
    run(group, y, x=x, target=target, weight=weight)


soft("entropy_soft", label_smoothing=0.2)
soft("entropy_soft_none", reduction="none")

for axis in 0, 1:
    x = leaf(4, 5, 3)
    run(f"log_softmax{axis}", F.log_softmax(3 * x, axis), x=x)
    x = leaf(4, 5, 3)
    run(f"softmax{axis}", F.softmax(3 * x, axis), x=x)


# CTC: a label twice in a row, lengths that differ, one that is impossible. The blank is 0.
def ctc(group, **options):
    logits = leaf(9, 3, 5)
    targets = torch.tensor([[1, 1, 3, 4], [2, 3, 0, 0], [4, 4, 4, 4]])
    inputs, lengths = torch.tensor([9, 7, 5]), torch.tensor([4, 2, 4])
    y = F.ctc_loss(F.log_softmax(logits, -1), targets, inputs, lengths, zero_infinity=True, **options)
    run(group, y, x=logits, targets=targets, inputs=inputs, lengths=lengths)


ctc("ctc")
ctc("ctc_none", reduction="none")


# Elementwise: x and target of one shape.
def pair(group, loss, x=None, target=None):
    x = leaf(4, 6) if x is None else x
    target = leaf(4, 6) if target is None else target
    run(group, loss(x, target), x=x, target=target)


def sigmoid_focal(x, t, alpha=0.25, gamma=2.0):
    """torchvision.ops.sigmoid_focal_loss."""
    p = torch.sigmoid(x)
    ce = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    p_t = p * t + (1 - p) * (1 - t)
    return ((alpha * t + (1 - alpha) * (1 - t)) * ce * (1 - p_t) ** gamma).mean()


pair("mse", F.mse_loss)
pair("l1", lambda x, t: F.l1_loss(x, t, reduction="none"))
pair("huber", lambda x, t: F.huber_loss(x, t, delta=0.7, reduction="sum"))
pair("smooth_l1", lambda x, t: F.smooth_l1_loss(x, t, beta=0.4))
pair("kl", lambda x, t: F.kl_div(x, t, reduction="sum"),
     target=torch.softmax(torch.randn(4, 6), -1) * (torch.rand(4, 6) > 0.3))
pair("kl_log", lambda x, t: F.kl_div(x, t, log_target=True))
pair("bce", lambda x, t: F.binary_cross_entropy_with_logits(
    8 * x, t, weight=torch.arange(1.0, 7.0), pos_weight=torch.arange(0.5, 3.5, 0.5)),
    target=(torch.rand(4, 6) > 0.5).float())
pair("focal", lambda x, t: sigmoid_focal(4 * x, t), target=(torch.rand(4, 6) > 0.5).float())


# PyTorch has no function for these two: their formulas.
def focal_classes(x, labels, weight):
    ce = F.cross_entropy(4 * x, labels, reduction="none", ignore_index=2)
    weighted = F.cross_entropy(4 * x, labels, weight, reduction="none", ignore_index=2)
    return (weighted * (1 - torch.exp(-ce)) ** 1.5).sum() / (labels != 2).sum()


def dice(x, t):
    p = torch.sigmoid(x)
    overlap = (2 * (p * t).sum((1, 2)) + 1) / ((p * p).sum((1, 2)) + (t * t).sum((1, 2)) + 1)
    return (1 - overlap).mean()


classes("focal_classes", focal_classes)
pair("dice", dice, x=leaf(2, 3, 4, 3), target=(torch.rand(2, 3, 4, 3) > 0.5).float())
pair("cosine", lambda x, t: F.cosine_similarity(x, t, dim=0))


def cosine_embedding():
    a, b, target = leaf(6, 3), leaf(6, 3), torch.tensor([1.0, -1, 1, -1, -1, 1])
    run("cosine_embedding", F.cosine_embedding_loss(a, b, target, margin=0.1), x=a, other=b, target=target)


cosine_embedding()

# Picking and placing.
x, index = leaf(4, 5, 3), ints(5, 4, 7, 2)
run("gather", torch.gather(x, 1, index), x=x, index=index)
x, index, src = leaf(4, 5, 3), ints(4, 7, 5, 2), leaf(7, 5, 2)
run("scatter_add", torch.scatter_add(x, 0, index, src), x=x, index=index, src=src)
x, index = leaf(4, 5, 3), ints(5, 6)
run("index_select", torch.index_select(x, 1, index), x=x, index=index)
x, index = leaf(6, 3), ints(6, 4, 5)
run("embedding", F.embedding(index, x, padding_idx=2), x=x, index=index)
for mode in "sum", "mean", "max":
    x, index, offsets = leaf(6, 3), ints(6, 12), torch.tensor([0, 3, 3, 8])
    y = F.embedding_bag(index, x, offsets, mode=mode, padding_idx=2)
    run("bag_" + mode, y, x=x, index=index, offsets=offsets)
x = leaf(3, 5)
run("cumsum", torch.cumsum(x, 1), x=x)
x = leaf(2, 4, 5)
run("tril", torch.tril(x, 1), x=x)


def upsample(group, size, **options):
    x = leaf(2, 4, 5, 3)
    y = last(F.interpolate(x.movedim(-1, 1), size, **options))
    run(group, y, x=x)


upsample("nearest", (7, 12), mode="nearest")
upsample("bilinear", (7, 12), mode="bilinear")
upsample("bilinear_small", (3, 2), mode="bilinear")
upsample("corners", (7, 12), mode="bilinear", align_corners=True)

for group, index, offsets in ("bag_factors", ints(6, 12), torch.tensor([0, 3, 3, 8])), ("bag_factors_rows", ints(6, 4, 3), None):
    x, factors = leaf(6, 3), leaf(*index.shape)
    y = F.embedding_bag(index, x, offsets, mode="sum", per_sample_weights=factors, padding_idx=2)
    run(group, y, x=x, index=index, factors=factors, **({} if offsets is None else {"offsets": offsets}))
for mode in "reflect", "replicate":
    x = leaf(2, 3, 4, 2)
    run("pad_" + mode, last(F.pad(x.movedim(-1, 1), (3, 1, 0, 2), mode)), x=x)
    x = leaf(2, 3, 5)
    run(f"pad_{mode}_line", F.pad(x, (2, 4), mode), x=x)

write("losses")
