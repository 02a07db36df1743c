"""Records what PyTorch computes for elementwise operations and reductions: writes
tests/data/ops/elementwise.h. Inputs hold the places where definitions matter: zeros,
bounds, equals.

    python tests/record/elementwise.py        (needs torch)
"""

import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(21)
X = torch.cat([torch.randn(17), torch.tensor([0.0, 1.0, -1.0, 0.5, 2.0, -0.5, 6.0])]).reshape(2, 3, 4)
ROW = torch.tensor([0.5, -1.0, 1.0, 2.0])
POSITIVE = torch.rand(2, 3, 4) * 3 + 0.1
EQUALS = torch.tensor([3.0, 1.0, 3.0, -2.0, 3.0, 0.0] * 4).reshape(2, 3, 4)
rows = []


def keep(name, function, *inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    y = function(*leaves)
    dy = torch.linspace(-1.5, 2.0, max(y.numel(), 2))[: y.numel()].reshape(y.shape)
    grads = [None] * len(leaves)
    if y.requires_grad:
        grads = torch.autograd.grad(y, leaves, dy, allow_unused=True)
    values = [x.detach() for x in inputs] + [y.detach().float(), dy]
    values += [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, grads)]
    rows.append((name, [v.reshape(-1).tolist() for v in values]))


two = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "minimum": torch.minimum, "maximum": torch.maximum,
    "eq": lambda a, b: a.eq(b).float(), "ne": lambda a, b: a.ne(b).float(),
    "lt": lambda a, b: a.lt(b).float(), "le": lambda a, b: a.le(b).float(),
    "gt": lambda a, b: a.gt(b).float(), "ge": lambda a, b: a.ge(b).float(),
    "where": lambda a, b: torch.where(a > b, a, b),
}
for name, function in two.items():
    keep(name, function, X, ROW)
keep("atan2", torch.atan2, X, ROW)
keep("power", torch.pow, POSITIVE, ROW)
one = {
    "clamp": lambda x: x.clamp(-0.5, 1.0), "exp": torch.exp, "abs": torch.abs, "sign": torch.sign,
    "floor": torch.floor, "round": torch.round,
    "square": torch.square, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
    "pow_3": lambda x: x.pow(3), "relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 0.7), "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu, "hard_swish": lambda x: F.hardswish(3 * x), "hard_sigmoid": lambda x: F.hardsigmoid(3 * x),
    "softplus": lambda x: F.softplus(x, 1.5, 2.0), "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
for name, function in one.items():
    keep(name, function, X)
positive = {
    "log": torch.log, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal, "pow": lambda x: x.pow(-1.5),
}
for name, function in positive.items():
    keep(name, function, POSITIVE)
axes = {"all": (0, 1, 2), "first": (0,), "middle": (1,), "last": (2,), "ends": (0, 2)}
reductions = {
    "sum": lambda x, a: x.sum(a), "mean": lambda x, a: x.mean(a), "max": lambda x, a: x.amax(a),
    "min": lambda x, a: x.amin(a), "logsumexp": lambda x, a: x.logsumexp(a),
    "var": lambda x, a: x.var(a), "std": lambda x, a: x.std(a, correction=0),
}
ZEROS = torch.tensor([0.0, 1.5, -2.0, 0.5, 0.0, 3.0, -0.5, 2.0, 0.25, 1.0, -1.0, 0.5]).repeat(2).reshape(2, 3, 4)


def prod(x, axes):
    """PyTorch's takes one axis."""
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis)
    return x


reductions["prod"] = prod
inputs = {"max": EQUALS, "min": EQUALS, "prod": ZEROS}
for name, function in reductions.items():
    for which, axis in axes.items():
        keep(f"{name}_{which}", lambda x: function(x, axis), inputs.get(name, X))
for axis in range(3):
    keep(f"argmax_{axis}", lambda x: x.argmax(axis).float(), EQUALS)


def text(values):
    return ", ".join((s if "." in s or "e" in s else s + ".0") + "f" for s in (f"{v:.9g}" for v in values))


out = pathlib.Path(__file__).resolve().parents[1] / "data" / "ops" / "elementwise.h"
with out.open("w") as file:
    version = torch.__version__.split("+")[0]
    file.write(f"/* Written by tests/record/elementwise.py with PyTorch {version}. Of each: the\n")
    file.write(" * inputs, the result, the gradient over it, the gradients of the inputs. */\n")
    file.write("static const struct Record {\n    const char *name;\n    float values[6][24];\n} records[] = {\n")
    for name, values in rows:
        lists = ",\n      ".join("{ " + text(v) + " }" for v in values)
        file.write(f'    {{ "{name}",\n      {{ {lists} }} }},\n')
    file.write("};\n")
