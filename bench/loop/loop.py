"""What the loop costs a step: a linear model with batch 1, so that nothing else takes long, with the
csv logger, checkpoints and the progress bar in a pipe. kiln beside PyTorch Lightning, in turn. Its
784 x 10 weights are a part of that; with two weights what is left is the loop.

    PEER=python-with-lightning python3 bench/loop/loop.py [--kiln-only]

The time of a step is the difference of two runs of different length, over the difference of their
steps: what starting and ending take is not in it. Medians of ROUNDS (default 5) paired rounds, and
the median of the rounds' ratios."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(f"{__file__}/../../..")
BUILD = os.path.join(ROOT, "build/release")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
KILN_STEPS = (20000, 220000)
LIGHTNING_STEPS = (300, 1300)
AIM_US = 10.0

KILN = ["task=vision", "model=linear", "datamodule=noise", "datamodule.shape=[28,28,1]", "datamodule.val_count=0",
        "batch_size=1", "optimizer=sgd", "lr=0.0001", "scheduler=constant", "logger=csv", "trainer.max_epochs=1",
        "trainer.threads=1", "test=false"]
CALLBACKS = {
    "no callbacks": ["callbacks=none"],
    "the default callbacks": ["callbacks=default", "callbacks.model_checkpoint.monitor=null"],
    "the same, two weights": ["callbacks=default", "callbacks.model_checkpoint.monitor=null", "datamodule.shape=[1,1,1]",
                              "datamodule.classes=2"],
    "and flight_recorder": ["callbacks=[default,flight_recorder]", "callbacks.model_checkpoint.monitor=null"],
}


def kiln_seconds(args, steps, folder):
    """Of the training loop, as the run's summary has it."""
    target = tempfile.mkdtemp(dir=folder)
    os.rmdir(target)
    subprocess.run([f"{BUILD}/train", *KILN, *args, f"datamodule.count={steps}", f"kiln.run.dir={target}"], check=True,
                   stdout=subprocess.PIPE)
    with open(os.path.join(target, "summary.json")) as f:
        return json.load(f)["wall_s"]


def kiln_us(args, folder):
    few, many = KILN_STEPS
    return 1e6 * (kiln_seconds(args, many, folder) - kiln_seconds(args, few, folder)) / (many - few)


def lightning_us(folder):
    out = subprocess.run([os.environ["PEER"], f"{ROOT}/bench/loop/loop_lightning.py", *map(str, LIGHTNING_STEPS)], check=True,
                         cwd=folder, capture_output=True, text=True).stdout
    return float(out.split()[-1])


def main():
    peer = "PEER" in os.environ and "--kiln-only" not in sys.argv
    times = {name: [] for name in CALLBACKS}
    theirs = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, args in CALLBACKS.items():
                times[name].append(kiln_us(args, folder))
            if peer:
                theirs.append(lightning_us(folder))
    for name, ours in times.items():
        print(f"{name:22s} kiln {statistics.median(ours):7.2f} us a step, least {min(ours):.2f}   (aim: at most {AIM_US:.0f})")
    if theirs:
        ratio = statistics.median(b / a for a, b in zip(times["the default callbacks"], theirs))
        print(f"{'the default callbacks':22s} Lightning {statistics.median(theirs):5.0f} us a step: {ratio:.0f} times")


if __name__ == "__main__":
    main()
