#!/usr/bin/env python3
"""The promise of resuming on three networks: KILLS in all (200), every one followed by a resume to the same bytes.

    python3 tests/verify_resume.py BUILD [KILLS [NAME...]]

Takes MNIST and the images of ../shared/data where they are, drawn digits elsewhere."""
import os
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(os.path.dirname(ROOT), "shared/data")

# Each takes some seconds, validates twice, ends groups of batches within and at the end of epochs, saves often.
SHORT = ["trainer.threads=2", "trainer.max_epochs=2", "trainer.log_every_n_steps=1", "scheduler=cosine",
         "trainer.accumulate_grad_batches=4", "callbacks.model_checkpoint.every_n_train_steps=2"]


def mlp():
    mnist = os.path.join(DATA, "mnist")
    data = (["datamodule=mnist", f"datamodule.root={mnist}", "datamodule.shift=2"] if os.path.isdir(mnist)
            else ["datamodule=digits"])
    return [*data, *SHORT, "model=mlp", "model.hidden=[128]", "model.dropout=0.2", "optimizer=adamw", "callbacks=ema",
            "trainer.limit_train_batches=90", "trainer.limit_val_batches=20", "trainer.limit_test_batches=20"]


def resnet(folder):
    images = os.path.join(DATA, "cifar10-subset/cifar10-subset.tar")
    data = ["datamodule=digits"]
    if os.path.exists(images):
        with tarfile.open(images) as tar:
            tar.extractall(folder)
        root = next(path for path, folders, _ in os.walk(folder) if "train" in folders)
        data = ["datamodule=cifar10", f"datamodule.root={root}"]
    return [*data, *SHORT, "model=resnet", "model.depth=18", "model.stem=small", "lr=0.02", "batch_size=4",
            "trainer.limit_train_batches=7", "trainer.limit_val_batches=2", "trainer.limit_test_batches=2",
            "callbacks.model_checkpoint.every_n_train_steps=1"]


def lstm():
    return ["datamodule=digits", *SHORT, "model=lstm", "model.hidden=64", "model.layers=2", "model.dropout=0.1",
            "optimizer=adam", "lr=0.002", "trainer.limit_train_batches=50", "trainer.limit_val_batches=15",
            "trainer.limit_test_batches=15"]


def main():
    build, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    wanted = sys.argv[3:]  # names; none: all
    failed = 0
    with tempfile.TemporaryDirectory(prefix="kiln-verify-") as folder:
        networks = [("MLP", mlp()), ("ResNet-18", resnet(folder)), ("LSTM", lstm())]
        for i, (name, args) in enumerate(networks):
            n = kills // len(networks) + (i < kills % len(networks))
            if wanted and name not in wanted:
                continue
            print(f"== {name}: kiln verify-resume -n {n} {' '.join(args)}", flush=True)
            failed += subprocess.call([os.path.join(build, "kiln"), "verify-resume", "-n", str(n), *args]) != 0
    sys.exit(1 if failed else 0)


main()
