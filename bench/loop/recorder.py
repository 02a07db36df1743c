"""What the flight recorder costs a training step: runs with and without it in turn, in pairs.

    python3 bench/loop/recorder.py [NAME...]

Prints the medians of the steps' medians and the median of the pairs' ratios; the aim is below 1.01.
The loop's whole time is compared, too: hooks are outside of the step."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(f"{__file__}/../../..")
BUILD = os.path.join(ROOT, "build/release")
THREADS = os.environ.get("THREADS", "2")
ROUNDS = int(os.environ.get("ROUNDS", "11"))
NOISE = ["datamodule=noise", "trainer.limit_val_batches=0", "test=false", "trainer.max_epochs=1", f"trainer.threads={THREADS}",
         "logger=csv"]
ROWS = {
    "mlp": ["model=mlp", "model.hidden=[512,512]", "datamodule.shape=[28,28,1]", "datamodule.count=128000",
            "batch_size=128", "optimizer=adam", "lr=0.001"],
    "mlp-sgd": ["model=mlp", "model.hidden=[512,512]", "datamodule.shape=[28,28,1]", "datamodule.count=128000",
                "batch_size=128", "optimizer=sgd", "lr=0.01"],
    "resnet18": ["model=resnet", "model.stem=small", "batch_size=32", "datamodule.count=640", "optimizer=sgd", "lr=0.01"],
}


def run(row, recorder, folder):
    target = tempfile.mkdtemp(dir=folder)
    os.rmdir(target)
    callbacks = ["callbacks=none", *(["+callbacks.flight_recorder=flight_recorder"] if recorder else [])]
    subprocess.run([f"{BUILD}/train", *NOISE, *ROWS[row], *callbacks, f"kiln.run.dir={target}"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(os.path.join(target, "summary.json")) as f:
        summary = json.load(f)
    return summary["step_ms_median"], 1e3 / summary["samples_per_s"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        for row in sys.argv[1:] or ROWS:
            pairs = [(run(row, i % 2 == 1, folder), run(row, i % 2 == 0, folder)) for i in range(ROUNDS)]
            pairs = [(a, b) if i % 2 == 0 else (b, a) for i, (a, b) in enumerate(pairs)]  # (without, with)
            step, loop = ([b[i] / a[i] for a, b in pairs] for i in (0, 1))
            print(f"{row:10s} step {statistics.median(a[0] for a, _ in pairs):8.3f} ms, with it "
                  f"{statistics.median(b[0] for _, b in pairs):8.3f} ms: {statistics.median(step):.4f}; "
                  f"whole loop {statistics.median(loop):.4f}   (aim: below 1.01)", flush=True)


if __name__ == "__main__":
    main()
