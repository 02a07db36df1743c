"""Sweepers that learn, as a user runs them: with pruners, kills and several jobs at a time."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilntest import main
from sweeptest import SweepCase

JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=128", "datamodule.val_count=64", "datamodule.test_count=32",
       "datamodule.batch_size=32", "trainer.threads=1", "trainer.max_epochs=3"]
SPACE = ["lr=tag(log,interval(1e-4,1))", "optimizer=sgd,adam", "optimizer.momentum=when(optimizer,sgd,interval(0,0.9,step=0.3))",
         "seed=int(interval(1,9))"]
TPE = ["-m", *JOB, *SPACE, "kiln/sweeper=tpe", "kiln.sweeper.startup_trials=4", "kiln.sweeper.n_trials=12"]


class Search(SweepCase):
    def test_decisions_are_the_same_after_a_kill(self):
        decisions = ("submitted", "reported", "stopping", "complete")
        sweep = [*TPE, "kiln/pruner=asha", *self.braked]
        self.run_kiln(*sweep, "kiln.sweep.dir=s")
        for started in (2, 8):
            folder = f"killed{started}"
            self.kill_and_resume(*sweep, folder=folder, started=started)
            self.assertEqual(self.journal(*decisions, folder=folder), self.journal(*decisions))

    def test_values(self):
        """Values are of the space; momentum only where the optimizer has it."""
        self.run_kiln(*TPE, "kiln.sweep.dir=s", "kiln.launcher.n_jobs=3")
        rows = self.results()
        self.assertEqual(len(rows), 12)
        self.assertEqual(len({(row["lr"], row["seed"], row["optimizer"]) for row in rows}), 12)
        for row in rows:
            self.assertEqual(row["status"], "ok")
            self.assertTrue(1e-4 <= float(row["lr"]) <= 1)
            self.assertIn(int(row["seed"]), range(1, 10))
            self.assertIn(row["optimizer.momentum"], ["0.0", "0.3", "0.6", "0.9"] if row["optimizer"] == "sgd" else [""])

    def test_more_trials(self):
        self.run_kiln(*TPE, "kiln.sweeper.n_trials=6", "kiln.sweep.dir=s")
        self.run_kiln("-m", "--resume", "s", "kiln.sweeper.n_trials=9")
        self.run_kiln(*TPE, "kiln.sweeper.n_trials=9", "kiln.sweep.dir=whole")
        self.assertEqual(self.journal("submitted"), self.journal("submitted", folder="whole"))

    def test_a_metric_that_no_job_logs(self):
        """The first job tells; the sweep continues with another metric."""
        _, err = self.run_kiln(*TPE, "kiln.sweeper.metric=val/acuracy", "kiln.sweep.dir=s", status=1)
        for text in ("kiln.sweeper.metric: job #0 has ended, and logs no val/acuracy (did you mean val/accuracy?); it logs ",
                     "train/accuracy", "train -m --resume s kiln.sweeper.metric="):
            self.assertIn(text, err)
        self.assertEqual([row["status"] for row in self.results()], ["ok"])
        self.run_kiln("-m", "--resume", "s", "kiln.sweeper.metric=val/accuracy")
        self.assertEqual({row["status"] for row in self.results()}, {"ok"})
        self.assertEqual(len(self.results()), 12)

    def test_cmaes(self):
        self.run_kiln("-m", *JOB, "lr=tag(log,interval(1e-4,1))", "batch_size=int(interval(16,64,step=16))",
                      "kiln/sweeper=cmaes", "kiln.sweeper.n_trials=10", "kiln.sweep.dir=s")
        self.assertEqual({row["status"] for row in self.results()}, {"ok"})
        self.assertLessEqual({row["batch_size"] for row in self.results()}, {"16", "32", "48", "64"})
        self.refused("-m", *JOB, "lr=interval(0,1)", "model=mlp,linear", "kiln/sweeper=cmaes",
                     says=["model: sweeper/cmaes does not accept a choice", "kiln/sweeper=tpe"])


if __name__ == "__main__":
    main()
