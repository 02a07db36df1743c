"""Kills a run or sweep, with strace, at a system call while it creates its folder. Afterwards it can be resumed or started
again under the same name. Tests every sixth call; KILN_FAULTS=all (make faults) tests all."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import shutil
import subprocess
import unittest

from kilntest import BUILD, SHORT, TINY, Case, main, read

RUN = [*TINY, "trainer.max_steps=2", "trainer.num_sanity_val_steps=0", "trainer.max_epochs=1"]
CALLS = ["mkdir", "openat", "write", "rename", "fsync", "flock"]

WHY = "killing at a system call needs strace"


def can_trace():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


class Begin(Case):
    def killed_at(self, call, number, *args):
        """Whether the program was killed at that call of its kind (of those that it makes by its main thread)."""
        done = subprocess.run(["strace", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                               f"inject={call}:signal=SIGKILL:when={number}", os.path.join(BUILD, "train"), *args],
                              cwd=self.dir, capture_output=True, check=False,
                              env={**os.environ, "GOMP_SPINCOUNT": "0", "ASAN_OPTIONS": "detect_leaks=0"})
        return done.returncode != 0

    def moments(self, folder, *args):
        """After each kill that leaves something in `folder`, until the run is under way."""
        step = 1 if os.environ.get("KILN_FAULTS") == "all" else 12 if SHORT else 6
        for call in CALLS:
            for number in range(1, 400, step):
                shutil.rmtree(self.path(folder), ignore_errors=True)
                if not self.killed_at(call, number, *args):
                    break
                under_way = any(os.path.exists(self.path(folder, name)) for name in ["metrics.csv", "0/train.log"])
                if os.path.exists(self.path(folder)):
                    yield f"{call} {number}"
                if under_way:
                    break

    def has_begun(self, path):
        return os.path.exists(self.path(path)) and b"\n" in read(self.path(path))

    @unittest.skipUnless(can_trace(), WHY)
    def test_a_run_is_resumed_or_started_again(self):
        seen = {True: 0, False: 0}
        for moment in self.moments("run", *RUN, "kiln.run.dir=run"):
            begun = os.path.exists(self.path("run/.kiln/config.yaml"))
            seen[begun] += 1
            with self.subTest(moment):
                if not begun:
                    err = self.run_kiln("resume=run", status=1)[1]
                    self.assertIn("start it again" if os.path.exists(self.path("run/.kiln")) else "no run folder", err)
                self.run_kiln(*(["resume=run"] if begun else [*RUN, "kiln.run.dir=run"]))
                self.assertTrue(os.path.exists(self.path("run/checkpoints/last/state.json")))
        self.assertGreater(min(seen.values()), 0, seen)

    @unittest.skipUnless(can_trace(), WHY)
    def test_a_sweep_is_resumed_or_started_again(self):
        seen = {True: 0, False: 0}
        sweep = ["-m", *RUN, "seed=1,2", "kiln.sweep.dir=sweep"]
        for moment in self.moments("sweep", *sweep):
            begun = self.has_begun("sweep/journal.jsonl")
            seen[begun] += 1
            with self.subTest(moment):
                if os.path.exists(self.path("sweep/journal.jsonl")) and not begun:
                    self.assertIn("start it again", self.run_kiln("-m", "--resume", "sweep", status=1)[1])
                self.run_kiln(*(["-m", "--resume", "sweep"] if begun else sweep))
                for job in range(2):
                    self.assertTrue(os.path.exists(self.path(f"sweep/{job}/checkpoints/last/state.json")))
        self.assertGreater(min(seen.values()), 0, seen)

    def test_a_folder_with_anything_else_is_refused(self):
        for stray in ["notes.txt", ".kiln/notes.yaml", "checkpoints/mine"]:
            self.write(f"run/{stray}", "")
            self.refused(*RUN, "kiln.run.dir=run", says=["is there already and not empty"])
            self.assertFalse(os.path.exists(self.path("run/.kiln/journal.jsonl")))
            shutil.rmtree(self.path("run"))
        self.write("sweep/.kiln/notes.yaml", "")
        self.refused("-m", *RUN, "seed=1,2", "kiln.sweep.dir=sweep", says=["exists and is not empty"])

    def test_two_at_once_under_one_name(self):
        """One of them runs; the other finds it there, or at work."""
        for args, folder in [(RUN, "run"), (["-m", *RUN, "seed=1,2"], "sweep")]:
            both = [self.start(*args, f"kiln.{folder}.dir={folder}") for _ in range(2)]
            errors = [process.communicate()[1] for process in both]
            self.assertIn(sorted(process.returncode for process in both), ([0, 1], [0, 4]), errors)
            self.assertRegex("".join(errors), "is there already and not empty|exists and is not empty|another process runs this")


if __name__ == "__main__":
    if not can_trace():
        print(f"skip: {WHY}")
    main()
