"""Kills a launcher and its workers (SIGKILL) at random times: the resumed sweep has the results of an undisturbed one."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import random
import signal
import time

from kilntest import SHORT, Case, main, read

MOMENTS, JOBS = (3, 8) if SHORT else (10, 20)
SWEEP = ["model=mlp", "model.hidden=[32]", "datamodule.train_count=256", "datamodule.val_count=32",
         "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=6", "trainer.threads=1",
         "kiln.launcher.n_jobs=2", f"seed=range(0,{JOBS // 2})", "lr=0.1,0.01"]


class Kill(Case):
    def test_results_equal_those_of_an_undisturbed_sweep(self):
        began = time.monotonic()
        self.run_kiln("-m", *SWEEP, "kiln.sweep.dir=whole")
        whole = time.monotonic() - began
        rng = random.Random(os.environ.get("KILN_TEST_SEED", "17"))
        resume, killed = ["-m", *SWEEP, "kiln.sweep.dir=killed"], 0
        for _ in range(MOMENTS):
            process = self.start(*resume, start_new_session=True)
            time.sleep(rng.uniform(0.0, 1.5 * whole / MOMENTS))
            killed += process.poll() is None
            workers = self.workers(process.pid)
            # Either may be first; the workers die with their launcher at any rate.
            victims = [process.pid, *workers]
            rng.shuffle(victims)
            for pid in victims:
                self.kill(pid)
            process.communicate()
            self.check_journal()
            # One that was killed before it had begun is started again.
            if os.path.exists(self.path("killed/journal.jsonl")) and b"\n" in read(self.path("killed/journal.jsonl")):
                resume = ["-m", "--resume", "killed"]
        self.assertGreater(killed, 0)
        self.run_kiln(*resume)
        self.assertEqual(self.table("killed"), self.table("whole"))
        for job in range(JOBS):
            model = f"{job}/checkpoints/last/model.safetensors"
            self.assertEqual(read(self.path("killed", model)), read(self.path("whole", model)), model)
        self.check_journal(done=True)

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

    def check_journal(self, done=False):
        """No job ends well twice, none starts after that, and in the end none is lost."""
        ended = set()
        if not os.path.exists(self.path("killed/journal.jsonl")):
            return
        with open(self.path("killed/journal.jsonl")) as f:
            lines = f.read().split("\n")
        for line in lines[:-1]:
            record = json.loads(line)
            if record["event"] == "started":
                self.assertNotIn(record["job"], ended, "a finished job started again")
            if record["event"] == "ended" and record["status"] == "ok":
                ended.add(record["job"])
        if done:
            self.assertEqual(ended, set(range(JOBS)))

    def table(self, folder):
        with open(self.path(folder, "results.csv"), newline="") as f:
            return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(f)]


if __name__ == "__main__":
    main()
