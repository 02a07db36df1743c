"""Shared by the tests of components in Python: a Python with numpy, modules of classes, the checkpoint of a run."""
import os
import unittest

from kilntest import Case, numpy_python, read


PYTHON = numpy_python()
needs_numpy = unittest.skipUnless(PYTHON, "no Python here has numpy (apt install python3-numpy)")

# Rows of a CSV file, read with the csv module: a split per file, no numpy.
TABLE = '''
import csv
from typing import Literal


class Table:
    """Rows of CSV files.

    Args:
        train: the training file
        val: the validation file
        scale: factor on each number
    """
    classes = ["0", "1"]

    def __init__(self, split: Literal["train", "val"], train: str, val: str, scale: float = 1.0):
        with open(train if split == "train" else val) as f:
            self.rows = [(float(r["x"]), float(r["y"]), int(r["label"])) for r in csv.DictReader(f)]
        self.scale = scale

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        x, y, label = self.rows[i]
        return {"x": [x * self.scale, y * self.scale], "label": label}
'''
SHORT_RUN = ["task=classification", "model=mlp", "model.hidden=[16]", "trainer.threads=1", "trainer.max_epochs=2"]


class PythonCase(Case):
    def setUp(self):
        super().setUp()
        if PYTHON:
            os.environ["KILN_PYTHON"] = PYTHON
        self.write("mydata.py", TABLE)
        for name, first in ("train.csv", 0), ("val.csv", 400):
            rows = "".join(f"{(i * 37 % 101) / 50 - 1},{(i * 53 % 97) / 48 - 1},{i * 7 % 3 % 2}\n"
                           for i in range(first, first + 400 - first // 2))
            self.write(name, "x,y,label\n" + rows)
        self.table = ["datamodule=python:mydata.Table", "datamodule.train=train.csv", "datamodule.val=val.csv"]

    def fit(self, run, *args, **options):
        """A run in the folder `run`; what it printed."""
        return "".join(self.run_kiln(*SHORT_RUN, f"kiln.run.dir={run}", *args, **options))

    def weights(self, run):
        return read(self.path(run, "checkpoints/last/model.safetensors"))

    def hosts(self, name="kiln_host"):
        """The running Python hosts of this test, by their folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.path.realpath(f"/proc/{pid}/cwd") == os.path.realpath(self.dir) and \
                        name.encode() in read(f"/proc/{pid}/cmdline"):
                    found.append(int(pid))
            except OSError:
                pass
        return found
