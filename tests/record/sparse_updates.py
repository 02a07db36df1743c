"""Records what PyTorch's optimizers make of an embedding with sparse gradients: writes tests/data/ops/sparse_updates.h.
Each step looks rows up twice, and every third step has the gradients of two batches.

    python tests/record/sparse_updates.py        (needs torch)
"""

import torch

from groups import keep, write

ROWS, WIDTH, STEPS, WORDS, BAGS, BAG = 11, 3, 7, 4, 2, 3


def number(i, batch):
    return ((i * 7 + batch * 3) % 13 - 6) / 8


def numbers(batch, *shape):
    return torch.tensor([number(i, batch) for i in range(torch.Size(shape).numel())]).reshape(shape)


def loss(layer, batch):
    words = torch.tensor([(batch * 5 + i * i * 3) % ROWS for i in range(WORDS)])
    bags = torch.tensor([(batch * 3 + i * i) % ROWS for i in range(BAGS * BAG)]).reshape(BAGS, BAG)
    bag = torch.nn.functional.embedding_bag(bags, layer.weight, mode="mean", sparse=True)
    return (layer(words) * numbers(batch, WORDS, WIDTH)).sum() + (bag * numbers(batch + 1, BAGS, WIDTH)).sum()


for name, make in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.2, lr_decay=0.1, initial_accumulator_value=0.25),
    "adam": lambda p: torch.optim.SparseAdam(p, lr=0.05, betas=(0.8, 0.9), eps=1e-8),
}.items():
    layer = torch.nn.Embedding(ROWS, WIDTH, sparse=True)
    with torch.no_grad():
        layer.weight.copy_(numbers(5, ROWS, WIDTH))
    optimizer = make(list(layer.parameters()))
    batch = 0
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(2 if step % 3 == 2 else 1):
            loss(layer, batch).backward()
            batch += 1
        optimizer.step()
    keep(name, layer.weight)

write("sparse_updates")
