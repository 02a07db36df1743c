"""Shared by the tests of the Python package: short runs in a scratch folder."""
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KILN_BUILD", ROOT / "build/release"))

TINY = ["model=mlp", "model.hidden=[16]", "datamodule.train_count=256", "datamodule.val_count=64", "datamodule.test_count=64",
        "datamodule.batch_size=32", "trainer.max_epochs=2", "trainer.threads=1"]

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would the programs that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Case(unittest.TestCase):
    """A test in an empty folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kiln-python-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.dir = pathlib.Path(folder.name).resolve()
        os.chdir(self.dir)

    def train(self, *args):
        """The command, beside the package."""
        done = subprocess.run([BUILD / "train", *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_same_files(self, a, b, names=("model.safetensors", "trainer.safetensors", "config.yaml", "state.json")):
        for name in names:
            self.assertEqual((pathlib.Path(a) / name).read_bytes(), (pathlib.Path(b) / name).read_bytes(), name)
