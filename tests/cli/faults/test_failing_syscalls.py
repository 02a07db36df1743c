"""Makes system calls of a small run fail, with strace, one at a time and with each possible error. The run completes with
the same result, or reports the error and can be resumed to the same weights or started again. Tests a fixed sample of
the calls; KILN_FAULTS=all (make faults) tests all."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

from kilntest import BUILD, SHORT, Case, main, read

WHY = "failing system calls need strace"
RUN = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32", "test=true",
       "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=2", "trainer.threads=1",
       "trainer.num_workers=1", "trainer.log_every_n_steps=1", "callbacks.model_checkpoint.every_n_train_steps=3",
       "kiln.run.dir=run"]
FAULTS = {
    "openat": ["EMFILE", "EACCES", "ENOSPC", "EIO"], "write": ["ENOSPC", "EIO"], "read": ["EIO"],
    "rename": ["EIO", "ENOSPC", "EACCES"], "renameat2": ["EIO"], "mkdir": ["ENOSPC", "EACCES"], "fsync": ["EIO"],
    "fdatasync": ["EIO"], "unlink": ["EACCES"], "rmdir": ["EACCES"], "symlink": ["ENOSPC"], "link": ["EMLINK"],
    "ftruncate": ["EIO"], "fallocate": ["ENOSPC"], "sync_file_range": ["EIO"], "flock": ["ENOLCK"],
    "getdents64": ["EIO"], "newfstatat": ["EIO"], "close": ["EIO"], "clone3": ["EAGAIN"], "readlink": ["EACCES"],
    "lseek": ["EIO"],
}
ALL = os.environ.get("KILN_FAULTS") == "all"


def can_trace():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


def state(data):
    """What results depend on. Saved when something failed at the end of an epoch, that end is still to come."""
    return {key: value for key, value in json.loads(data).items() if key not in ("epoch_done", "last_end_batch", "xxh3")}


@unittest.skipUnless(can_trace(), WHY)
class Injected(Case):
    ENV = {**os.environ, "GOMP_SPINCOUNT": "0", "ASAN_OPTIONS": "detect_leaks=0"}

    def train(self, folder, *args, trace=()):
        return subprocess.run([*trace, os.path.join(BUILD, "train"), *args], cwd=folder, capture_output=True, text=True,
                              check=False, env=self.ENV, timeout=120, errors="replace")

    def contents(self, folder):
        """What a run promises: checkpoints, rows but for times, and which pictures there are."""
        run = os.path.join(folder, "run")
        found = {"links": {link: os.readlink(os.path.join(run, "checkpoints", link)) for link in ["best", "last"]}}
        for at, _, names in os.walk(os.path.join(run, "checkpoints")):
            for name in names:
                data = read(os.path.join(at, name))
                found[os.path.relpath(os.path.join(at, name), run)] = state(data) if name == "state.json" else data
        with open(os.path.join(run, "metrics.csv"), newline="") as f:
            found["metrics.csv"] = [{k: v for k, v in row.items() if k != "wall_time"} for row in csv.DictReader(f)]
        found["plots"] = sorted(os.listdir(os.path.join(run, "plots")))
        return found

    def differences(self, folder, said):
        """Between a run that ended well and the undisturbed one. A checkpoint that nobody keeps any more may stay; what
        a warning says to be missing may."""
        now = self.contents(folder)
        names = {name for name in {*now, *self.whole} if name in self.whole and now.get(name) != self.whole[name]}
        return sorted(names - {"plots"} if "plots are incomplete" in said else names)

    def losses(self, folder):
        """Between a run that failed and was resumed and the undisturbed one: the weights are the same. Callbacks and
        loggers that were not called any more for the step that failed miss it: a row may be missing, or its values in a
        row; no value may be another."""
        now = self.contents(folder)
        model = "checkpoints/{}/model.safetensors"
        last = [found[model.format(found["links"]["last"])] for found in (now, self.whole)]
        rows = [[row for row in found["metrics.csv"] if row["phase"] == "fit"] for found in (now, self.whole)]
        wrong = ["weights"] if last[0] != last[1] else []
        wrong += [str(row) for row in rows[0] if not any(all(v in ("", other[k]) for k, v in row.items()) for other in rows[1])]
        return wrong + (["rows"] if len(rows[0]) < len(rows[1]) - 1 else [])

    def look(self, call, error, number):
        """What is wrong after this fault; None: nothing; "" when there is no such call any more."""
        with tempfile.TemporaryDirectory(dir=self.dir) as folder:
            log = os.path.join(folder, "log")
            done = self.train(folder, *RUN, trace=["strace", "-f", "-o", log, "-e", f"trace={call}", "-e",
                                                   f"inject={call}:error={error}:when={number}"])
            if "(INJECTED)" not in read(log, "r"):
                return ""
            where = [line for line in read(log, "r").splitlines() if "(INJECTED)" in line][0]
            said = done.stdout + done.stderr
            problem = self.judge(folder, done, said)
            return None if problem is None else f"{call} {error} {number}: {problem}\n  {where}\n  {done.stderr[-600:]}"

    def judge(self, folder, done, said):
        if done.returncode < 0 or done.returncode > 125 or "Sanitizer" in said:
            started = os.path.exists(os.path.join(folder, "run"))
            return None if done.returncode == 127 and not started else f"ended by {done.returncode}"
        if done.returncode != 0 and not re.search(r"(?m)^train: |error", done.stderr):
            return f"exit status {done.returncode} without a message"
        if done.returncode == 0:
            names = self.differences(folder, said)
            return f"ended well, but differs: {names}" if names else None
        resumes = os.path.exists(os.path.join(folder, "run/.kiln/config.yaml"))
        again = self.train(folder, *(["resume=run"] if resumes else RUN))
        if again.returncode != 0:
            return f"{'resume' if resumes else 'start'} again fails: {again.stderr}"
        names = self.losses(folder) if resumes else self.differences(folder, again.stdout)
        return f"{'resumed' if resumes else 'started again'}, but differs: {names}" if names else None

    def test_each_call(self):
        os.mkdir(self.path("whole"))
        self.assertEqual(self.train(self.path("whole"), *RUN).returncode, 0)
        self.whole = self.contents(self.path("whole"))
        step = 1 if ALL else 67 if SHORT else 29
        wrong, tried = [], 0
        with ThreadPoolExecutor(2 if ALL else 1) as pool:
            for call, errors in FAULTS.items():
                for turn, error in enumerate(errors):
                    first = 1 if ALL else 1 + (7 * turn) % step
                    over = False
                    for start in range(first, 1000, 2 * step):
                        found = list(pool.map(lambda n: self.look(call, error, n), [start, start + step]))
                        wrong += [text for text in found if text]
                        tried += len([text for text in found if text != ""])
                        if "" in found:
                            over = True
                            break
                    self.assertTrue(over)
        print(f"{tried} system calls failed, {len(wrong)} with something to mend", flush=True)
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


if __name__ == "__main__":
    if not can_trace():
        print(f"skip: {WHY}")
    main()
