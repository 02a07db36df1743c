"""Sweeper gp: its trials depend on the results so far, in one process or in several."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv

from kilntest import Case, main

# A job of some hundredths of a second.
JOB = ["model=mlp", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.max_epochs=1", "trainer.threads=1"]
SWEEP = ["kiln/sweeper=gp", "kiln.sweeper.startup_trials=3", *JOB, "lr=tag(log,interval(1e-4,1))", "optimizer=sgd,adam",
         "optimizer.momentum=when(optimizer,sgd,interval(0,0.9))", "model.hidden=[8],[16]"]


class Gp(Case):
    def rows(self, folder):
        with open(self.path(folder, "results.csv"), newline="") as f:
            return [(row["status"], row["lr"], row["optimizer"], row["optimizer.momentum"], row["model.hidden"])
                    for row in csv.DictReader(f)]

    def test_a_resumed_sweep_has_the_same_trials(self):
        self.run_kiln("-m", *SWEEP, "kiln.sweeper.n_trials=8", "kiln.sweep.dir=whole")
        self.run_kiln("-m", *SWEEP, "kiln.sweeper.n_trials=5", "kiln.sweep.dir=parts")
        self.run_kiln("-m", "--resume", "parts", "kiln.sweeper.n_trials=8")
        rows = self.rows("whole")
        self.assertEqual([row[0] for row in rows], 8 * ["ok"])
        self.assertEqual(self.rows("parts"), rows)
        self.assertEqual({(optimizer == "sgd", momentum != "") for _, _, optimizer, momentum, _ in rows} -
                         {(True, True), (False, False)}, set())

    def test_jobs_at_the_same_time_differ(self):
        self.run_kiln("-m", *SWEEP, "kiln.sweeper.n_trials=8", "kiln.launcher.n_jobs=3", "kiln.sweep.dir=s")
        self.assertEqual(len({row[1] for row in self.rows("s")}), 8)


if __name__ == "__main__":
    main()
