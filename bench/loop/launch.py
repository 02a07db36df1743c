"""From the command to the end of the first optimizer step: an MLP on MNIST (drawn noise of its size, so
that no download is needed), kiln beside PyTorch + Lightning + Hydra doing the same, in turn.

    PEER=python-with-torch-lightning-hydra python3 bench/loop/launch.py

Both read their config from files, take overrides, build the network and Adam, and train one batch of 128.
Time is from starting the process until the step is done. Medians of ROUNDS (default 7) paired rounds."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(f"{__file__}/../../..")
BUILD = os.path.join(ROOT, "build/release")
ROUNDS = int(os.environ.get("ROUNDS", "7"))
AIM = 1 / 20

KILN = [f"{BUILD}/train", "model=mlp", "model.hidden=[512,512]", "datamodule=noise", "datamodule.shape=[28,28,1]",
        "datamodule.count=60000", "datamodule.val_count=0", "batch_size=128", "optimizer=adam", "lr=0.001",
        "logger=csv", "callbacks.model_checkpoint.monitor=null", "trainer.max_steps=1", "trainer.log_every_n_steps=1",
        "test=false", "kiln.run.dir=run"]


def until(command, folder, mark):
    """Seconds until a line with `mark` comes, or, without one, until the end."""
    begin = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        for line in child.stdout:
            if mark is not None and mark in line:
                taken = time.perf_counter() - begin
                child.stdout.read()
                break
        else:
            taken = time.perf_counter() - begin
    if child.returncode != 0 or (mark is None) != ("train" in command[0]):
        raise SystemExit(f"{' '.join(command)}: ended with {child.returncode}")
    return taken


def kiln_s():
    """The whole run, its checkpoint and summary too: that is more than the first step."""
    with tempfile.TemporaryDirectory() as folder:
        return until(KILN, folder, None)


def peer_s():
    with tempfile.TemporaryDirectory() as folder:
        return until([os.environ["PEER"], f"{ROOT}/bench/loop/launch_peer.py", "lr=0.001", "trainer.max_steps=1",
                      f"hydra.run.dir={folder}/run"], folder, "first step")


def main():
    if "PEER" not in os.environ:
        times = [kiln_s() for _ in range(ROUNDS)]
        print(f"kiln {1e3 * statistics.median(times):.0f} ms; set PEER for the other side")
        return
    pairs = [(kiln_s(), peer_s()) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(values) for values in zip(*pairs))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"launch to first step, MLP, batch 128: kiln (its whole run) {1e3 * ours:.0f} ms   PyTorch + Lightning + Hydra "
          f"{1e3 * theirs:.0f} ms   1/{1 / ratio:.0f} (aim: under 1/{1 / AIM:.0f})")


if __name__ == "__main__":
    sys.exit(main())
