"""Record what PyTorch and torchvision say about networks, optimizers and
schedules, for the unit tests. Needs torch and torchvision; run from the root:

    python tests/record/models.py

Writes tests/data/models/*.txt. Weights and inputs come from a formula that both
sides compute (`pattern`), so that no weights need to be kept. Everything is
computed in float64."""
import fnmatch
import os
from collections import OrderedDict

import numpy as np
import torch
import torchvision
from torch import nn

HERE = os.path.join(os.path.dirname(__file__), "..", "data", "models")


def pattern(key, n):
    """n numbers in [-1, 1) from a 32-bit integer hash of (key, index)."""
    with np.errstate(over="ignore"):
        h = np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B1)
        h ^= np.uint32(key) * np.uint32(0x85EBCA77)
        h ^= h >> np.uint32(15)
        h *= np.uint32(0x2C1B3C6D)
        h ^= h >> np.uint32(12)
        h *= np.uint32(0x297A2D39)
        h ^= h >> np.uint32(15)
    return h.astype(np.float64) / 2.0**31 - 1.0


def fill(model):
    """Set parameter and buffer number k of the state dict from pattern(k)."""
    for k, (name, value) in enumerate(model.state_dict().items()):
        p = torch.from_numpy(pattern(k, value.numel()).astype(np.float32)).double()
        p = p.reshape(value.shape)
        if name.endswith("num_batches_tracked"):
            value.zero_()
        elif name.endswith("running_var"):
            value.copy_(1.0 + 0.5 * p)
        elif value.dim() > 1:
            value.copy_(p * (3.0 / (value.numel() / value.shape[0])) ** 0.5)
        elif name.endswith("weight"):
            value.copy_(1.0 + 0.25 * p)
        else:
            value.copy_(0.25 * p)


def images(key, n, height, width, channels):
    """NCHW double from a pattern in NHWC order."""
    x = pattern(key, n * height * width * channels).astype(np.float32)
    return torch.from_numpy(x.reshape(n, height, width, channels)).double().permute(0, 3, 1, 2)


def numbers(values):
    if isinstance(values, torch.Tensor):
        values = values.tolist()
    return " ".join(repr(float(v)) for v in values)


