"""Sweepers from plugins: random search."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import os
import subprocess

from kilntest import ROOT, Case, main

# A job of some hundredths of a second.
JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32",
       "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=2",
       "trainer.threads=1"]


class Sweepers(Case):
    def sweep(self, *args, status=0, **options):
        return self.run_kiln("-m", *args, status=status, **options)

    def plan(self, *args):
        out, _ = self.sweep("--plan", *args)
        return [line.split(" : ", 1)[1] for line in out.splitlines() if line.startswith("#")]

    def results(self, folder="s"):
        with open(self.path(folder, "results.csv"), newline="") as f:
            return list(csv.DictReader(f))


class Random(Sweepers):
    def setUp(self):
        super().setUp()
        subprocess.run(["cc", "-std=c17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-DKILN_BUILD_PLUGIN",
                        "-I", os.path.join(ROOT, "src"), "-o", self.path("random_search.so"),
                        os.path.join(ROOT, "examples/plugin/random_search.c")], check=True)
        self.random = ["--plugin", "./random_search.so", "kiln/sweeper=random_search"]

    def test_points_come_from_the_seed(self):
        space = [*self.random, "lr=tag(log,interval(1e-3,1))", "batch_size=int(interval(8,32))", "model=mlp,resnet",
                 "seed=zip(1,2)", "trainer.max_epochs=zip(3,4)", "kiln.sweeper.n_trials=12"]
        points = self.plan(*space)
        self.assertEqual(points, self.plan(*space))
        self.assertNotEqual(points, self.plan(*space, "kiln.sweeper.seed=2"))
        self.assertEqual(points[:5], self.plan(*space, "kiln.sweeper.n_trials=5"))
        self.assertEqual(len(points), 12)
        rates, seeds = [], set()
        for point in points:
            values = dict(value.split("=") for value in point.split())
            rates.append(float(values["lr"]))
            self.assertIn(int(values["batch_size"]), range(8, 33))
            self.assertEqual(int(values["trainer.max_epochs"]), int(values["seed"]) + 2)
            seeds.add(values["seed"])
        self.assertEqual(seeds, {"1", "2"})
        self.assertTrue(all(1e-3 <= rate <= 1 for rate in rates))
        self.assertTrue(any(rate < 0.03 for rate in rates), "not on a logarithmic scale")

    def test_a_sweep_runs_and_is_extended(self):
        sweep = [*self.random, *JOB, "lr=interval(0.01,0.1)", "kiln.sweeper.n_trials=3", "kiln.sweep.dir=s"]
        self.sweep(*sweep)
        first = self.results()
        self.assertEqual([row["status"] for row in first], 3 * ["ok"])
        self.assertEqual([f"lr={row['lr']}" for row in first],
                         [word for point in self.plan(*sweep[:-1]) for word in point.split() if word.startswith("lr=")])
        self.sweep("--resume", "s", "kiln.sweeper.n_trials=5")
        rows = self.results()
        self.assertEqual([row["status"] for row in rows], 5 * ["ok"])
        self.assertEqual([row["lr"] for row in rows[:3]], [row["lr"] for row in first])

    def test_an_interval_of_the_grid(self):
        for flags in (["-m"], ["-m", "--plan"]):
            self.refused(*flags, *JOB, "lr=interval(0.01,0.1)",
                         says=["lr: sweeper/grid does not accept interval(), which has no end of values",
                               "range(start,stop,step)", "examples/plugin/random_search.c"])
        self.refused("-m", "--plugin", "./random_search.so", "lr=int(interval(1,8))",
                     says=["does not accept int(interval())", "(kiln/sweeper=random_search)"])

    def test_both_ends_of_an_interval_are_checked(self):
        self.refused("-m", *self.random, *JOB, "optimizer.momentum=interval(0,2)", says=["optimizer.momentum", "2.0"])
        self.refused("-m", "--plan", *self.random, *JOB, "model.dropout=interval(-1,0.5)", says=["model.dropout", "-1.0"])


if __name__ == "__main__":
    main()
