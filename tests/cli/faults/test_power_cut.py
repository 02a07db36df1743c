"""Power cuts: a run resumes from what had reached the disk, and produces identical bytes.

A run or sweep writes to an ext4 image on a loop device. At a random moment the program is stopped, and the image is
copied as it is: what the file system still held in memory is missing, as after a cut. The copy is mounted in the
image's place (its journal is replayed), and the run is resumed there, or started again if it had not begun.
KILN_CUTS is the number of cuts of each kind (make power-cut CUTS=50); KILN_TEST_SEED changes the times."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from kilntest import SHORT, Case, main, read

CUTS = int(os.environ.get("KILN_CUTS", 2 if SHORT else 4))
SIZE = 48 << 20
RUN = ["model=mlp", "model.hidden=[32]", "datamodule.train_count=512", "datamodule.val_count=64",
       "datamodule.test_count=64", "datamodule.batch_size=16", "trainer.max_epochs=12", "trainer.threads=1",
       "logger=[csv,jsonl]", "callbacks.model_checkpoint.every_n_train_steps=8"]
SWEEP = [*RUN, "trainer.max_epochs=3", "kiln.launcher.n_jobs=2", "seed=range(0,4)"]

WHY = "power cuts need root, loop devices and mkfs.ext4"


def can_mount():
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4") or not shutil.which("losetup"):
        return False
    return subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(can_mount(), WHY)
class PowerCut(Case):
    def setUp(self):
        super().setUp()
        self.disk = self.path("disk")
        os.mkdir(self.disk)
        self.image, self.device = None, None

    def tearDown(self):
        self.umount()
        super().tearDown()

    # ---- the disk ----------------------------------------------------------------------------

    def make(self):
        self.image = self.path("image")
        with open(self.image, "wb") as f:
            f.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", self.image], check=True)
        self.mount()

    def mount(self):
        done = subprocess.run(["losetup", "--find", "--show", self.image], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(f"no loop device: {done.stderr}")
        self.device = done.stdout.strip()
        done = subprocess.run(["mount", "-t", "ext4", self.device, self.disk], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            self.umount()
            self.skipTest(f"nothing can be mounted here: {done.stderr}")

    def umount(self):
        if self.device is None:
            return
        # A process that was just killed may hold it a moment longer.
        for _ in range(100):
            if subprocess.run(["umount", self.disk], capture_output=True, check=False).returncode in (0, 32) and \
                    not os.path.ismount(self.disk):
                break
            time.sleep(0.05)
        subprocess.run(["losetup", "--detach", self.device], check=True)
        self.device = None

    def writes(self):
        """Writes of the device that are done, and requests in flight."""
        fields = read(f"/sys/block/{os.path.basename(self.device)}/stat", "r").split()
        return int(fields[4]), int(fields[8])

    def copy(self):
        """The image at one moment: between two looks at the device nothing was written."""
        for _ in range(100):
            before = self.writes()
            subprocess.run(["cp", "--sparse=always", self.image, self.path("copy")], check=True)
            if before == self.writes() and before[1] == 0:
                return
        self.fail("the disk never rests")

    def cut(self, process):
        """The power fails; the disk comes back with what it had."""
        pids = [process.pid, *self.children(process.pid)]
        for pid in pids:
            self.signal(pid, signal.SIGSTOP)
        self.copy()
        for pid in pids:
            self.signal(pid, signal.SIGKILL)
        process.communicate()
        self.umount()
        os.replace(self.path("copy"), self.image)
        self.mount()

    def children(self, pid):
        try:
            return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children", "r").split()]
        except OSError:
            return []

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    # ---- what is there afterwards -------------------------------------------------------------

    def contents(self, run):
        """Checkpoints and rows, times aside."""
        found = {}
        for folder, _, names in os.walk(os.path.join(run, "checkpoints")):
            found.update({os.path.relpath(os.path.join(folder, name), run): read(os.path.join(folder, name))
                          for name in names})
        with open(os.path.join(run, "metrics.csv"), newline="") as f:
            found["metrics.csv"] = [{k: v for k, v in row.items() if k != "wall_time"} for row in csv.DictReader(f)]
        found["plots"] = sorted(os.listdir(os.path.join(run, "plots")))
        return found

    def assert_same(self, a, b):
        a, b = self.contents(a), self.contents(b)
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            self.assertTrue(a[name] == b[name], f"{name} differs")

    def cuts(self, args, again, begun, jobs):
        """`again`: how it is resumed where the file `begun` is; else it is started again."""
        rng = random.Random(os.environ.get("KILN_TEST_SEED", "15"))
        whole = self.path("whole")
        os.mkdir(whole)
        start = time.monotonic()
        self.run_kiln(*args, cwd=whole)
        seconds = time.monotonic() - start
        done = resumed = 0
        for turn in range(20 * CUTS):
            if done == CUTS:
                break
            self.make()
            process = self.start(*args, cwd=self.disk)
            # A third of the cuts come early, where all is new.
            time.sleep(rng.uniform(0, seconds * (0.3 if turn % 3 == 0 else 1.0)))
            self.assertIn(process.poll(), (None, 0))
            if process.poll() is not None:
                process.communicate()
                self.umount()
                continue
            self.cut(process)
            path = os.path.join(self.disk, begun)
            has_begun = os.path.exists(path) and b"\n" in read(path)
            self.run_kiln(*(again if has_begun else args), cwd=self.disk)
            for job in jobs:
                self.assert_same(os.path.join(whole, job), os.path.join(self.disk, job))
            self.umount()
            done += 1
            resumed += has_begun
        self.assertEqual(done, CUTS, "the program ends before the power does")
        print(f"{done} power cuts, {resumed} resumed, {done - resumed} before it began: all equal", flush=True)

    def test_run(self):
        self.cuts([*RUN, "kiln.run.dir=run"], ["resume=run"], "run/.kiln/config.yaml", ["run"])

    def test_sweep(self):
        self.cuts(["-m", *SWEEP, "kiln.sweep.dir=sweep"], ["-m", "--resume", "sweep"], "sweep/journal.jsonl",
                  [f"sweep/{job}" for job in range(4)])


if __name__ == "__main__":
    if not can_mount():
        print(f"skip: {WHY}")
    main()
