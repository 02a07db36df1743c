"""Records what pytorch-crf computes for conditional random fields: writes tests/data/ops/crf.h.
A mask of its last step alone marks the ends, hence lengths here.

    python tests/record/crf.py        (needs torch and pytorch-crf)
"""

import torch
from torchcrf import CRF

from groups import leaf, run, write

torch.manual_seed(41)


def layer(tags, scale=1.0, forbid=()):
    crf = CRF(tags, batch_first=True)
    for p in crf.parameters():
        torch.nn.init.normal_(p, std=scale)
    for pair in forbid:
        crf.transitions.data[pair] = -10000.0
    return crf


def mask_of(lengths, steps):
    return torch.arange(steps)[None, :] < lengths[:, None]


def scores(crf):
    return {"start": crf.start_transitions, "end": crf.end_transitions, "transitions": crf.transitions}


def loss(group, crf, lengths, steps):
    x, tags = leaf(len(lengths), steps, crf.num_tags), torch.randint(0, crf.num_tags, (len(lengths), steps))
    lengths = torch.tensor(lengths)
    y = -crf(x, tags, mask=mask_of(lengths, steps), reduction="none")
    run(group, y, x=x, tags=tags, lengths=lengths, **scores(crf))


def decode(group, crf, lengths, steps, x=None):
    x = torch.randn(len(lengths), steps, crf.num_tags) if x is None else x
    best = crf.decode(x, mask=mask_of(torch.tensor(lengths), steps))
    y = torch.tensor([tags + [0] * (steps - len(tags)) for tags in best])
    with torch.no_grad():
        run(group, y.float(), x=x, lengths=torch.tensor(lengths),
            **{name: p.detach() for name, p in scores(crf).items()})


loss("crf_loss", layer(5), [6, 1, 4], 6)
loss("crf_loss_forbidden", layer(4, forbid=[(0, 2), (3, 2), (1, 1)]), [5, 5, 3], 5)
decode("crf_decode", layer(5), [7, 1, 4, 6], 7)
decode("crf_decode_forbidden", layer(4, 2.0, forbid=[(0, 2), (3, 2), (1, 1)]), [5, 5, 3], 5)
# Equal scores: small integers, of which many sequences have the same sum.
ties = layer(3)
for p in ties.parameters():
    p.data = torch.randint(0, 2, p.shape).float()
decode("crf_decode_ties", ties, [6, 5, 6, 2], 6, torch.randint(0, 2, (4, 6, 3)).float())

write("crf")
