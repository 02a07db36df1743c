"""Groups of tensors that tests/support/torch_groups.h reads: the leaves of a computation,
what it gives, and the gradients of that."""

import pathlib

import torch

records = []


def keep(name, tensor):
    records.append((name, tensor.detach().double().reshape(-1).tolist()))


def float_text(value):
    """Nine digits are all of a float; with a point, as C wants."""
    text = f"{value:.9g}"
    return text if "." in text or "e" in text or "n" in text else text + ".0"


def run(group, y, **leaves):
    """y and its weighted sum's gradients."""
    dy = torch.randn(y.shape)
    keep(group + ".y", y)
    keep(group + ".dy", dy)
    if y.requires_grad:
        (y * dy).sum().backward()
    for name, leaf in leaves.items():
        keep(f"{group}.{name}", leaf)
        if leaf.requires_grad:
            keep(f"{group}.d{name}", leaf.grad)


def leaf(*shape):
    return torch.randn(*shape).requires_grad_()


def write(name):
    """What tests/record/<name>.py kept, to tests/data/ops/<name>.h."""
    out = pathlib.Path(__file__).resolve().parents[1] / "data" / "ops" / f"{name}.h"
    with out.open("w") as file:
        file.write(f"/* Written by tests/record/{name}.py with PyTorch {torch.__version__.split('+')[0]}. */\n")
        file.write("static const Recorded records[] = {\n")
        for group, values in records:
            file.write(f'    {{ "{group}", {len(values)}, (const float[]){{\n')
            for i in range(0, len(values), 8):
                file.write(" ".join(f"{float_text(value)}f," for value in values[i : i + 8]) + "\n")
            file.write("    } },\n")
        file.write("};\n")
