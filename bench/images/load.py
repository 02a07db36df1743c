"""Images per second from a folder of JPEG or PNG files to normalized batches of random 224 x 224 crops: kiln's loader and
torchvision's transforms with PyTorch's DataLoader, two workers each, in turn.

    make build/release/bench/images/load
    PEER=python python3 bench/images/load.py [jpeg] [png]     # PEER has torch and torchvision

Draws 2,000 images of about 400 x 300 pixels into a temporary folder, with the frequencies of photos."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
LOAD = BENCH.parents[1] / "build/release/bench/images/load"
PEER = os.environ.get("PEER", sys.executable)
COUNT, WORKERS, EPOCHS, ROUNDS = 2000, 2, 2, int(os.environ.get("ROUNDS", "3"))

DRAW = """
import pathlib, sys
import numpy as np
from PIL import Image
folder, kind, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(1)
for i in range(count):
    h, w = int(rng.integers(280, 320)), int(rng.integers(370, 430))
    fy, fx = np.meshgrid(np.fft.fftfreq(h), np.fft.fftfreq(w), indexing="ij")
    slope = 1 / np.maximum(np.hypot(fy, fx), 1 / w) ** 1.2
    planes = [np.fft.ifft2(np.fft.fft2(rng.standard_normal((h, w))) * slope).real for _ in range(2)]
    planes = [(p - p.mean()) / p.std() for p in planes]
    image = np.stack([128 + 45 * planes[0] + 12 * k * planes[1] for k in (-1, 0, 1)], -1)
    path = folder / "train" / f"class{i % 10}" / f"{i:05}.{kind.replace('jpeg', 'jpg')}"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(image, 0, 255).astype(np.uint8)).save(path, **({"quality": 85} if kind == "jpeg" else {}))
"""

LOADER = """
import sys, time
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2
folder, workers, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
transform = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.ToDtype(torch.float32, scale=True),
                        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
data = ImageFolder(folder + "/train", transform, loader=lambda path: decode_image(read_file(path), ImageReadMode.RGB))
loader = DataLoader(data, 64, shuffle=True, num_workers=workers, persistent_workers=True)
best = 0
for epoch in range(epochs):
    start = time.perf_counter()
    images = sum(len(batch) for batch, _ in loader)
    best = max(best, images / (time.perf_counter() - start))
print(f"{best:.0f}")
"""


def run(*command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, env=env).stdout


def compare(kind, folder):
    run(PEER, "-c", DRAW, folder, kind, COUNT)
    size = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*.*")) / COUNT / 1024
    if kind == "jpeg":
        print(f"{kind}: libjpeg-turbo alone {int(run(LOAD, '--decode', folder, WORKERS, EPOCHS))} images/s ({size:.0f} KiB each)")
    pairs = [(float(run(LOAD, folder, WORKERS, EPOCHS)), float(run(PEER, "-c", LOADER, folder, WORKERS, EPOCHS)))
             for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{kind}: kiln {ours:.0f} images/s, torchvision {theirs:.0f} images/s: {ratio:.2f} times as many ({size:.0f} KiB each)")


def main():
    for kind in sys.argv[1:] or ["jpeg", "png"]:
        with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
            compare(kind, folder)


main()
