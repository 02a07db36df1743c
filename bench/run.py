"""Step times and start-up of kiln beside PyTorch's, in turn on the same machine.

Prints the median of each and the ratio. kiln's step is the whole loop's (data
read, step, logging), as summary.json reports it; PyTorch's is the bare step on
tensors in memory."""
import json
import os
import random
import statistics
import struct
import subprocess
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRAIN = os.path.join(ROOT, "build/release/train")
PEER = os.environ.get("PEER")
THREADS = os.environ.get("THREADS", "2")
ROUNDS = int(os.environ.get("ROUNDS", "3"))


def png(path, size, noise):
    rows = b"".join(b"\0" + noise.randbytes(3 * size) for _ in range(size))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def noise_folder(folder):
    """Ten classes of random 32×32 images: speed does not depend on what they show."""
    noise = random.Random(1)
    for k in range(10):
        os.makedirs(f"{folder}/train/{k}")
        os.makedirs(f"{folder}/val/{k}")
        for i in range(128):
            png(f"{folder}/train/{k}/{i}.png", 32, noise)
        png(f"{folder}/val/{k}/0.png", 32, noise)


def noise_idx(folder):
    """Random images in MNIST's format."""
    noise = random.Random(2)
    os.makedirs(folder)
    for name, n in [("train", 12800), ("t10k", 10)]:
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, n, 28, 28) + noise.randbytes(784 * n))
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">II", 0x801, n) + bytes(i % 10 for i in range(n)))


def kiln_step(folder, *args):
    run = tempfile.mkdtemp(dir=folder)
    os.rmdir(run)
    subprocess.run([TRAIN, *args, f"kiln.run.dir={run}", f"trainer.threads={THREADS}", "test=false",
                    "trainer.limit_val_batches=1", "trainer.max_epochs=1"],
                   check=True, cwd=folder, stdout=subprocess.DEVNULL)
    with open(os.path.join(run, "summary.json")) as f:
        return json.load(f)["step_ms_median"]


def torch_step(script):
    out = subprocess.run([PEER, os.path.join(ROOT, "bench", script), "--threads", THREADS], check=True,
                         capture_output=True, text=True).stdout
    return float(out.split()[-1])


def start_ms(*args):
    times = []
    for _ in range(21):
        begin = time.perf_counter()
        subprocess.run([TRAIN, *args], check=True, stdout=subprocess.DEVNULL)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def row(name, ours, theirs):
    text = f"{name:44s} kiln {statistics.median(ours):9.2f} ms"
    if theirs:
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        text += f"   PyTorch {statistics.median(theirs):9.2f} ms   ratio {ratio:.2f}"
    print(text, flush=True)


def paired(name, folder, args, script):
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(kiln_step(folder, *args))
        if PEER:
            theirs.append(torch_step(script))
    row(name, ours, theirs)


def main():
    print(f"{THREADS} threads, {ROUNDS} paired rounds" + ("" if PEER else "; set PEER for PyTorch's side"))
    row("start: train --cfg job", [start_ms("--cfg", "job")], [])
    row("start: train --help", [start_ms("--help")], [])
    with tempfile.TemporaryDirectory() as folder:
        noise_folder(f"{folder}/noise")
        noise_idx(f"{folder}/idx")
        paired("MLP 784-512-512-10, batch 128, Adam, f32", folder,
               ["model=mlp", "model.hidden=[512,512]", "optimizer=adam", "lr=0.001", "datamodule=mnist",
                f"datamodule.root={folder}/idx", "datamodule.val_count=100", "batch_size=128"],
               "mlp_torch.py")
        paired("ResNet-18, batch 32, 32x32, SGD, f32", folder,
               ["model=resnet", "model.stem=small", "optimizer=sgd", "lr=0.01", "datamodule=image_folder",
                f"datamodule.root={folder}/noise", "batch_size=32"], "resnet18_torch.py")


if __name__ == "__main__":
    main()
