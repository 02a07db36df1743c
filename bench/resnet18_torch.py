"""PyTorch's side of the step-time comparison: ResNet-18 with the small stem,
batch 32 of 32×32 images, SGD with momentum, f32. Tries what PyTorch offers
(eager and compiled, both memory formats) and prints the median milliseconds of
each step's forward, backward and update; the last number is the best one."""
import argparse
import statistics
import time

import torch
import torchvision


def build(channels_last):
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = torch.nn.Identity()
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model.train()


def measure(model, images, labels, warmup, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    times = []
    for i in range(warmup + steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        if i >= warmup:
            times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    labels = torch.randint(10, (32,))
    best = None
    for compiled in [False] if args.no_compile else [False, True]:
        for channels_last in (False, True):
            name = f"{'compile' if compiled else 'eager'}, {'channels_last' if channels_last else 'contiguous'}"
            images = torch.randn(32, 3, 32, 32)
            if channels_last:
                images = images.to(memory_format=torch.channels_last)
            model = build(channels_last)
            try:
                ms = measure(torch.compile(model) if compiled else model, images, labels, 5, args.steps)
            except Exception as error:
                print(f"{name}: left out, {type(error).__name__}", flush=True)
                continue
            best = ms if best is None else min(best, ms)
            print(f"{name}: {ms:.2f}", flush=True)
    print(f"best {best:.2f}")


if __name__ == "__main__":
    main()
