"""PyTorch's side of the step-time comparison: MLP 784-512-512-10, batch 128,
Adam, f32. Tries eager, eager with the fused Adam, and compiled, and prints the
median milliseconds of each; the last number is the best one."""
import argparse
import statistics
import time

import torch
from torch import nn


def measure(model, optimizer, images, labels, warmup, steps):
    times = []
    for i in range(warmup + steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        if i >= warmup:
            times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    images, labels = torch.randn(128, 784), torch.randint(10, (128,))
    best = None
    for name in ["eager", "fused"] + ([] if args.no_compile else ["compile"]):
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                              nn.Linear(512, 10))
        try:
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=name != "eager")
            if name == "compile":
                model = torch.compile(model)
            ms = measure(model, optimizer, images, labels, 20, args.steps)
        except Exception as error:
            print(f"{name}: left out, {type(error).__name__}", flush=True)
            continue
        best = ms if best is None else min(best, ms)
        print(f"{name}: {ms:.3f}", flush=True)
    print(f"best {best:.3f}")


if __name__ == "__main__":
    main()
