"""Kills a launcher and its workers (SIGKILL) at random moments: the resumed sweep has the results of an undisturbed one.
KILN_FAULTS=all: 100 moments of each kind of sweep."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import random
import signal
import subprocess
import time

from kilntest import BUILD, SHORT, main, read
from sweeptest import SweepCase

MOMENTS = 100 if os.environ.get("KILN_FAULTS") == "all" else 3 if SHORT else 10
TRIALS = 8 if SHORT else 16
JOB = ["model=mlp", "model.hidden=[32]", "datamodule.train_count=256", "datamodule.val_count=32",
       "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=9", "trainer.threads=1"]
SPACE = "lr=tag(log,interval(1e-3,1))"
GRID = [*JOB, f"seed=range(0,{TRIALS // 2})", "lr=0.1,0.01", "kiln.launcher.n_jobs=2"]
LEARNS = [*JOB, SPACE, "optimizer=sgd,adam", "kiln/sweeper=tpe", f"kiln.sweeper.n_trials={TRIALS}",
          "kiln.sweeper.startup_trials=4", "kiln/pruner=asha"]
PBT = [*JOB, SPACE, "kiln/sweeper=pbt", "kiln.sweeper.population=4", "kiln.sweeper.interval_epochs=3", "kiln.launcher.n_jobs=2"]


class Kill(SweepCase):
    def disturb(self, sweep):
        """Kill sweeps with these arguments until there have been enough kills; each ends as the undisturbed one."""
        began = time.monotonic()
        self.run_kiln("-m", *sweep, "kiln.sweep.dir=whole")
        whole = time.monotonic() - began
        rng = random.Random(os.environ.get("KILN_TEST_SEED", "17"))
        killed, n = 0, 0
        while killed < MOMENTS:
            killed += self.kill_one(sweep, f"s{n}", rng, min(whole / 3, 1.0), MOMENTS - killed)
            self.same(f"s{n}")
            n += 1

    def kill_one(self, sweep, folder, rng, pause, most):
        """Run a sweep to its end, with at most so many kills in between; return how many."""
        words, killed = ["-m", *sweep, f"kiln.sweep.dir={folder}"], 0
        while killed < most:
            process = self.start(*words, start_new_session=True)
            time.sleep(rng.uniform(0.0, pause))
            if process.poll() is not None:
                process.communicate()
                break
            workers = self.workers(process.pid)
            if sweep is GRID and workers and rng.random() < 0.3:  # one alone; its job is resumed later
                self.kill(rng.choice(workers))
                time.sleep(rng.uniform(0.0, pause))
                workers = self.workers(process.pid)
            # Either may be first; the workers die with their launcher at any rate.
            victims = [process.pid, *workers]
            rng.shuffle(victims)
            for pid in victims:
                self.kill(pid)
            process.communicate()
            killed += 1
            # One that was killed before it had begun is started again.
            if os.path.exists(self.path(folder, "journal.jsonl")) and b"\n" in read(self.path(folder, "journal.jsonl")):
                words = ["-m", "--resume", folder]
        self.run_kiln(*words)
        return killed

    def workers(self, pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                return [int(child) for child in f.read().split()]
        except OSError:
            return []

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_two_workers_of_a_grid(self):
        self.disturb(GRID)

    def test_a_sweeper_and_a_pruner_that_learn(self):
        self.disturb(LEARNS)

    def test_generations_of_pbt(self):
        self.disturb(PBT)

    def test_a_full_disk(self):
        """Jobs and the sweep fail; with room again it ends as the undisturbed one."""
        sweep = [*JOB, "seed=range(0,6)"]
        mount = "mkdir -p disk && mount -t tmpfs -o size=400k none disk"
        if subprocess.run(["unshare", "-m", "sh", "-c", mount], cwd=self.dir, capture_output=True).returncode != 0:
            print("skip: no permission to mount a small file system")
            return
        self.run_kiln("-m", *sweep, "kiln.sweep.dir=whole")
        train = os.path.join(BUILD, "train")
        script = (f"{mount} && {train} -m {' '.join(sweep)} kiln.sweep.dir=disk/s; echo status $?; mount -o remount,size=40m disk && "
                  f"{train} -m --resume disk/s --retry-failed && cp -r disk/s full")
        done = subprocess.run(["unshare", "-m", "bash", "-c", script.replace("(", "\\(").replace(")", "\\)")], cwd=self.dir,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("status 1", done.stdout)
        self.assertIn("No space left on device", done.stdout + done.stderr)
        self.same("full")


if __name__ == "__main__":
    main()
