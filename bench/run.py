"""Step time and peak memory of kiln beside PyTorch's, in turn on the same machine.

    PEER=python-with-torch python3 bench/run.py [NAME...]      all, or those of ROWS

Prints medians over paired rounds (ROUNDS, default 3) and their ratio, next to the ratio
that is aimed at. kiln's step of `train` rows is the whole loop's (data read, step, logging),
as summary.json reports it; PyTorch's is the bare step on tensors in memory, the best of its
ways to run (found in a first round: eager, compiled, both memory formats of images)."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build/release")
PEER = os.environ.get("PEER")
THREADS = os.environ.get("THREADS", "2")
ROUNDS = int(os.environ.get("ROUNDS", "3"))

VISION = ["trainer.limit_val_batches=1", "datamodule=noise", "optimizer=sgd", "lr=0.01"]
RESNET18 = VISION + ["model=resnet", "model.stem=small", "batch_size=32", "datamodule.count=1280"]
LARGE = VISION + ["batch_size=8", "datamodule.shape=[224,224,3]", "datamodule.count=96", "datamodule.val_count=8"]
RESNET50 = LARGE + ["model=resnet", "model.depth=50", "model.stem=large"]
# A larger rate diverges on single samples of noise, and numbers without end or next to nothing are slow.
LINEAR = VISION + ["datamodule.shape=[28,28,1]", "model=linear", "batch_size=1", "datamodule.count=50000", "lr=0.0001"]
BF16 = ["trainer.precision=bf16-mixed"]

# name: (what, kiln's arguments or program, PyTorch's network, precision, aim)
ROWS = {
    "mlp": ("MLP 784-512-512-10, batch 128, Adam", "mlp", "mlp", "32", 0.6),
    "resnet18": ("ResNet-18 small stem, batch 32, 32x32, SGD", RESNET18, "resnet18", "32", 0.65),
    "resnet18-bf16": ("the same, bf16", RESNET18 + BF16, "resnet18", "bf16", 0.55),
    "resnet50": ("ResNet-50, batch 8, 224x224, SGD", RESNET50, "resnet50", "32", 0.9),
    "resnet50-bf16": ("the same, bf16", RESNET50 + BF16, "resnet50", "bf16", 0.7),
    "mobilenet_v3": ("MobileNet V3 large, batch 8, 224x224, SGD", LARGE + ["model=mobilenet_v3", "model.size=large"],
                     "mobilenet_v3", "32", None),
    "efficientnet": ("EfficientNet B0, batch 8, 224x224, SGD", LARGE + ["model=efficientnet"], "efficientnet", "32", None),
    "convnext": ("ConvNeXt tiny, batch 8, 224x224, SGD", LARGE + ["model=convnext"], "convnext", "32", None),
    "unet": ("U-Net, 32 channels, batch 4, 128x128, Adam", "unet", "unet", "32", 0.75),
    "unet-bf16": ("the same, bf16", "unet", "unet", "bf16", 0.8),
    "gpt": ("GPT 6x384, context 256, batch 8, AdamW", "gpt", "gpt", "32", 0.9),
    "gpt-bf16": ("the same, bf16", "gpt", "gpt", "bf16", 0.6),
    "lstm": ("LSTM 2x256, batch 32, length 64, Adam", "lstm", "lstm", "32", 0.75),
    "lstm-bf16": ("the same, bf16", "lstm", "lstm", "bf16", None),
    "linear": ("linear model, batch 1, whole loop", LINEAR, "linear", "32", None),
}


def run(command, cwd):
    """Standard output, and the most memory that was resident."""
    if not os.path.exists(command[0]):
        raise SystemExit(f"run.py: {command[0]} is missing; `make bench` builds it")
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, cwd=cwd, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            raise SystemExit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
        out.seek(0)
        return out.read(), 1024 * usage.ru_maxrss


def kiln(what, precision, folder):
    if isinstance(what, str):
        text, peak = run([f"{BUILD}/bench/{what}", "--threads", THREADS, "--precision", precision], folder)
        return json.loads(text)["ms"], peak
    target = tempfile.mkdtemp(dir=folder)
    os.rmdir(target)
    _, peak = run([f"{BUILD}/train", *what, f"kiln.run.dir={target}", f"trainer.threads={THREADS}", "test=false",
                   "trainer.max_epochs=1", "callbacks=none"], folder)
    with open(os.path.join(target, "summary.json")) as f:
        summary = json.load(f)
    return 1e3 / summary["samples_per_s"] if what is LINEAR else summary["step_ms_median"], peak


def torch(net, precision, way):
    text = subprocess.run([PEER, f"{ROOT}/bench/peer.py", net, "--precision", precision, "--threads", THREADS, *way],
                          check=True, capture_output=True, text=True).stdout
    result = json.loads(text.splitlines()[-1])
    return result["ms"], result["peak_bytes"]


def best_way(net, precision):
    ways = [[], ["--compile"]]
    if net not in ("mlp", "gpt", "lstm", "linear"):
        ways += [[*way, "--channels-last"] for way in ways]
    times = {}
    for way in ways:
        try:
            times[tuple(way)] = torch(net, precision, way)[0]
        except subprocess.CalledProcessError as error:
            print(f"  PyTorch {net} {' '.join(way)}: left out: {error.stderr.splitlines()[-1]}", flush=True)
    return min(times, key=times.get)


def row(name, folder):
    title, what, net, precision, aim = ROWS[name]
    way = best_way(net, precision) if PEER else ()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(kiln(what, precision, folder))
        if PEER:
            theirs.append(torch(net, precision, way))
    ms, peak = (statistics.median(values) for values in zip(*ours))
    text = f"{name:14s} {title:45s} kiln {ms:9.3f} ms {peak / 1e6:6.0f} MB"
    if theirs:
        ms, peak = (statistics.median(values) for values in zip(*theirs))
        time_ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs))
        peak_ratio = statistics.median(a[1] / b[1] for a, b in zip(ours, theirs))
        text += (f"   PyTorch ({' '.join(way) or 'eager'}) {ms:9.3f} ms {peak / 1e6:6.0f} MB"
                 f"   time {time_ratio:.2f}{f' (aim {aim})' if aim else ''}   memory {peak_ratio:.2f}")
    print(text, flush=True)


def start_ms(*args):
    times = []
    for _ in range(21):
        begin = time.perf_counter()
        subprocess.run([f"{BUILD}/train", *args], check=True, stdout=subprocess.DEVNULL)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def main():
    names = sys.argv[1:] or list(ROWS)
    for name in names:
        if name not in ROWS:
            raise SystemExit(f"run.py: no benchmark \"{name}\"; there are: {', '.join(ROWS)}")
    print(f"{THREADS} threads, {ROUNDS} paired rounds" + ("" if PEER else "; set PEER for PyTorch's side"))
    if not sys.argv[1:]:
        print(f"start: train --cfg job {start_ms('--cfg', 'job'):.2f} ms, train --help {start_ms('--help'):.2f} ms")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            row(name, folder)


if __name__ == "__main__":
    main()
