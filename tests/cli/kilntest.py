"""What the whole-program tests share: running the built program in a folder of
its own, as a user does. The first argument of a test script is the build folder."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(ROOT, "build/release"))
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
SHORT = os.environ.get("KILN_TEST_SHORT") == "1"  # sanitizer builds: fewer rounds

# A run of a few seconds even under sanitizers.
TINY = [
    "model=mlp", "model.hidden=[16]", "datamodule.train_count=256", "datamodule.val_count=64",
    "datamodule.test_count=64", "datamodule.batch_size=32", "trainer.max_epochs=2", "trainer.threads=1",
]


class Case(unittest.TestCase):
    """A test in an empty folder, which is removed afterwards."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-test-")
        self.dir = self._folder.name

    def tearDown(self):
        self._folder.cleanup()

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(data, bytes) else "w") as f:
            f.write(data)
        return path

    def start(self, *args, program="train", **options):
        return subprocess.Popen([os.path.join(BUILD, program), *args], cwd=self.dir,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def needs_tensorboard(self):
        process = self.start(*TINY, "logger=tensorboard", "--plan")
        if "built without libprotobuf-c" in process.communicate()[1]:
            self.skipTest("built without libprotobuf-c")

    def run_kiln(self, *args, program="train", status=0, timeout=300, **options):
        """Run to the end; check the exit status; return (stdout, stderr)."""
        process = self.start(*args, program=program, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"{program} {' '.join(args)}: still running after {timeout} s")
        self.assertEqual(process.returncode, status,
                         f"{program} {' '.join(args)}\n--- stdout\n{out}\n--- stderr\n{err}")
        return out, err

    def refused(self, *args, says, status=1, program="train"):
        """The program must refuse this, with all these texts in its message, and
        leave nothing behind."""
        before = sorted(os.listdir(self.dir))
        _, err = self.run_kiln(*args, program=program, status=status)
        for text in says:
            self.assertIn(text, err)
        self.assertEqual(sorted(os.listdir(self.dir)), before, "something was left behind")
        return err

    def run_folder(self):
        """The only run folder below outputs/."""
        root = self.path("outputs")
        runs = [os.path.join(root, day, time) for day in os.listdir(root)
                for time in os.listdir(os.path.join(root, day))]
        self.assertEqual(len(runs), 1, runs)
        return runs[0]


def read(path, mode="rb"):
    with open(path, mode) as f:
        return f.read()


def read_json(path):
    with open(path) as f:
        return json.load(f)


def png(width, height, colour=(200, 30, 90)):
    """An RGB PNG of one colour, as bytes."""
    row = b"\0" + bytes(colour) * width

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b""))


def main():
    unittest.main(verbosity=1)