def summary(k, tensor):
    """Norm, projection on a pattern, and three elements: first, middle, last."""
    v = tensor.detach().reshape(-1).numpy()
    return numbers([np.linalg.norm(v), v @ pattern(5000 + k, v.size), v[0], v[v.size // 2], v[-1]])


def some(tensor):
    """All numbers of logits, or of many every k-th, at most 512."""
    flat = tensor.reshape(-1)
    return flat[:: (len(flat) + 511) // 512]


def margin(model, x):
    """How close any ReLU's input comes to 0 in a training step, or those of hard-swish and
    hard-sigmoid to -3 and 3. There the gradient jumps, so that rounding alone could decide it."""
    least = [1.0]

    def look(module, inputs):
        jump = 0 if isinstance(module, nn.ReLU) else 3
        least[0] = min(least[0], (inputs[0].abs() - jump).abs().min().item())

    kinds = (nn.ReLU, nn.Hardswish, nn.Hardsigmoid)
    hooks = [m.register_forward_pre_hook(look) for m in model.modules() if isinstance(m, kinds)]
    model.train()
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return least[0]


def best_key(model, shape):
    """Of some patterns for the images the one that stays away from the jumps."""
    keys = range(1000, 1020)
    return max(keys, key=lambda key: margin(model, images(key, *shape)))


def record_net(out, title, options, model, shape, classes, train=True):
    n, height, width, channels = shape
    model = model.double()
    fill(model)
    key = best_key(model, shape) if train else 1000
    fill(model)
    x = images(key, *shape)
    out.write(f"net {title} {n} {height} {width} {channels} {classes} {key} {options}\n")
    model.eval()
    with torch.no_grad():
        out.write(f"eval {numbers(some(model(x)))}\n")
    if train:
        model.train()
        logits = model(x)
        labels = torch.tensor([(7 * i + 3) % classes for i in range(len(logits))])
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        out.write(f"train {numbers(some(logits.detach()))}\n")
        out.write(f"loss {numbers([loss.item()])}\n")
        grads = dict(model.named_parameters())
        for k, (name, value) in enumerate(model.state_dict().items()):
            if name in grads:
                out.write(f"grad {name} {summary(k, grads[name].grad)}\n")
            else:
                out.write(f"buffer {name} {summary(k, value.double())}\n")
    out.write("end\n")


class Mlp(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.relu = nn.ReLU()

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = self.relu(layer(x))
        return self.layers[-1](x)


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.fc(x.flatten(1))


class Cnn(nn.Module):
    def __init__(self, size, channels, kernel, hidden, classes, batch_norm):
        super().__init__()
        self.stages = len(channels) - 1
        for i in range(self.stages):
            setattr(self, f"conv{i + 1}", nn.Conv2d(channels[i], channels[i + 1], kernel,
                                                    padding=kernel // 2, bias=not batch_norm))
            if batch_norm:
                setattr(self, f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        self.batch_norm = batch_norm
        self.relu = nn.ReLU()
        left = [s >> self.stages for s in size]
        self.fc1 = nn.Linear(left[0] * left[1] * channels[-1], hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        for i in range(self.stages):
            x = getattr(self, f"conv{i + 1}")(x)
            if self.batch_norm:
                x = getattr(self, f"bn{i + 1}")(x)
            x = nn.functional.max_pool2d(self.relu(x), 2)
        return self.fc2(self.relu(self.fc1(x.flatten(1))))


class Lstm(nn.Module):
    def __init__(self, row, hidden, layers, bidirectional, classes):
        super().__init__()
        self.lstm = nn.LSTM(row, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(hidden * (2 if bidirectional else 1), classes)

    def forward(self, x):
        h = self.lstm(x.permute(0, 2, 3, 1).flatten(2))[1][0]
        return self.head(torch.cat([h[-2], h[-1]], 1) if self.lstm.bidirectional else h[-1])


def resnet(depth, stem, channels, classes):
    model = getattr(torchvision.models, f"resnet{depth}")(num_classes=classes)
    if stem == "small":
        model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    elif channels != 3:
        model.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
    return model


def vit(size, patch, layers, heads, width, mlp_dim, channels, classes):
    model = torchvision.models.VisionTransformer(size, patch, layers, heads, width, mlp_dim, num_classes=classes)
    model.conv_proj = nn.Conv2d(channels, width, patch, patch)
    return model


def record_nets():
    with open(os.path.join(HERE, "nets.txt"), "w") as out:
        record_net(out, "linear", "", Linear(5 * 4 * 3, 4), (3, 5, 4, 3), 4)
        record_net(out, "mlp", "hidden=[16,12]", Mlp([7 * 6 * 2, 16, 12, 5]), (4, 7, 6, 2), 5)
        record_net(out, "cnn", "channels=[6,8] kernel=5 hidden=20 dropout=0",
                   Cnn((13, 10), [3, 6, 8], 5, 20, 6, True), (4, 13, 10, 3), 6)
        record_net(out, "cnn", "channels=[6,8,10] kernel=3 hidden=20 dropout=0 batch_norm=false",
                   Cnn((16, 16), [1, 6, 8, 10], 3, 20, 3, False), (3, 16, 16, 1), 3)
        record_net(out, "lstm", "hidden=9", Lstm(8 * 3, 9, 1, False, 5), (3, 7, 8, 3), 5)
        record_net(out, "lstm", "hidden=6 layers=2 bidirectional=true", Lstm(6, 6, 2, True, 4), (4, 5, 6, 1), 4)
        record_net(out, "resnet", "depth=18 stem=small", resnet(18, "small", 3, 10),
                   (2, 16, 16, 3), 10)
        record_net(out, "resnet", "depth=18 stem=large", resnet(18, "large", 1, 4),
                   (2, 64, 96, 1), 4)
        record_net(out, "resnet", "depth=34 stem=small", resnet(34, "small", 3, 3),
                   (1, 17, 19, 3), 3, train=False)
        record_net(out, "resnet", "depth=50 stem=large", resnet(50, "large", 3, 7),
                   (2, 64, 64, 3), 7, train=False)
        record_net(out, "transformer", "embed.patch_size=4 width=8 layers=2 heads=2 mlp_dim=12",
                   vit(12, 4, 2, 2, 8, 12, 3, 5), (3, 12, 12, 3), 5)


def record_names():
    for depth in (18, 34, 50):
        with open(os.path.join(HERE, f"resnet{depth}.txt"), "w") as out:
            for name, value in resnet(depth, "large", 3, 1000).state_dict().items():
                dtype = {torch.float32: "f32", torch.int64: "i64"}[value.dtype]
                out.write(" ".join([name, dtype, *map(str, value.shape)]) + "\n")


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al. 2020; as in the authors' program, what does not decay
    keeps Adam's step unless always_adapt."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                 always_adapt=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      always_adapt=always_adapt))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                s["t"] = s.get("t", 0) + 1
                s["m"] = b1 * s.get("m", torch.zeros_like(p)) + (1 - b1) * p.grad
                s["v"] = b2 * s.get("v", torch.zeros_like(p)) + (1 - b2) * p.grad**2
                m, v = s["m"] / (1 - b1 ** s["t"]), s["v"] / (1 - b2 ** s["t"])
                u = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
                trust = 1.0
                if group["weight_decay"] != 0 or group["always_adapt"]:
                    if p.norm() > 0 and u.norm() > 0:
                        trust = p.norm() / u.norm()
                p -= group["lr"] * trust * u


class Lion(torch.optim.Optimizer):
    """Program 1 of Chen et al. 2023."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].get("m", torch.zeros_like(p))
                u = (b1 * m + (1 - b1) * p.grad).sign() + group["weight_decay"] * p
                p -= group["lr"] * u
                self.state[p]["m"] = b2 * m + (1 - b2) * p.grad


class Adan(torch.optim.Optimizer):
    """Algorithm 1 of Xie et al. 2022 with bias corrections, where b is what is kept."""

    def __init__(self, params, lr, betas=(0.98, 0.92, 0.99), eps=1e-8, weight_decay=0.0,
                 no_prox=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      no_prox=no_prox))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2, b3), lr = group["betas"], group["lr"]
            for p in group["params"]:
                s, zero = self.state[p], torch.zeros_like(p)
                t = s["t"] = s.get("t", 0) + 1
                change = p.grad - s.get("g", p.grad)
                s["m"] = b1 * s.get("m", zero) + (1 - b1) * p.grad
                s["d"] = b2 * s.get("d", zero) + (1 - b2) * change
                s["n"] = b3 * s.get("n", zero) + (1 - b3) * (p.grad + b2 * change) ** 2
                s["g"] = p.grad.clone()
                step = s["m"] / (1 - b1**t) + b2 * s["d"] / (1 - b2**t)
                step /= (s["n"] / (1 - b3**t)).sqrt() + group["eps"]
                if group["no_prox"]:
                    p.copy_(p * (1 - lr * group["weight_decay"]) - lr * step)
                else:
                    p.copy_((p - lr * step) / (1 + lr * group["weight_decay"]))


OPTIMIZERS = [
    ("sgd", "", torch.optim.SGD, {}),
    ("sgd", "momentum=0.9 weight_decay=0.01", torch.optim.SGD,
     {"momentum": 0.9, "weight_decay": 0.01}),
    ("sgd", "momentum=0.8 nesterov=true weight_decay=0.1", torch.optim.SGD,
     {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    ("sgd", "momentum=0.9 dampening=0.3", torch.optim.SGD, {"momentum": 0.9, "dampening": 0.3}),
    ("adam", "", torch.optim.Adam, {}),
    ("adam", "betas=[0.8,0.95] eps=1e-3 weight_decay=0.1", torch.optim.Adam,
     {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    ("adam", "amsgrad=true betas=[0.8,0.9]", torch.optim.Adam,
     {"amsgrad": True, "betas": (0.8, 0.9)}),
    ("adamw", "", torch.optim.AdamW, {}),
    ("adamw", "betas=[0.85,0.99] weight_decay=0.3", torch.optim.AdamW,
     {"betas": (0.85, 0.99), "weight_decay": 0.3}),
    ("adamw", "amsgrad=true weight_decay=0.1", torch.optim.AdamW,
     {"amsgrad": True, "weight_decay": 0.1}),
    ("rmsprop", "", torch.optim.RMSprop, {}),
    ("rmsprop", "alpha=0.9 momentum=0.5 weight_decay=0.05", torch.optim.RMSprop,
     {"alpha": 0.9, "momentum": 0.5, "weight_decay": 0.05}),
    ("rmsprop", "alpha=0.9 centered=true eps=1e-3", torch.optim.RMSprop,
     {"alpha": 0.9, "centered": True, "eps": 1e-3}),
    ("rmsprop", "momentum=0.3 centered=true eps=1e-2", torch.optim.RMSprop,
     {"momentum": 0.3, "centered": True, "eps": 1e-2}),
    ("adagrad", "", torch.optim.Adagrad, {}),
    ("adagrad", "lr_decay=0.1 initial_accumulator_value=0.5 weight_decay=0.05",
     torch.optim.Adagrad,
     {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.05}),
    ("lamb", "", Lamb, {}),
    ("lamb", "weight_decay=0 always_adapt=true", Lamb, {"weight_decay": 0, "always_adapt": True}),
    ("lion", "weight_decay=0.2", Lion, {"weight_decay": 0.2}),
    ("adan", "", Adan, {}),
    ("adan", "weight_decay=0.2", Adan, {"weight_decay": 0.2}),
    ("adan", "weight_decay=0.2 no_prox=true betas=[0.9,0.8,0.95]", Adan,
     {"weight_decay": 0.2, "no_prox": True, "betas": (0.9, 0.8, 0.95)}),
]
STEPS = 50


def record_optimizers():
    """Fifty steps of each on w with gradient a*w - b + 0.1*sin(step)."""
    n = 9
    with open(os.path.join(HERE, "optimizers.txt"), "w") as out:
        for name, options, kind, arguments in OPTIMIZERS:
            w = torch.from_numpy(pattern(1, n)).requires_grad_()
            a = torch.from_numpy(1.0 + 0.5 * pattern(2, n))
            b = torch.from_numpy(pattern(3, n))
            optimizer = kind([w], lr=0.05, **arguments)
            out.write(f"optimizer {name} {n} lr=0.05 {options}\n")
            for step in range(STEPS):
                w.grad = a * w.detach() - b + 0.1 * np.sin(step)
                optimizer.step()
                if step in (0, 1, 2, 9, STEPS - 1):
                    out.write(f"step {step} {numbers(w)}\n")
            out.write("end\n")


# Groups of the network below, as kiln writes them, and which clipping.
GROUPS = [
    ("", {}, None, 0.0),
    ("no_decay_norms=true", {"*.bias": {"weight_decay": 0.0}}, "norm", 0.3),
    ("groups.slow.params=[fc1.*] groups.slow.lr_scale=0.1 groups.rest.params=['*.bias'] "
     "groups.rest.weight_decay=0.5",
     {"fc1.*": {"lr_scale": 0.1}, "*.bias": {"weight_decay": 0.5}}, "value", 0.02),
    ("groups.frozen.params=['fc1.w*'] groups.frozen.lr_scale=0", {"fc1.w*": {"lr_scale": 0}},
     "norm", 0.2),
]
NETS = [("sgd", "momentum=0.9 weight_decay=0.02", torch.optim.SGD,
         {"momentum": 0.9, "weight_decay": 0.02}, 0.1),
        ("adam", "weight_decay=0.02", torch.optim.Adam, {"weight_decay": 0.02}, 0.01),
        ("adamw", "weight_decay=0.1", torch.optim.AdamW, {"weight_decay": 0.1}, 0.01),
        ("rmsprop", "weight_decay=0.02", torch.optim.RMSprop, {"weight_decay": 0.02}, 0.003),
        ("adagrad", "weight_decay=0.02", torch.optim.Adagrad, {"weight_decay": 0.02}, 0.05),
        ("lamb", "weight_decay=0.1", Lamb, {"weight_decay": 0.1}, 0.02),
        ("lion", "weight_decay=0.1", Lion, {"weight_decay": 0.1}, 0.003),
        ("adan", "weight_decay=0.1", Adan, {"weight_decay": 0.1}, 0.01)]


def param_groups(model, patterns, lr, decay):
    groups = []
    for name, value in model.named_parameters():
        said = next((v for k, v in patterns.items() if fnmatch.fnmatch(name, k)), {})
        scale = said.get("lr_scale", 1.0)
        value.requires_grad_(scale != 0)
        if scale != 0:
            groups.append({"params": [value], "lr": lr * scale,
                           "weight_decay": said.get("weight_decay", decay)})
    return groups


def record_training():
    """Fifty steps of a network of two layers on one batch: the loss of every step."""
    x = torch.from_numpy(pattern(7, 12 * 6)).reshape(12, 6)
    labels = torch.tensor([(5 * i + 1) % 3 for i in range(12)])
    with open(os.path.join(HERE, "training.txt"), "w") as out:
        for name, options, kind, arguments, lr in NETS:
            for words, patterns, clip, limit in GROUPS:
                model = nn.Sequential(OrderedDict(fc1=nn.Linear(6, 5), relu=nn.ReLU(),
                                                  fc2=nn.Linear(5, 3))).double()
                fill(model)
                optimizer = kind(param_groups(model, patterns, lr, arguments["weight_decay"]),
                                 lr=lr, **arguments)
                losses = []
                for _ in range(STEPS):
                    loss = nn.functional.cross_entropy(model(x), labels)
                    optimizer.zero_grad()
                    loss.backward()
                    if clip == "norm":
                        nn.utils.clip_grad_norm_(model.parameters(), limit)
                    elif clip == "value":
                        nn.utils.clip_grad_value_(model.parameters(), limit)
                    optimizer.step()
                    losses.append(loss.item())
                out.write(f"training {name} {clip or 'none'} {limit} lr={lr} {options} {words}\n")
                out.write(f"losses {numbers(losses)}\n")
                for _, value in model.named_parameters():
                    out.write(f"param {numbers(value.detach().reshape(-1))}\n")
                out.write("end\n")


def warm(o, steps, rest):
    """A line from 0 over some steps, then the schedule from its start."""
    lr = torch.optim.lr_scheduler
    return lr.SequentialLR(o, [lr.LinearLR(o, 1 / steps, 1.0, steps - 1), rest(o)], [steps])


def record_schedulers():
    """Factors of a base rate of 1 over 10 epochs of 4 steps."""
    lr = torch.optim.lr_scheduler
    cases = [
        ("constant", "", lambda o: lr.ConstantLR(o, 1.0), False),
        ("constant", "warmup_steps=6", lambda o: lr.LinearLR(o, 1 / 6, 1.0, 5), False),
        ("cosine", "", lambda o: lr.CosineAnnealingLR(o, 40), False),
        ("cosine", "min_factor=0.1", lambda o: lr.CosineAnnealingLR(o, 40, eta_min=0.1), False),
        ("cosine", "warmup_epochs=1",
         lambda o: warm(o, 4, lambda o: lr.CosineAnnealingLR(o, 36)), False),
        ("cosine", "warmup_steps=7 min_factor=0.05",
         lambda o: warm(o, 7, lambda o: lr.CosineAnnealingLR(o, 33, eta_min=0.05)), False),
        ("step", "step_size=1", lambda o: lr.StepLR(o, 1, 0.1), True),
        ("step", "step_size=2 gamma=0.5", lambda o: lr.StepLR(o, 2, 0.5), True),
        ("step", "step_size=3 gamma=0.5 interval=step", lambda o: lr.StepLR(o, 3, 0.5), False),
        ("multistep", "milestones=[3,7,8]", lambda o: lr.MultiStepLR(o, [3, 7, 8], 0.1), True),
        ("multistep", "milestones=[5,21] gamma=0.3 interval=step",
         lambda o: lr.MultiStepLR(o, [5, 21], 0.3), False),
        ("exponential", "gamma=0.8", lambda o: lr.ExponentialLR(o, 0.8), True),
        ("exponential", "gamma=0.97 interval=step", lambda o: lr.ExponentialLR(o, 0.97), False),
        ("cosine_restarts", "t_0=3",
         lambda o: lr.CosineAnnealingWarmRestarts(o, 3), True),
        ("cosine_restarts", "t_0=2 t_mult=2 min_factor=0.1",
         lambda o: lr.CosineAnnealingWarmRestarts(o, 2, 2, eta_min=0.1), True),
        ("cosine_restarts", "t_0=5 t_mult=3 interval=step",
         lambda o: lr.CosineAnnealingWarmRestarts(o, 5, 3), False),
        ("linear", "", lambda o: lr.LinearLR(o, 1.0, 0.0, 40), False),
        ("linear", "min_factor=0.2 warmup_steps=4",
         lambda o: warm(o, 4, lambda o: lr.LinearLR(o, 1.0, 0.2, 36)), False),
        ("polynomial", "", lambda o: lr.PolynomialLR(o, 40, 1.0), False),
        ("polynomial", "power=2.5 warmup_steps=5",
         lambda o: warm(o, 5, lambda o: lr.PolynomialLR(o, 35, 2.5)), False),
        ("one_cycle", "", lambda o: lr.OneCycleLR(o, 1.0, 40, cycle_momentum=False), False),
        ("one_cycle", "pct_start=0.4 anneal_strategy=linear div_factor=10 final_div_factor=100",
         lambda o: lr.OneCycleLR(o, 1.0, 40, pct_start=0.4, anneal_strategy="linear",
                                 div_factor=10, final_div_factor=100, cycle_momentum=False), False),
        ("one_cycle", "pct_start=0.25 three_phase=true",
         lambda o: lr.OneCycleLR(o, 1.0, 40, pct_start=0.25, three_phase=True,
                                 cycle_momentum=False), False),
        ("wsd", "warmup_steps=4 decay_fraction=0.25",
         lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 1 / 4, 1.0, 3), lr.ConstantLR(o, 1.0),
                                       lr.LinearLR(o, 1.0, 0.0, 10)], [4, 30]), False),
        ("wsd", "decay_fraction=0.5 decay_shape=cosine min_factor=0.1",
         lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 1.0),
                                       lr.CosineAnnealingLR(o, 20, eta_min=0.1)], [20]), False),
    ]
    metric = [3, 2, 2, 2.1, 1.9999, 1.5, 1.6, 1.7, 1.4, float("nan")]
    plateau = [
        ("patience=1", {"patience": 1}),
        ("patience=0 factor=0.5 threshold=0.3 threshold_mode=abs",
         {"patience": 0, "factor": 0.5, "threshold": 0.3, "threshold_mode": "abs"}),
        ("patience=0 factor=0.5 cooldown=2 mode=max min_factor=0.2",
         {"patience": 0, "factor": 0.5, "cooldown": 2, "mode": "max", "min_lr": 0.2}),
    ]
    with open(os.path.join(HERE, "schedulers.txt"), "w") as out:
        def record(name, options, make, by_epoch, observe):
            optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
            scheduler = make(optimizer)
            factors = []
            for step in range(40):
                factors.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                if step % 4 == 3 and observe:
                    scheduler.step(metric[step // 4])
                elif not observe and (not by_epoch or step % 4 == 3) and step < 39:
                    scheduler.step()
            out.write(f"scheduler {name} {options}\n")
            if observe:
                out.write(f"metric {' '.join(map(repr, metric))}\n")
            out.write(f"factors {numbers(factors)}\nend\n")

        for name, options, make, by_epoch in cases:
            record(name, options, make, by_epoch, False)
        for options, arguments in plateau:
            record("plateau", options,
                   lambda o: lr.ReduceLROnPlateau(o, **arguments), True, True)


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    torch.set_num_threads(2)
    record_names()
    record_nets()
    record_optimizers()
    record_training()
    record_schedulers()
