"""A study of 20 small trainings on MNIST with a median pruner: kiln beside Optuna with PyTorch Lightning, in turn.

    PEER=python-with-optuna-lightning python3 bench/search/study.py MNIST [ROUNDS]

MNIST is a folder with its four idx files. Each trial trains a multilayer perceptron of 64 units on 20,000 images, 5 epochs
of batches of 128 with Adam, with one thread, validates it on 5,000 after each epoch, and may be pruned; the learning rate and the weight decay
are searched by TPE. Printed are seconds of the clock and of the processor for the whole study, the ratio of each, and the best accuracy."""
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(f"{__file__}/../../..")
KILN = ["task=vision", "datamodule=mnist", "model=mlp", "model.hidden=[64]", "datamodule.shift=0", "datamodule.val_count=5000",
        "trainer.limit_train_batches=157", "batch_size=128", "optimizer=adam", "scheduler=constant", "trainer.max_epochs=5",
        "trainer.threads=1", "test=false", "callbacks=default", "logger=csv", "kiln/sweeper=tpe", "kiln.sweeper.n_trials=20",
        "kiln/pruner=median", "lr=tag(log,interval(1e-4,1e-1))", "optimizer.weight_decay=tag(log,interval(1e-6,1e-2))"]


def run(command, folder):
    """Seconds of the clock and of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.monotonic() - began, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime), done.stdout


def kiln(mnist, seed):
    with tempfile.TemporaryDirectory() as folder:
        times, _ = run([f"{ROOT}/build/release/train", "-m", *KILN, f"datamodule.root={mnist}", f"kiln.sweeper.seed={seed}",
                        "kiln.sweep.dir=s"], folder)
        with open(f"{folder}/s/results.csv", newline="") as f:
            rows = list(csv.DictReader(f))
        return *times, max(float(row["val/accuracy_best"]) for row in rows if row["status"] == "ok"), \
            sum(row["status"] == "stopped" for row in rows)


def peer(mnist, seed):
    with tempfile.TemporaryDirectory() as folder:
        times, out = run([os.environ["PEER"], f"{ROOT}/bench/search/study_lightning.py", mnist, str(seed)], folder)
        best, stopped = out.split()[-2:]
        return *times, float(best), int(stopped)


def main():
    mnist, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    ratios = []
    for seed in range(1, rounds + 1):
        ours, theirs = kiln(mnist, seed), peer(mnist, seed)
        ratios.append((ours[0] / theirs[0], ours[1] / theirs[1]))
        for name, (clock, processor, best, stopped) in ("kiln", ours), ("Optuna and Lightning", theirs):
            print(f"seed {seed}  {name:20}  {clock:6.1f} s, processor {processor:6.1f} s, best {best:.4f}, {stopped} pruned")
    print("ratios: clock %.2f, processor %.2f" % tuple(statistics.median(column) for column in zip(*ratios)))


if __name__ == "__main__":
    main()
