"""Jobs of a sweep that read the same data set it up once, and end as if each had set it up itself."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import signal
import tempfile
import time

from kilntest import build_plugin, grey_png, main, numpy_python, read
from sweeptest import SweepCase

# prepared.c: its set-up fails where another one was before.
ONCE = ["task=exact", "datamodule=prepared", "datamodule.file=numbers", "trainer.max_epochs=3", "trainer.threads=1"]
RATE = "task.optimizer.lr="
# A table that takes long enough to read.
TABLE = ["task=regression", "model=mlp", "model.hidden=[16]", "datamodule=table", "datamodule.files.train=[rows.csv]",
         "datamodule.target=y", "trainer.limit_train_batches=8", "trainer.limit_val_batches=8", "trainer.max_epochs=2",
         "trainer.threads=1"]


class SharedData(SweepCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._folder_of_plugins = tempfile.TemporaryDirectory(prefix="kiln-plugins-")
        folder = cls._folder_of_plugins.name
        cls.exact = ["--plugin", build_plugin("exact", folder)]
        cls.shareable = ["--plugin", build_plugin("prepared", folder, "-DSHAREABLE", out="shareable")]
        cls.own = ["--plugin", build_plugin("prepared", folder)]

    @classmethod
    def tearDownClass(cls):
        cls._folder_of_plugins.cleanup()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        rows = "".join(f"{i % 97 / 97},{i % 89 / 89},{i % 83 / 83}\n" for i in range(2000))
        self.write("rows.csv", "a,b,y\n" + 200 * rows)

    def sweep(self, *args, folder="s", status=0):
        return self.run_kiln("-m", *args, f"kiln.sweep.dir={folder}", status=status)

    def test_once(self):
        for n_jobs in 1, 3:
            self.sweep(*self.exact, *self.shareable, *ONCE, RATE + "range(1,7)", f"kiln.launcher.n_jobs={n_jobs}",
                       folder=f"s{n_jobs}")
            self.assertEqual(self.statuses(f"s{n_jobs}"), ["ok"] * 6)
            os.remove(self.path("numbers"))

    def test_not_declared(self):
        self.sweep(*self.exact, *self.own, *ONCE, RATE + "1,2,3", status=1)
        self.assertEqual(self.statuses(), ["ok", "failed", "failed"])
        self.assertIn("is there before it is prepared", read(self.path("s/1/train.log"), "r"))

    def test_bytes(self):
        """Also of jobs with other data in between, and of one that resumes."""
        self.sweep(*TABLE, "lr=0.1,0.01", "seed=1,2", "kiln.launcher.n_jobs=2")
        for job, (lr, seed) in enumerate([(0.1, 1), (0.1, 2), (0.01, 1), (0.01, 2)]):
            self.run_kiln(*TABLE, f"lr={lr}", f"seed={seed}", f"kiln.run.dir=run{job}")
            for name in "model.safetensors", "trainer.safetensors", "state.json":
                self.assertEqual(read(self.path(f"s/{job}/checkpoints/last", name)),
                                 read(self.path(f"run{job}/checkpoints/last", name)), (job, name))

    def test_mistake_in_the_data(self):
        """Each job says it."""
        self.write("numbers", "")
        self.sweep(*self.exact, *self.shareable, *ONCE, RATE + "1,2,3", "kiln.launcher.n_jobs=2", status=1)
        for job in range(3):
            self.assertIn("is there before it is prepared", read(self.path(f"s/{job}/train.log"), "r"))

    def children(self, process):
        return {int(pid) for pid in read(f"/proc/{process.pid}/task/{process.pid}/children", "r").split()}

    def jobs(self):
        """Processes of jobs, from the journal."""
        with open(self.path("s/journal.jsonl")) as file:
            lines = [json.loads(line) for line in file.read().split("\n")[:-1]]
        return {line["pid"] for line in lines if line["event"] == "started"}

    def hold_sweep(self, started):
        """A sweep, two jobs at a time, whose running jobs are held, and its data process."""
        self.hold(1)
        process = self.start("-m", *self.braked, *TABLE, "lr=0.1,0.2,0.3,0.4", "kiln.launcher.n_jobs=2", "kiln.sweep.dir=s")
        self.wait_for(lambda: os.path.exists(self.path("s/journal.jsonl")) and len(self.jobs()) == started, process)
        others = set()
        self.wait_for(lambda: others.update(self.children(process) - self.jobs()) or others, process)
        return process, others.pop()

    def test_data_process_dies(self):
        """The next job sets up the data again."""
        process, data = self.hold_sweep(2)
        os.kill(data, signal.SIGKILL)
        self.let_go()
        process.communicate(timeout=120)
        self.assertEqual((process.returncode, self.statuses()), (0, ["ok"] * 4))

    def test_first_job_dies(self):
        """Those that have its data stay."""
        process, _ = self.hold_sweep(2)
        os.kill(min(self.jobs()), signal.SIGKILL)
        self.wait_for(lambda: self.journal("ended"), process)
        self.let_go()
        process.communicate(timeout=120)
        self.assertEqual(sorted(self.statuses()), ["killed", "ok", "ok", "ok"])

    def test_launcher_dies(self):
        process, data = self.hold_sweep(2)
        everyone = self.jobs() | {data}
        process.kill()
        process.communicate()
        end = time.monotonic() + 60
        while [pid for pid in everyone if os.path.exists(f"/proc/{pid}")] and time.monotonic() < end:
            time.sleep(0.01)
        self.assertLess(time.monotonic(), end)

    def test_interrupt(self):
        process, data = self.hold_sweep(2)
        process.send_signal(signal.SIGINT)
        self.let_go()
        process.communicate(timeout=120)
        self.assertFalse(os.path.exists(f"/proc/{data}"))
        self.run_kiln("-m", "--resume", "s")
        self.assertEqual(self.statuses(), ["ok"] * 4)

    def test_python(self):
        """A transform in Python has a process of its own."""
        python = numpy_python()
        if python is None:
            self.skipTest("no Python with numpy")
        self.write("dim.py", "class Dim:\n    def __call__(self, image): return image * 0.5\n")
        for split in "train", "val":
            for label in "ab":
                for i in range(8):
                    self.write(f"images/{split}/{label}/{i}.png", grey_png(8, 8, [bytes([10 * i]) * 8] * 8))
        self.sweep("task=vision", "model=mlp", "model.hidden=[8]", "datamodule=image_folder", "datamodule.root=images",
                   "datamodule.channels=1", "trainer.threads=1", "trainer.max_epochs=1", "batch_size=4", "test=false",
                   "datamodule.transforms=['python:dim.Dim']", f"kiln.python={python}", "lr=0.1,0.2,0.3", "kiln.launcher.n_jobs=2")
        self.assertEqual(self.statuses(), ["ok"] * 3)


if __name__ == "__main__":
    main()
