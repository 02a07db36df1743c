"""Shared by the program tests: runs the built program in a scratch folder, as a user does. The first argument of a test
script is the build folder."""
import functools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import typing
import unittest
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(ROOT, "build/release"))
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
SHORT = os.environ.get("KILN_TEST_SHORT") == "1"  # sanitizer builds: fewer rounds

# Allow plugins and the like only in the tests, not for the user who runs them.
_state = tempfile.TemporaryDirectory(prefix="kiln-state-")
os.environ["XDG_STATE_HOME"] = _state.name

# A run of a few seconds even under sanitizers.
TINY = [
    "model=mlp", "model.hidden=[16]", "datamodule.train_count=256", "datamodule.val_count=64",
    "datamodule.test_count=64", "datamodule.batch_size=32", "trainer.max_epochs=2", "trainer.threads=1",
]

# What training in bf16 reports where the processor does not multiply it; tests expect it or not.
SLOW_BF16 = ("this processor does not multiply bf16: products are computed in f32 from values rounded to bf16, no faster than "
             "precision=32-true\n")


def build_plugin(name, folder, *flags, out=None):
    """tests/plugins/NAME.c, compiled as a user would, in `folder`."""
    path = os.path.join(folder, (out or name) + ".so")
    subprocess.run(["cc", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-fPIC", "-shared", "-I", os.path.join(ROOT, "src"),
                    *flags, "-o", path, os.path.join(ROOT, "tests/plugins", name + ".c")], check=True)
    return path


@functools.cache
def numpy_python():
    """A Python with numpy, for components in Python; None: there is none here."""
    for python in sys.executable, shutil.which("python3", path="/usr/bin"):
        if python and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            return python
    return None


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

    def wait_for(self, ready, process, seconds=120):
        """Until `ready()`, or the file `ready` is there; its value. The process must live until then."""
        end = time.monotonic() + seconds
        if isinstance(ready, str):
            path = self.path(ready)
            ready = lambda: os.path.exists(path)
        while not (value := ready()):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                self.fail(f"not seen: {process.communicate()}")
            time.sleep(0.005)
        return value

    def start(self, *args, program="train", **options):
        options = {"cwd": self.dir, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen([os.path.join(BUILD, program), *args], stdout=subprocess.PIPE,
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

    def refused(self, *args, says, status=1, program="train", **options):
        """The program must refuse this, with all these texts in its message, and
        leave no files."""
        before = sorted(os.listdir(self.dir))
        _, err = self.run_kiln(*args, program=program, status=status, **options)
        for text in says:
            self.assertIn(text, err)
        self.assertEqual(sorted(os.listdir(self.dir)), before, "files were left over")
        return err

    def run_folder(self):
        """The only run folder below outputs/."""
        root = self.path("outputs")
        runs = [os.path.join(root, day, time) for day in os.listdir(root)
                for time in os.listdir(os.path.join(root, day))]
        self.assertEqual(len(runs), 1, runs)
        return runs[0]


class Braked(Case):
    """Runs that last as long as the test wants, however fast the machine is. They get `self.braked`, which changes
    nothing but their pace: see tests/plugins/brake.c."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._plugins = tempfile.TemporaryDirectory(prefix="kiln-plugins-")
        cls._brake = build_plugin("brake", cls._plugins.name)

    @classmethod
    def tearDownClass(cls):
        cls._plugins.cleanup()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.braked = ["--plugin", self._brake, f"+callbacks.brake={{_target_: brake, file: '{self.path('pace')}'}}"]

    def brake(self, ms, after=0):
        """Each batch takes so many milliseconds more, once `after` training batches are done."""
        self.write("next_pace", f"{ms} {after}")
        os.replace(self.path("next_pace"), self.path("pace"))

    def hold(self, after):
        """Hold the run after `after` training batches, until the test releases it."""
        self.brake(10**9, after)

    def let_go(self):
        os.remove(self.path("pace"))


class Live(typing.NamedTuple):
    """Where a run is: the head of its live page, src/train/report/live_page.h."""
    phase: int
    in_group: int
    accumulate: int
    stopping: int
    epoch: int
    step: int
    batch: int
    batches: int

    FIT, SANITY, VALIDATE, TEST = 1, 2, 3, 4


def live(run):
    """Of the run in the folder `run`; None when it has not begun, or is over."""
    before = 8 + 4 * 4 + 5 * 8 + 1024  # magic, version, size, turn, saving and the run
    try:
        return Live._make(struct.unpack_from("<4i4q", read(os.path.join(run, ".kiln/live")), before))
    except (FileNotFoundError, struct.error):
        return None


def read(path, mode="rb"):
    with open(path, mode) as f:
        return f.read()


def read_json(path):
    with open(path) as f:
        return json.load(f)


def _png(width, height, colour_type, rows):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))


def png(width, height, colour=(200, 30, 90)):
    """An RGB PNG of one colour, as bytes."""
    return _png(width, height, 2, [bytes(colour) * width] * height)


def grey_png(width, height, rows):
    """A grey PNG of these rows of bytes."""
    return _png(width, height, 0, rows)


def png_pixels(path):
    """The rows of an 8-bit RGB PNG without interlacing, as (red, green, blue)."""
    with open(path, "rb") as f:
        data = f.read()
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        packed += data[at + 8:at + 8 + n] if kind == b"IDAT" else b""
        at += n + 12
    raw, rows, before = zlib.decompress(packed), [], bytearray(3 * width)
    for y in range(height):
        line = bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(3 * width):
            left, up = line[i - 3] if i >= 3 else 0, before[i]
            corner = before[i - 3] if i >= 3 else 0
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(guess - v))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth)[raw[y * (3 * width + 1)]]) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, 3 * width, 3)])
        before = line
    return rows


def main():
    unittest.main(verbosity=1)
