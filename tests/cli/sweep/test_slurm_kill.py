"""Kills a launcher of Slurm jobs, the jobs and Slurm's own daemons (SIGKILL) at random moments: the sweep ends with the results
of an undisturbed local one. KILN_FAULTS=all: 50 kills of each kind of sweep."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import random
import time

from kilntest import SHORT, main, read
from slurm_cluster import kill
from slurmtest import SlurmCase, is_daemon, is_job
from sweeptest import SweepCase

ALL = os.environ.get("KILN_FAULTS") == "all"
KILLS = 50 if ALL else 3 if SHORT else 5
KILLS_OF_A_SWEEP = 6
# A job takes about three seconds: pauses change no results.
JOB = ["model=mlp", "model.hidden=[16]", "datamodule.train_count=128", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.max_epochs=6", "trainer.threads=1"]
PAUSE_MS = 50
GRID = [*JOB, "seed=range(0,3)", "lr=0.1,0.01"]
LEARNS = [*JOB, "lr=tag(log,interval(1e-3,1))", "optimizer=sgd,adam", "kiln/sweeper=tpe", "kiln.sweeper.n_trials=6",
          "kiln.sweeper.startup_trials=3"]
# A task whose process and slurmstepd were killed runs until its time limit.
SLURM = ["kiln/launcher=slurm", "kiln.launcher.timeout_min=2", "kiln.launcher.signal_delay_s=10"]
LONGEST_S = 600


class Kill(SlurmCase, SweepCase):
    SLURM = {"cpus": 1, "nodes": 2, "node_timeout": 6}

    def setUp(self):
        super().setUp()
        self.rng = random.Random(os.environ.get("KILN_TEST_SEED", "17"))
        self.kinds = {"launcher": self.kill_launcher, "job": self.kill_job, "slurmd": self.kill_slurmd,
                      "slurmstepd": self.kill_stepd, "slurmctld": self.kill_slurmctld}
        self.killed = collections.Counter()
        self.down = {}  # daemons that were killed, and when they start again

    # ---- Kills: each is false when there is nothing to kill now ----

    def kill_launcher(self):
        self.process.kill()
        self.process.communicate()
        if self.has_begun():
            self.words = ["-m", "--resume", self.folder]
        self.process = None
        return True

    def kill_job(self):
        """A job's process, the process that watches it, or both."""
        jobs = self.slurm.steps(is_job)
        self.rng.shuffle(jobs)
        for pid in jobs[:self.rng.randint(1, 2)]:
            kill(pid)
        return bool(jobs)

    def kill_stepd(self):
        """Of a job's script, or of the step in it."""
        daemons = self.slurm.steps(is_daemon)
        if daemons:
            kill(self.rng.choice(daemons))
        return bool(daemons)

    def kill_slurmd(self):
        """For so long that Slurm may give up the node: its jobs live on while they begin on the other one."""
        return self.kill_daemon(self.rng.choice(self.slurm.nodes), 3 * self.slurm.node_timeout)

    def kill_slurmctld(self):
        return self.kill_daemon("slurmctld", 2)

    def kill_daemon(self, name, seconds):
        if name in self.down:
            return False
        self.slurm.kill(name)
        self.down[name] = time.monotonic() + self.rng.uniform(0.0, seconds)
        return True

    def start_daemons(self, wanted=lambda end: time.monotonic() > end):
        for name in [name for name, end in self.down.items() if wanted(end)]:
            del self.down[name]
            if name == "slurmctld":
                self.slurm.start_controller()
            else:
                self.slurm.start_node(name)
        self.slurm.resume_drained()

    # ---- A sweep ----

    def disturb(self, sweep, at_a_time):
        self.run_kiln("-m", *sweep, *self.braked, "kiln.sweep.dir=whole")
        self.brake(PAUSE_MS)
        n = 0
        while sum(self.killed.values()) < KILLS:
            self.sweep(f"s{n}", ["-m", *sweep, *self.braked, *SLURM, f"kiln.launcher.array_parallelism={at_a_time}"])
            n += 1
        print(", ".join(f"{name} {count}" for name, count in self.killed.items()), f"in {n} sweeps")

    def sweep(self, folder, words):
        """Run a sweep to its end, with kills in between."""
        self.folder, self.words, self.process = folder, [*words, f"kiln.sweep.dir={folder}"], None
        self.story_of_kills = []
        kills = min(KILLS - sum(self.killed.values()), KILLS_OF_A_SWEEP)
        end = time.monotonic() + LONGEST_S
        try:
            while not self.is_done():
                self.assertLess(time.monotonic(), end, "the sweep does not end")
                self.start_daemons()
                self.process = self.process or self.start(*self.words)
                if len(self.story_of_kills) < kills:
                    time.sleep(self.rng.uniform(0.0, 4.0))
                    self.kill_one()
                else:
                    time.sleep(0.2)
            self.start_daemons(lambda end: True)
            self.slurm.output("scancel", "--me")  # tasks whose slurmstepd was killed
            self.slurm.wait(lambda: not self.slurm.steps(is_job) and not self.slurm.queue(), seconds=60)
            for pid in self.slurm.steps():  # scripts that wait for such a task, which nobody ends
                kill(pid)
            self.same(folder)
            self.once(folder)
        except BaseException:
            if self.process:
                self.process.kill()
                print(*self.process.communicate(), sep="\n")
            print("seed", os.environ.get("KILN_TEST_SEED", "17"), folder, "kills", self.story_of_kills)
            print(read(self.path(folder, "journal.jsonl"), "r"), self.slurm.queue(), self.slurm.logs())
            raise

    def kill_one(self):
        """Of the kinds that were killed least so far, the first of which there is something to kill."""
        if self.process.poll() is not None:
            return
        for kind in sorted(self.kinds, key=lambda kind: (self.killed[kind], self.rng.random())):
            if self.kinds[kind]():
                self.killed[kind] += 1
                self.story_of_kills.append((time.strftime("%T"), kind))
                return

    def has_begun(self):
        path = self.path(self.folder, "journal.jsonl")
        return os.path.exists(path) and b"\n" in read(path)

    def is_done(self):
        """Has the launcher ended? One that leaves jobs undone, as their processes were killed, is started again."""
        if self.process is None or self.process.poll() is None:
            return False
        out, err = self.process.communicate()
        status = self.process.returncode
        self.process = None
        self.assertIn(status, (0, 1), f"{out}\n{err}")
        self.words = ["-m", "--resume", self.folder]
        if status == 1 and "squeue failed" in err:  # the controller is down when the launcher begins
            return False
        if status == 1:
            self.assertNotIn("failed", self.statuses(self.folder), f"{out}\n{err}")
            self.assertIn("killed", self.statuses(self.folder), f"{out}\n{err}")
        elif "interrupted" not in self.statuses(self.folder):
            return True
        return False

    def once(self, folder):
        """No job has run twice at a time or once more after its end."""
        for row in self.results(folder):
            self.assertEqual(row["status"], "ok")
            lines = [json.loads(line) for line in read(self.path(folder, row["job"], ".kiln/journal.jsonl"), "r").split("\n")[:-1]]
            ends = [n for n, line in enumerate(lines) if line["event"] == "ended" and line["status"] == "finished"]
            self.assertEqual(ends, [len(lines) - 1], lines)

    def test_a_grid_on_two_nodes(self):
        self.disturb(GRID, 2)

    def test_a_sweeper_that_learns(self):
        self.disturb(LEARNS, 1)


if __name__ == "__main__":
    main()
