"""PyTorch's side of the step times: one network, precision and way of running it
per process, so that peak memory is its own.

    python bench/peer.py NET [--precision 32|bf16] [--compile] [--channels-last] [--threads N]

prints {"ms": median of the steps, "peak_bytes": most resident memory}. A step is
forward, loss, backward and the optimizer's update, on tensors in memory."""
import argparse
import json
import math
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    """A pre-norm transformer block as GPT-2's."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.attn(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=65, context=256, width=384, heads=6, layers=6):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x)).flatten(0, 1)


class Lstm(nn.Module):
    def __init__(self, width=256, layers=2, classes=64):
        super().__init__()
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.lstm(x)[0]).flatten(0, 1)


class UNet(nn.Module):
    """A U-Net with padded convolutions, batch normalization and bilinear upsampling."""

    def __init__(self, width=32, levels=4, classes=3, dropout=0.2):
        super().__init__()
        widths = [width << i for i in range(levels)]
        self.down = nn.ModuleList(self.stage(below, own) for below, own in zip([3, *widths], widths))
        self.up = nn.ModuleList(self.stage(own + below, own) for own, below in zip(widths, widths[1:]))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def stage(inputs, outputs):
        def part(inputs):
            return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*part(inputs), *part(outputs))

    def forward(self, x):
        skips = []
        for level, stage in enumerate(self.down):
            x = stage(F.max_pool2d(x, 2) if level > 0 else x)
            skips.append(x)
        x = self.dropout(skips.pop())
        for stage in reversed(self.up):
            skip = skips.pop()
            x = F.interpolate(x, skip.shape[2:], mode="bilinear")
            x = stage(torch.cat([skip, x], 1))
        return self.head(x)


def resnet18():
    import torchvision
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def torchvision_net(name):
    def build():
        import torchvision
        return getattr(torchvision.models, name)(num_classes=10)
    return build


def sgd(parameters, lr=0.01):
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=5e-4, fused=True)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, fused=True)


# name: (network, inputs, labels, optimizer)
NETS = {
    "linear": (lambda: nn.Linear(784, 10), lambda: torch.randn(1, 784), lambda: torch.randint(10, (1,)),
               lambda parameters: sgd(parameters, 1e-4)),
    "mlp": (lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
            lambda: torch.randn(128, 784), lambda: torch.randint(10, (128,)), adam),
    "resnet18": (resnet18, lambda: torch.randn(32, 3, 32, 32), lambda: torch.randint(10, (32,)), sgd),
    **{name: (torchvision_net(full), lambda: torch.randn(8, 3, 224, 224), lambda: torch.randint(10, (8,)), sgd)
       for name, full in (("resnet50", "resnet50"), ("mobilenet_v3", "mobilenet_v3_large"),
                          ("efficientnet", "efficientnet_b0"), ("convnext", "convnext_tiny"))},
    "unet": (UNet, lambda: torch.randn(4, 3, 128, 128), lambda: torch.randint(3, (4, 128, 128)), adam),
    "gpt": (Gpt, lambda: torch.randint(65, (8, 256)), lambda: torch.randint(65, (8 * 256,)), adamw),
    "lstm": (Lstm, lambda: torch.randn(32, 64, 256), lambda: torch.randint(64, (32 * 64,)), adam),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net", choices=sorted(NETS))
    parser.add_argument("--precision", choices=["32", "bf16"], default="32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0, help="of measuring")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    build, inputs, labels, optimize = NETS[args.net]
    model, x, y = build().train(), inputs(), labels()
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    run = torch.compile(model) if args.compile else model
    optimizer = optimize(model.parameters())

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            loss = F.cross_entropy(run(x).float(), y)
        loss.backward()
        optimizer.step()
        if not math.isfinite(loss.item()):
            raise SystemExit("the loss is not finite")
        return 1e3 * (time.perf_counter() - begin)

    for _ in range(4):
        step()
    times, end = [], time.perf_counter() + args.seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 2000):
        times.append(step())
    print(json.dumps({"ms": statistics.median(times),
                      "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main()
