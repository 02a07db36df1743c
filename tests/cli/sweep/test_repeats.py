"""Runs of the same point with other seeds: kiln.sweep.repeats and confirm."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import statistics

from kilntest import main, read
from sweeptest import SweepCase

JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=128", "datamodule.val_count=64", "datamodule.test_count=32",
       "datamodule.batch_size=32", "trainer.threads=1", "trainer.max_epochs=2"]


class Repeats(SweepCase):
    def summary(self, folder="s"):
        with open(self.path(folder, "results.json")) as f:
            return json.load(f)

    def check_ranking(self, folder="s"):
        """Jobs are ranked by the mean of their runs; returns the runs of each."""
        results = self.summary(folder)
        runs = {}
        for job in results["jobs"]:
            first = job["repeats"] if job["repeats"] is not None else job["job"]
            runs.setdefault(first, []).append(job["metrics"]["val/accuracy"]["best"])
            self.assertEqual(job["rank"] is None, job["repeats"] is not None)
        means = {first: statistics.mean(values) for first, values in runs.items()}
        ranked = [means[job] for job in results["ranked"]]
        self.assertEqual(ranked, sorted(ranked, reverse=True))
        for first, values in runs.items():
            shown = results["jobs"][first]["runs"]
            if len(values) > 1:
                self.assertAlmostEqual(shown["mean"], means[first])
                self.assertAlmostEqual(shown["deviation"], statistics.stdev(values))
        return runs

    def test_a_grid(self):
        out, _ = self.run_kiln("-m", *JOB, "lr=0.1,0.01", "seed=5", "kiln.sweep.repeats=3", "kiln.sweep.dir=s")
        self.assertIn("[6/6] #5 ok", out)
        self.assertRegex(out, r"of 3 runs  lr=0\.1")
        self.assertEqual({first: len(runs) for first, runs in self.check_ranking().items()}, {0: 3, 1: 3})
        self.assertEqual([(row["lr"], row["seed"], row["repeats"]) for row in self.results()],
                         [("0.1", "5", ""), ("0.01", "5", ""), ("0.1", "6", "0"), ("0.1", "7", "0"), ("0.01", "6", "1"),
                          ("0.01", "7", "1")])
        self.run_kiln(*JOB, "lr=0.1", "seed=7", "kiln.run.dir=run")
        self.assertEqual(read(self.path("s/3/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))
        self.run_kiln("-m", "--resume", "s", "lr=0.1,0.01,0.001")
        self.assertEqual({first: len(runs) for first, runs in self.check_ranking().items()}, {0: 3, 1: 3, 6: 3})

    def test_a_search(self):
        """With one job at a time the runs of a point come before the next point, which learns from their mean."""
        sweep = ["-m", *JOB, "lr=tag(log,interval(1e-3,1))", "kiln/sweeper=tpe", "kiln.sweeper.startup_trials=2",
                 "kiln.sweeper.n_trials=4", "kiln.sweep.repeats=2", *self.braked]
        self.run_kiln(*sweep, "kiln.sweep.dir=s")
        self.assertEqual([line.get("repeats") for line in self.journal("submitted")], [None, 0, None, 2, None, 4, None, 6])
        self.check_ranking()
        for started in (1, 4):
            folder = f"killed{started}"
            self.kill_and_resume(*sweep, folder=folder, started=started)
            self.assertEqual(self.journal("submitted", folder=folder), self.journal("submitted"))

    def test_pruned(self):
        """A job that is stopped has no other runs."""
        self.run_kiln("-m", *JOB, "lr=0.1,1e-6,0.05", "kiln/pruner=percentile", "kiln.pruner.startup_trials=1",
                      "kiln.sweep.repeats=2", "kiln.sweep.dir=s")
        jobs = self.summary()["jobs"]
        self.assertEqual(jobs[1]["status"], "stopped")
        self.assertNotIn(1, [job["repeats"] for job in jobs])
        self.assertIn(0, [job["repeats"] for job in jobs])

    def test_confirm(self):
        self.run_kiln("-m", *JOB, "lr=0.1,0.05,0.2,0.01", "kiln.sweep.confirm=3", "kiln.sweep.dir=s")
        runs = self.check_ranking()
        best = self.summary()["ranked"][0]
        self.assertEqual(len(runs[best]), 3)
        self.assertEqual(set(map(len, runs.values())) | {1}, {1, 3})
        before = self.journal("submitted")
        self.run_kiln("-m", "--resume", "s")
        self.assertEqual(self.journal("submitted"), before)

    def test_mistakes(self):
        self.refused("-m", *JOB, "lr=0.1,0.01", "seed=1,2", "kiln.sweep.repeats=2", says=["the sweep varies seed itself"])
        self.refused("-m", *JOB, "lr=0.1,0.01", "kiln.sweep.repeats=0", says=["kiln.sweep.repeats", "from 1"])


if __name__ == "__main__":
    main()
