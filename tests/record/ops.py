"""Records what PyTorch computes for some operations: writes
tests/data/ops/expected.h. Images are stored as [N, H, W, C], as kiln has them.

    python tests/record/ops.py        (needs torch)
"""

import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(20)
records = []


def keep(name, tensor):
    records.append((name, tensor.detach().reshape(-1).tolist()))


def image(tensor):
    return tensor.permute(0, 2, 3, 1)


def leaf(*shape, low=None, high=None):
    values = torch.randn(*shape) if low is None else torch.empty(*shape).uniform_(low, high)
    return values.requires_grad_()


def conv(name, x, weight, bias, stride, padding):
    y = F.conv2d(x, weight, bias, stride, padding)
    dy = torch.randn_like(y)
    y.backward(dy)
    keep(name + ".x", image(x))
    keep(name + ".weight", weight)
    keep(name + ".bias", bias)
    keep(name + ".y", image(y))
    keep(name + ".dy", image(dy))
    keep(name + ".dx", image(x.grad))
    keep(name + ".dweight", weight.grad)
    keep(name + ".dbias", bias.grad)


conv("conv", leaf(2, 3, 5, 4), leaf(5, 3, 3, 3), leaf(5), 1, 1)
conv("conv_strided", leaf(1, 4, 7, 6), leaf(3, 4, 3, 3), leaf(3), 2, 1)
conv("conv_wide", leaf(1, 17, 3, 3), leaf(18, 17, 1, 1), leaf(18), 1, 0)


def batch_norm():
    x, weight, bias = leaf(3, 5, 4, 3), leaf(5, low=0.5, high=1.5), leaf(5)
    mean, var = torch.randn(5), torch.rand(5) + 0.5
    keep("norm.x", image(x))
    keep("norm.weight", weight)
    keep("norm.bias", bias)
    keep("norm.mean", mean)
    keep("norm.var", var)
    keep("norm.eval", image(F.batch_norm(x, mean, var, weight, bias, False)))
    y = F.batch_norm(x, mean, var, weight, bias, True, 0.1, 1e-5)
    dy = torch.randn_like(y)
    y.backward(dy)
    keep("norm.y", image(y))
    keep("norm.dy", image(dy))
    keep("norm.dx", image(x.grad))
    keep("norm.dweight", weight.grad)
    keep("norm.dbias", bias.grad)
    keep("norm.mean_after", mean)
    keep("norm.var_after", var)


batch_norm()


def max_pool(name, x, kernel, stride, padding):
    y = F.max_pool2d(x, kernel, stride, padding)
    dy = torch.randn_like(y)
    y.backward(dy)
    keep(name + ".x", image(x))
    keep(name + ".y", image(y))
    keep(name + ".dy", image(dy))
    keep(name + ".dx", image(x.grad))


max_pool("pool", leaf(2, 3, 6, 4), 2, 2, 0)
max_pool("pool_padded", leaf(1, 17, 5, 5), 3, 2, 1)


def linear():
    x, weight, bias = leaf(4, 7), leaf(3, 7), leaf(3)
    y = F.linear(x, weight, bias)
    dy = torch.randn_like(y)
    y.backward(dy)
    keep("linear.x", x)
    keep("linear.weight", weight)
    keep("linear.bias", bias)
    keep("linear.y", y)
    keep("linear.dy", dy)
    keep("linear.dx", x.grad)
    keep("linear.dweight", weight.grad)
    keep("linear.dbias", bias.grad)


linear()


def cross_entropy():
    logits, labels = 3 * torch.randn(6, 5), torch.tensor([0, 4, 2, 2, 1, 3])
    keep("entropy.logits", logits)
    keep("entropy.labels", labels.float())
    for name, smoothing in ("entropy", 0.0), ("entropy_smoothed", 0.1):
        x = logits.clone().requires_grad_()
        loss = F.cross_entropy(x, labels, label_smoothing=smoothing)
        loss.backward()
        keep(name + ".loss", loss)
        keep(name + ".dlogits", x.grad)


cross_entropy()


out = pathlib.Path(__file__).resolve().parents[1] / "data" / "ops" / "expected.h"
out.parent.mkdir(parents=True, exist_ok=True)
with out.open("w") as file:
    file.write(f"/* Written by tests/record/ops.py with PyTorch {torch.__version__.split('+')[0]}. */\n")
    file.write("static const struct Record {\n    const char *name;\n    size_t n;\n")
    file.write("    const float *values;\n} records[] = {\n")
    for name, values in records:
        file.write(f'    {{ "{name}", {len(values)}, (const float[]){{\n')
        for i in range(0, len(values), 8):
            file.write(" ".join(f"{value:.8e}f," for value in values[i : i + 8]) + "\n")
        file.write("    } },\n")
    file.write("};\n")
