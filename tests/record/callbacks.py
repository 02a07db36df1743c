"""Records what Lightning's and PyTorch's parts give that callbacks follow: the learning rate finder's rates, SWALR and AveragedModel, masks of torch.nn.utils.prune. Writes tests/data/{lr_finder,swa,pruning}.h."""
import math
import os
import types

import torch
from lightning.pytorch.tuner.lr_finder import _ExponentialLR, _LinearLR
from torch.nn.utils import prune
from torch.optim.swa_utils import SWALR, AveragedModel

torch.manual_seed(5)
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data")
HEAD = ["/* Made by tests/record/callbacks.py. */", "#include <math.h>", "#include <stdint.h>", ""]
lines = list(HEAD)


def write(name):
    global lines
    with open(os.path.join(DATA, name), "w") as f:
        f.write("\n".join(lines) + "\n")
    lines = list(HEAD)


def number(x):
    return "(double)NAN" if math.isnan(x) else "(double)INFINITY" if math.isinf(x) else repr(float(x))


def array(kind, name, values, form=number):
    lines.append(f"static const {kind} {name}[] = {{ " + ", ".join(form(v) for v in values) + " };")


# ---- Learning rate finder: rates, for curves of losses
def finder(name, mode, steps, losses, low=1e-8, high=1.0):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=low)
    scheduler = (_LinearLR if mode == "linear" else _ExponentialLR)(optimizer, high, steps)
    rates = []
    for _ in range(steps):
        rates.append(scheduler.lr[0])
        optimizer.step()
        scheduler.step()
    array("double", f"raw_{name}", losses)
    array("double", f"rates_{name}", rates)
    cases.append(f'{{ "{name}", {1 if mode == "linear" else 0}, {steps}, {low!r}, {high!r}, raw_{name}, rates_{name} }}')


cases = []


def curve(n, dip, noise):
    """Flat, falling, then rising fast."""
    x = torch.arange(n, dtype=torch.float64) / n
    y = 2.3 - 1.5 * torch.sigmoid((x - dip) * 20) + torch.relu(x - dip - 0.2) ** 2 * 400
    return (y + noise * torch.randn(n, dtype=torch.float64)).tolist()


finder("plain", "exponential", 100, curve(100, 0.6, 0.02))
finder("noisy", "exponential", 60, curve(60, 0.5, 0.3))
finder("linear", "linear", 50, curve(50, 0.4, 0.05), 1e-5, 0.5)
finder("whole", "exponential", 40, curve(40, 0.3, 0.1))
finder("random", "exponential", 30, torch.rand(30, dtype=torch.float64).tolist())
finder("broken", "exponential", 40, curve(40, 0.5, 0.02)[:25] + [float("nan")] * 15)
finder("short", "exponential", 12, curve(12, 0.5, 0.02))
lines += ["static const struct {", "    const char *name;", "    int mode, steps;", "    double low, high;",
          "    const double *raw, *rates;", "} finder_cases[] = {"]
lines += [f"    {case}," for case in cases] + ["};", ""]
write("lr_finder.h")

# ---- SWALR: rates of the epochs
cases = []
for strategy in ["cos", "linear"]:
    for epochs in [0, 1, 5]:
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=epochs, anneal_strategy=strategy)
        rates = []
        for _ in range(8):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        array("double", f"swalr_{strategy}_{epochs}", rates)
        cases.append(f'{{ {0 if strategy == "cos" else 1}, {epochs}, swalr_{strategy}_{epochs} }}')
lines += ["static const struct {", "    int strategy, epochs;", "    const double *rates;", "} swalr_cases[] = {"]
lines += [f"    {case}," for case in cases] + ["};", ""]

# ---- AveragedModel: a row of weights at a time
model = torch.nn.Linear(3, 2, bias=False)
average = AveragedModel(model)
rows = torch.randn(4, 6)
array("float", "swa_weights", rows.flatten().tolist(), lambda v: f"{float(v)!r}f")
averages = []
for row in rows:
    with torch.no_grad():
        model.weight.copy_(row.reshape(2, 3))
    average.update_parameters(model)
    averages += average.module.weight.detach().flatten().tolist()
array("float", "swa_averages", averages, lambda v: f"{float(v)!r}f")
write("swa.h")


# ---- Pruning: masks (1: pruned) of two parameters after each of three rounds
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 2, bias=False)
        self.fc = torch.nn.Linear(6, 5, bias=False)


def pruned(name, rounds, apply):
    torch.manual_seed(9)
    net = Net()
    masks = []
    for _ in range(rounds):
        apply(net)
        for module in [net.conv, net.fc]:
            masks += (1 - module.weight_mask.flatten()).int().tolist()
    array("uint8_t", f"mask_{name}", masks, str)
    return name


torch.manual_seed(9)
net = Net()
array("float", "prune_weights", torch.cat([net.conv.weight.flatten(), net.fc.weight.flatten()]).tolist(),
      lambda v: f"{float(v)!r}f")
both = lambda net: [(net.conv, "weight"), (net.fc, "weight")]
each = lambda f: lambda net: [f(module, "weight") for module in [net.conv, net.fc]]
cases = []
for name, structured, every, amount, dim, norm, apply in [
        ("global_share", 0, 1, 0.3, 0, 0, lambda net: prune.global_unstructured(both(net), prune.L1Unstructured, amount=0.3)),
        ("global_count", 0, 1, 11, 0, 0, lambda net: prune.global_unstructured(both(net), prune.L1Unstructured, amount=11)),
        ("local_share", 0, 0, 0.25, 0, 0, each(lambda m, n: prune.l1_unstructured(m, n, 0.25))),
        ("local_count", 0, 0, 7, 0, 0, each(lambda m, n: prune.l1_unstructured(m, n, 7))),
        ("ln2_dim0", 1, 0, 1, 0, 2, each(lambda m, n: prune.ln_structured(m, n, 1, n=2, dim=0))),
        ("ln1_dim1", 1, 0, 0.34, 1, 1, each(lambda m, n: prune.ln_structured(m, n, 0.34, n=1, dim=1))),
        ("lninf_last", 1, 0, 1, -1, math.inf, each(lambda m, n: prune.ln_structured(m, n, 1, n=math.inf, dim=-1)))]:
    rounds = 2 if structured and dim != 0 else 3
    if name == "lninf_last":
        rounds = 1
    pruned(name, rounds, apply)
    cases.append(f'{{ "{name}", {structured}, {every}, {int(isinstance(amount, int))}, {amount}, {dim}, {number(norm)}, {rounds}, mask_{name} }}')
lines += ["static const struct {", "    const char *name;", "    int structured, global, count;", "    double amount;", "    int dim;",
          "    double norm;", "    int rounds;", "    const uint8_t *masks;", "} prune_cases[] = {"]
lines += [f"    {case}," for case in cases] + ["};"]
write("pruning.h")
