"""Several objectives: jobs are ranked by fronts, and sweeper nsga2 looks for the first one."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json

from kilntest import Case, main

# A job of some hundredths of a second.
JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32",
       "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=1", "trainer.threads=1"]
BOTH = "kiln.sweeper.metrics=[val/accuracy,val/loss]"


class Objectives(Case):
    def sweep(self, *args, **options):
        return self.run_kiln("-m", *JOB, *args, **options)

    def rows(self):
        with open(self.path("s/results.csv"), newline="") as f:
            return list(csv.DictReader(f))

    def check_fronts(self):
        """The ranks are those that the values have."""
        rows = self.rows()
        losses = [(-float(row["val/accuracy_best"]), float(row["val/loss_best"])) for row in rows]
        left, rank, want = set(range(len(rows))), 1, {}
        while left:
            front = {i for i in left if not any(all(a <= b for a, b in zip(losses[k], losses[i])) and
                                                losses[k] != losses[i] for k in left)}
            want.update(dict.fromkeys(front, rank))
            left, rank = left - front, rank + 1
        self.assertEqual([int(row["rank"]) for row in rows], [want[i] for i in range(len(rows))])
        return want

    def test_a_grid_is_ranked_by_fronts(self):
        out, _ = self.sweep("lr=0.3,0.1,0.03,0.01", "seed=1,2", BOTH, "kiln.sweep.dir=s")
        want = self.check_fronts()
        front = [job for job, rank in want.items() if rank == 1]
        with open(self.path("s/results.json")) as f:
            results = json.load(f)
        self.assertEqual(results["metrics"], ["val/accuracy", "val/loss"])
        self.assertEqual([job["rank"] for job in results["jobs"]], [want[i] for i in range(8)])
        self.assertEqual(set(results["ranked"][:len(front)]), set(front))
        self.assertIn(f"Pareto front: {len(front)} of 8 jobs", out)
        self.assertIn("best run by val/accuracy: s/", out)
        head = next(line for line in out.splitlines() if line.startswith("rank  job"))
        self.assertEqual(head.split(), ["rank", "job", "val/accuracy", "val/loss"])

    def test_a_genetic_algorithm_sees_both(self):
        sweep = ["kiln/sweeper=nsga2", "kiln.sweeper.population=3", "lr=tag(log,interval(1e-3,1))", "optimizer=sgd,adam",
                 BOTH, "kiln.sweep.dir=s"]
        self.sweep(*sweep, "kiln.sweeper.n_trials=8")
        self.check_fronts()
        with open(self.path("s/journal.jsonl")) as f:
            reports = [line for line in map(json.loads, f) if line["event"] == "reported"]
        self.assertEqual(len(reports), 8)
        for report in reports:
            self.assertEqual(report["modes"], ["max", "min"])
            self.assertEqual(report["values"][0], report["value"])
            self.assertEqual(len(report["values"]), 2)
        whole = [(row["lr"], row.get("optimizer")) for row in self.rows()]
        self.sweep(*sweep[:-1], "kiln.sweep.dir=p", "kiln.sweeper.n_trials=5")
        self.run_kiln("-m", "--resume", "p", "kiln.sweeper.n_trials=8")
        with open(self.path("p/results.csv"), newline="") as f:
            self.assertEqual([(row["lr"], row.get("optimizer")) for row in csv.DictReader(f)], whole)

    def test_wrong_options(self):
        for args, says in ((["kiln.sweeper.metric=val/loss"], "kiln.sweeper.metric and mode are for a single one"),
                           (["kiln.sweeper.modes=[max]"], "kiln.sweeper.modes: 1 of them for 2 metrics"),
                           (["kiln.sweeper.modes=[max,best]"], "best")):
            _, err = self.sweep("lr=0.1,0.01", BOTH, *args, "kiln.sweep.dir=s", status=1)
            self.assertIn(says, err)
            self.assertFalse(pathlib.Path(self.path("s")).exists())

    def test_a_metric_that_no_job_has(self):
        _, err = self.sweep("lr=0.1,0.01", "kiln.sweeper.metrics=[val/loss,val/los]", "kiln.sweep.dir=s", status=1)
        self.assertIn("kiln.sweeper.metrics: job #0 has ended, and logs no val/los (did you mean val/loss?); it logs ", err)


if __name__ == "__main__":
    main()
