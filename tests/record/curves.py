"""Record how the loss of small networks falls over fifty steps of training, for
tests/unit/nn/test_curves.c. Needs torch and torchvision; run from the root:

    python tests/record/curves.py

Writes tests/data/models/curves.txt. Weights and batches are patterns, as in
models.py; four batches take turns. Everything is computed in float64, so that what
differs is the other side's rounding alone."""
import os
import sys

import torch
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))
from models import HERE, Mlp, fill, images, numbers, pattern  # noqa: E402
from peer import Gpt, Lstm  # noqa: E402

torch.set_default_dtype(torch.float64)
STEPS, BATCHES = 50, 4


def values(key, *shape):
    n = int(torch.tensor(shape).prod())
    return torch.from_numpy(pattern(key, n).astype("float32")).double().reshape(shape)


def classes(key, n, *shape):
    return ((values(key, *shape) + 1) / 2 * n).long().clamp(max=n - 1)


class NarrowResNet(ResNet):
    """ResNet-18 with the small stem, and 16 channels for 64."""

    def __init__(self, width=16, classes=10):
        super().__init__(BasicBlock, [2, 2, 2, 2], num_classes=classes)
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.maxpool, self.inplanes = nn.Identity(), width
        for layer in range(4):
            made = self._make_layer(BasicBlock, width << layer, 2, stride=1 if layer == 0 else 2)
            setattr(self, f"layer{layer + 1}", made)
        self.fc = nn.Linear(8 * width, classes)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=5e-4, momentum=0.9)


def adam(lr):
    return lambda parameters: torch.optim.Adam(parameters, lr=lr)


# Name, network, optimizer, and what batch t and its labels are.
CURVES = (
    ("mlp", Mlp([14 * 14, 128, 128, 10]), adam(1e-3),
     lambda t: (images(1000 + t, 64, 14, 14, 1), classes(1100 + t, 10, 64))),
    ("resnet", NarrowResNet(), sgd,
     lambda t: (images(1000 + t, 16, 16, 16, 3), classes(1100 + t, 10, 16))),
    ("gpt", Gpt(11, 8, 16, 2, 2), lambda p: torch.optim.AdamW(p, lr=3e-3),
     lambda t: (classes(1000 + t, 11, 4, 8), classes(1100 + t, 11, 4, 8))),
    ("lstm", Lstm(8, 2, 5), adam(1e-2),
     lambda t: (values(1000 + t, 3, 6, 8), classes(1100 + t, 5, 3, 6))),
)


def calm(model):
    """Residual branches that begin small: else rounding decides about ReLUs, and soon
    about the loss, in PyTorch's own f32 too."""
    for name, value in model.state_dict().items():
        if name.endswith(".bn2.weight"):
            value.mul_(0.2)


def record(out, name, model, make, batch):
    fill(model)
    calm(model)
    optimizer = make(model.parameters())
    losses = []
    for t in range(STEPS):
        x, y = batch(t % BATCHES)
        loss = nn.functional.cross_entropy(model(x), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    out.write(f"curve {name}\nlosses {numbers(losses)}\nend\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with open(os.path.join(HERE, "curves.txt"), "w") as out:
        for name, model, make, batch in CURVES:
            record(out, name, model.double(), make, batch)
