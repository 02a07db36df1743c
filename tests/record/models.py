"""Record what PyTorch and torchvision say about networks, optimizers and
schedules, for the unit tests. Needs torch and torchvision; run from the root:

    python tests/record/models.py

Writes tests/data/models/*.txt. Weights and inputs come from a formula that both
sides compute (`pattern`), so that no weights need to be kept. Everything is
computed in float64."""
import os

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


def margin(model, x):
    """How close any ReLU's input comes to 0 in a training step. There the gradient
    jumps, so that rounding alone could decide it."""
    least = [1.0]

    def look(module, inputs):
        least[0] = min(least[0], inputs[0].abs().min().item())

    hooks = [m.register_forward_pre_hook(look) for m in model.modules() if isinstance(m, nn.ReLU)]
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
    labels = torch.tensor([(7 * i + 3) % classes for i in range(n)])
    out.write(f"net {title} {n} {height} {width} {channels} {classes} {key} {options}\n")
    model.eval()
    with torch.no_grad():
        out.write(f"eval {numbers(model(x).reshape(-1))}\n")
    if train:
        model.train()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        out.write(f"train {numbers(logits.detach().reshape(-1))}\n")
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


def resnet(depth, stem, channels, classes):
    model = getattr(torchvision.models, f"resnet{depth}")(num_classes=classes)
    if stem == "small":
        model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    elif channels != 3:
        model.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
    return model


def record_nets():
    with open(os.path.join(HERE, "nets.txt"), "w") as out:
        record_net(out, "linear", "", Linear(5 * 4 * 3, 4), (3, 5, 4, 3), 4)
        record_net(out, "mlp", "hidden=[16,12]", Mlp([7 * 6 * 2, 16, 12, 5]), (4, 7, 6, 2), 5)
        record_net(out, "cnn", "channels=[6,8] kernel=5 hidden=20 dropout=0",
                   Cnn((13, 10), [3, 6, 8], 5, 20, 6, True), (4, 13, 10, 3), 6)
        record_net(out, "cnn", "channels=[6,8,10] kernel=3 hidden=20 dropout=0 batch_norm=false",
                   Cnn((16, 16), [1, 6, 8, 10], 3, 20, 3, False), (3, 16, 16, 1), 3)
        record_net(out, "resnet", "depth=18 stem=small", resnet(18, "small", 3, 10),
                   (2, 16, 16, 3), 10)
        record_net(out, "resnet", "depth=18 stem=large", resnet(18, "large", 1, 4),
                   (2, 64, 96, 1), 4)
        record_net(out, "resnet", "depth=34 stem=small", resnet(34, "small", 3, 3),
                   (1, 17, 19, 3), 3, train=False)
        record_net(out, "resnet", "depth=50 stem=large", resnet(50, "large", 3, 7),
                   (2, 64, 64, 3), 7, train=False)


def record_names():
    for depth in (18, 34, 50):
        with open(os.path.join(HERE, f"resnet{depth}.txt"), "w") as out:
            for name, value in resnet(depth, "large", 3, 1000).state_dict().items():
                dtype = {torch.float32: "f32", torch.int64: "i64"}[value.dtype]
                out.write(" ".join([name, dtype, *map(str, value.shape)]) + "\n")


def record_optimizers():
    """Twenty steps of each on w with gradient a*w - b + 0.1*sin(step)."""
    n = 9
    cases = [
        ("sgd", "lr=0.05", torch.optim.SGD, {}),
        ("sgd", "lr=0.05 momentum=0.9 weight_decay=0.01", torch.optim.SGD,
         {"momentum": 0.9, "weight_decay": 0.01}),
        ("sgd", "lr=0.05 momentum=0.8 nesterov=true weight_decay=0.1", torch.optim.SGD,
         {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
        ("adam", "lr=0.05", torch.optim.Adam, {}),
        ("adam", "lr=0.05 betas=[0.8,0.95] eps=1e-3 weight_decay=0.1", torch.optim.Adam,
         {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
        ("adamw", "lr=0.05", torch.optim.AdamW, {}),
        ("adamw", "lr=0.05 betas=[0.85,0.99] weight_decay=0.3", torch.optim.AdamW,
         {"betas": (0.85, 0.99), "weight_decay": 0.3}),
    ]
    with open(os.path.join(HERE, "optimizers.txt"), "w") as out:
        for name, options, kind, arguments in cases:
            w = torch.from_numpy(pattern(1, n)).requires_grad_()
            a = torch.from_numpy(1.0 + 0.5 * pattern(2, n))
            b = torch.from_numpy(pattern(3, n))
            optimizer = kind([w], lr=0.05, **arguments)
            out.write(f"optimizer {name} {n} {options}\n")
            for step in range(20):
                w.grad = a * w.detach() - b + 0.1 * np.sin(step)
                optimizer.step()
                out.write(f"step {numbers(w)}\n")
            out.write("end\n")


def record_schedulers():
    """Factors of a base rate of 1 over 5 epochs of 4 steps."""
    lr = torch.optim.lr_scheduler
    cases = [
        ("constant", "", lambda o: lr.ConstantLR(o, 1.0), False),
        ("constant", "warmup_steps=6", lambda o: lr.LinearLR(o, 1 / 6, 1.0, 5), False),
        ("cosine", "", lambda o: lr.CosineAnnealingLR(o, 20), False),
        ("cosine", "min_factor=0.1", lambda o: lr.CosineAnnealingLR(o, 20, eta_min=0.1), False),
        ("cosine", "warmup_epochs=1", lambda o: lr.SequentialLR(
            o, [lr.LinearLR(o, 1 / 4, 1.0, 3), lr.CosineAnnealingLR(o, 16)], [4]), False),
        ("cosine", "warmup_steps=7 min_factor=0.05", lambda o: lr.SequentialLR(
            o, [lr.LinearLR(o, 1 / 7, 1.0, 6), lr.CosineAnnealingLR(o, 13, eta_min=0.05)], [7]),
         False),
        ("step", "step_size=1", lambda o: lr.StepLR(o, 1, 0.1), True),
        ("step", "step_size=2 gamma=0.5", lambda o: lr.StepLR(o, 2, 0.5), True),
    ]
    with open(os.path.join(HERE, "schedulers.txt"), "w") as out:
        for name, options, make, by_epoch in cases:
            optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
            scheduler = make(optimizer)
            factors = []
            for step in range(20):
                factors.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                if not by_epoch or step % 4 == 3:
                    scheduler.step()
            out.write(f"scheduler {name} {options}\nfactors {numbers(factors)}\nend\n")


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    torch.set_num_threads(2)
    record_names()
    record_nets()
    record_optimizers()
    record_schedulers()
