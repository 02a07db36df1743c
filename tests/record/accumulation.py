"""Training with accumulated gradients, and with whole batches: what
tests/unit/train/step/test_gradient_accumulation.c repeats. Writes tests/data/accumulation.h."""

import pathlib

import torch

IN, HIDDEN, OUT, BATCH, PARTS, STEPS = 6, 5, 3, 32, 4, 3


def pattern(k, n):
    """Numbers that the test makes, too: all are exact in binary."""
    return torch.tensor([((i * 37 + k * 11) % 64 - 32) / 32.0 for i in range(n)], dtype=torch.float32)


def network():
    net = torch.nn.Sequential(torch.nn.Linear(IN, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, OUT))
    with torch.no_grad():
        for k, parameter in enumerate(net.parameters()):
            parameter.copy_(pattern(k, parameter.numel()).reshape(parameter.shape))
    return net


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def train(make, parts):
    """The gradient of the first step, and the weights after the last."""
    net = network()
    optimizer = make(net.parameters())
    x = pattern(7, BATCH * STEPS * IN).reshape(-1, IN)
    y = torch.tensor([(5 * i + 1) % OUT for i in range(BATCH * STEPS)])
    gradient = None
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(parts):
            at = step * BATCH + part * (BATCH // parts)
            rows = slice(at, at + BATCH // parts)
            (torch.nn.functional.cross_entropy(net(x[rows]), y[rows]) / parts).backward()
        if gradient is None:
            gradient = flat(p.grad for p in net.parameters())
        optimizer.step()
    return gradient, flat(net.parameters())


def floats(name, values):
    text = " ".join(f"{v:.9g}f," if "." in f"{v:.9g}" or "e" in f"{v:.9g}" else f"{v:.9g}.0f," for v in values.tolist())
    return f"static const float {name}[] = {{ {text} }};\n"


def main():
    makes = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
    }
    out = pathlib.Path(__file__).resolve().parents[1] / "data" / "accumulation.h"
    with out.open("w") as file:
        file.write("/* Recorded by tests/record/accumulation.py; do not edit. */\n/* clang-format off */\n")
        for name, make in makes.items():
            gradient, weights = train(make, PARTS)
            whole_gradient, whole_weights = train(make, 1)
            assert torch.allclose(gradient, whole_gradient, rtol=1e-4, atol=1e-7)
            assert torch.allclose(weights, whole_weights, rtol=1e-4, atol=1e-6)
            file.write(floats(f"{name}_gradient", gradient))
            file.write(floats(f"{name}_weights", weights))
        file.write("/* clang-format on */\n")


main()
