"""Records what PyTorch computes for attention and rotary positions: writes
tests/data/ops/attention.h. Heads are last but one, [B, T, H, D], as kiln has them.

    python tests/record/attention.py        (needs torch)
"""

import torch
import torch.nn.functional as F

from groups import leaf, run, write

torch.manual_seed(50)


def attention(group, queries=5, keys=5, heads=2, key_heads=2, mask=None, padding=None, **options):
    q, k, v = leaf(2, queries, heads, 4), leaf(2, keys, key_heads, 4), leaf(2, keys, key_heads, 4)
    seen = mask
    if padding is not None:
        seen = padding[:, None, None, :].bool()
        if mask is not None:
            seen = seen & mask.bool()
    elif mask is not None and mask.dtype == torch.uint8:
        seen = mask.bool()
    y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                       attn_mask=seen, **options).transpose(1, 2)
    others = {name: x for name, x in (("mask", mask), ("padding", padding)) if x is not None}
    run(group, y, q=q, k=k, v=v, **others)


# Two sequences of 5 and 3 keys. The causal mask is given to PyTorch as one, for it
# takes is_causal or a mask.
present = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.uint8)
causal = torch.ones(5, 5, dtype=torch.uint8).tril()
some = (torch.rand(2, 2, 5, 5) > 0.4).to(torch.uint8)
some[..., 0] = 1

attention("plain", keys=7)
attention("causal", is_causal=True)
attention("causal_fewer_keys", queries=7, keys=4, is_causal=True)
attention("scaled", scale=0.3)
attention("mask", mask=some)
attention("mask_added", mask=torch.randn(5, 5))
attention("padding", padding=present)
attention("padding_causal", mask=causal, padding=present)
attention("padding_mask", mask=some, padding=present)
attention("grouped", heads=6, key_heads=2, enable_gqa=True)
attention("grouped_causal", heads=4, key_heads=1, enable_gqa=True, is_causal=True)


def angles(rows, width, base, first):
    turns = base ** (-torch.arange(0, width, 2).float() / width)
    return torch.outer(torch.arange(first, first + rows).float(), turns)[:, None, :]


def interleaved(x, angle):
    """As LLaMA's reference: pairs of neighbours are complex numbers."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def halves(x, angle):
    """As GPT-NeoX: x cos + rotate_half(x) sin."""
    a, b = x.chunk(2, -1)
    angle = torch.cat((angle, angle), -1)
    return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()


# PyTorch has no function for rotary positions: the formulas of the two models.
for name, turn in ("rotary", halves), ("rotary_interleaved", interleaved):
    x = leaf(2, 5, 3, 8)
    run(name, turn(x, angles(5, 8, 10000.0, 0)), x=x)
    x = leaf(1, 3, 2, 4)
    run(name + "_later", turn(x, angles(3, 4, 500.0, 40)), x=x)

# Added masks that want a gradient: one for each head, and one for all queries.
attention("mask_gradient", mask=leaf(2, 5, 5))
attention("mask_gradient_of_keys", keys=7, mask=leaf(2, 1, 1, 7))

# Two sequences of documents: of 4 and 5 tokens, and of 1, 6 and 2. PyTorch gets the mask.
positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4], [0, 0, 1, 2, 3, 4, 5, 0, 1]], dtype=torch.int32)
document = (positions == 0).cumsum(1)
same = (document[:, :, None] == document[:, None, :]) & torch.ones(9, 9, dtype=torch.bool).tril()
q, k, v = leaf(2, 9, 4, 4), leaf(2, 9, 2, 4), leaf(2, 9, 2, 4)
y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=same[:, None],
                                   enable_gqa=True).transpose(1, 2)
run("documents", y, q=q, k=k, v=v, positions=positions)
qkv = leaf(2, 9, 3, 2, 4)
q, k, v = qkv.permute(2, 0, 3, 1, 4)
run("documents_packed", F.scaled_dot_product_attention(q, k, v, attn_mask=same[:, None]).transpose(1, 2), qkv=qkv,
    positions=positions)

write("attention")
