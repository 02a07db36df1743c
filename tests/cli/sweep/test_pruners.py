"""Pruners, which stop jobs early and resume them, and the budget of a sweep."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilntest import main, read
from sweeptest import SweepCase

# A job of some hundredths of a second an epoch.
JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=256", "datamodule.val_count=64", "datamodule.test_count=32",
       "datamodule.batch_size=32", "trainer.threads=1"]
RATES = [3, 0.05, 0.1, 1e-05, 2, 0.02, 1, 0.0001, 0.03]
ASHA = ["-m", *JOB, "trainer.max_epochs=9", "lr=" + ",".join(map(str, RATES)), "kiln/pruner=asha"]


class Pruned(SweepCase):
    def values(self, epoch):
        """Of each job the best value up to the epoch, for those that reached it."""
        best, reached = {}, set()
        for line in self.journal("reported"):
            if line["epoch"] <= epoch:
                best[line["job"]] = max(best.get(line["job"], 0), line["value"])
            if line["epoch"] == epoch:
                reached.add(line["job"])
        return {job: best[job] for job in reached}


class Asha(Pruned):
    def check_rungs(self):
        """Of nine jobs three reach the second rung and one the end, each of the best at its rung."""
        values = [self.values(epoch) for epoch in (1, 3, 9)]
        self.assertEqual(len(values[0]), 9)
        self.assertEqual(self.statuses().count("ok"), 1)
        for rung, above in zip(values, values[1:]):
            best = sorted(rung, key=lambda job: -rung[job])[:len(rung) // 3]
            self.assertLessEqual(set(best), set(above), "one of the best did not go on")
        return self.statuses().index("ok")

    def test_rungs(self):
        out, _ = self.run_kiln(*ASHA, "kiln.sweep.dir=s")
        best = self.check_rungs()
        self.assertRegex(out, r"after epoch 1: rank \d of \d at this rung, where (one of 3 continues|the best (one continues|\d continue))")
        self.assertIn(f"best run: s/{best}", out)
        epochs = sum(line["epoch"] == epoch for epoch in range(1, 10) for line in self.journal("reported"))
        self.assertLess(epochs, 9 * 9 // 2)
        # The job that was stopped at most rungs has the bytes of a run that was not.
        self.run_kiln(*JOB, "trainer.max_epochs=9", f"lr={RATES[best]}", "kiln.run.dir=run")
        self.assertEqual(read(self.path(f"s/{best}/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))
        before = self.journal("started", "reported", "stopping", "ended")
        self.run_kiln("-m", "--resume", "s")
        self.assertEqual(self.journal("started", "reported", "stopping", "ended"), before)

    def test_decisions_are_the_same_after_a_kill(self):
        decisions = ("submitted", "reported", "stopping", "complete")
        self.run_kiln(*ASHA, *self.braked, "kiln.sweep.dir=s")
        for started in (1, 5, 10):
            folder = f"killed{started}"
            self.kill_and_resume(*ASHA, *self.braked, folder=folder, started=started)
            self.assertEqual(self.journal(*decisions, folder=folder), self.journal(*decisions))
            self.assertEqual(self.statuses(folder), self.statuses())

    def test_several_at_a_time(self):
        self.run_kiln(*ASHA, "kiln.launcher.n_jobs=3", "kiln.sweep.dir=s")
        self.assertEqual(len(self.values(1)), 9)
        self.assertGreaterEqual(self.statuses().count("ok"), 1)
        self.assertLess(self.statuses().count("ok"), 4)

    def test_more_jobs_later(self):
        sweep = ["-m", "kiln/sweeper=random", *JOB, "trainer.max_epochs=9", "lr=tag(log,interval(1e-4,1))", "kiln/pruner=asha"]
        self.run_kiln(*sweep, "kiln.sweeper.n_trials=4", "kiln.sweep.dir=s")
        self.assertEqual((len(self.statuses()), self.statuses().count("ok")), (4, 1))
        self.run_kiln("-m", "--resume", "s", "kiln.sweeper.n_trials=9")
        self.assertEqual(len(self.statuses()), 9)
        self.assertEqual(set(self.statuses()), {"ok", "stopped"})

    def test_brackets(self):
        """Groups that begin with 1, 3 and 9 epochs."""
        self.run_kiln("-m", *JOB, "trainer.max_epochs=9", "lr=" + ",".join(map(str, RATES)), "kiln/pruner=hyperband",
                      "kiln.sweep.dir=s")
        first = {}
        for line in self.journal("stopping"):
            at = max(report["epoch"] for report in self.journal("reported") if report["job"] == line["job"])
            epoch = int(line["reason"].split("epoch ")[1].split(":")[0])
            first[line["job"]] = min(first.get(line["job"], at), epoch)
        self.assertEqual(set(first.values()) & {1, 3}, {1, 3})


class OtherPruners(Pruned):
    def test_median(self):
        out, _ = self.run_kiln("-m", *JOB, "trainer.max_epochs=4", "lr=0.05,0.1,0.03,0.02,0.04,1e-5,0.06,1e-6",
                               "kiln/pruner=median", "kiln.pruner.startup_trials=3", "kiln.sweep.dir=s")
        self.assertEqual(self.statuses()[:3], 3 * ["ok"])
        self.assertEqual([self.statuses()[5], self.statuses()[7]], 2 * ["stopped"])
        self.assertIn("while the best 50 % of ", self.results()[5]["reason"])
        self.assertIn("#5 stopped", out)
        self.assertEqual(self.results()[5]["rank"], "")

    def test_patient(self):
        """A rate of almost 0 changes nothing, so no epoch is better than the first."""
        self.run_kiln("-m", *JOB, "trainer.max_epochs=9", "lr=0.05,1e-12", "kiln/pruner=patient", "kiln.pruner.patience=2",
                      "kiln.pruner.min_delta=0.001", "kiln.sweep.dir=s")
        self.assertEqual(self.statuses(), ["ok", "stopped"])
        self.assertIn("after epoch 4: no value of val/accuracy better than", self.results()[1]["reason"])
        # Another pruner is asked, which lets all go on where no others have got so far.
        self.run_kiln("-m", *JOB, "trainer.max_epochs=9", "lr=0.05,1e-12", "kiln/pruner=patient",
                      "kiln.pruner.pruner=percentile", "kiln.sweep.dir=t")
        self.assertEqual(self.statuses("t"), ["ok", "ok"])

    def test_misspelt(self):
        self.refused("-m", *JOB, "lr=1,2", "kiln/pruner=medain", says=["did you mean 'median'?"])
        self.refused("-m", *JOB, "lr=1,2", "kiln/pruner=asha", "kiln.pruner.min_epoch=2", says=["did you mean 'kiln.pruner.min_epochs'?"])
        self.refused("-m", *JOB, "lr=1,2", "kiln/pruner=asha", "kiln.pruner.reduction_factor=1",
                     says=["argument ", "kiln.pruner.reduction_factor", "from 2 to 1000"])

    def test_help(self):
        out, _ = self.run_kiln("show", "pruner/asha", program="kiln")
        self.assertIn("train -m lr=0.1,0.01 kiln/pruner=asha", out)


class Budget(Pruned):
    def test_patience(self):
        out, _ = self.run_kiln("-m", *JOB, "trainer.max_epochs=2", "lr=0.05,1e-9,1e-8,1e-7,1e-6,0.1", "kiln.sweep.patience=3",
                               "kiln.sweep.dir=s")
        self.assertIn("no more jobs start: no better value for too long (kiln.sweep.patience)", out)
        self.assertEqual(self.statuses(), 4 * ["ok"] + 2 * ["waiting"])
        self.assertIn("2 jobs are not done; continue with: train -m --resume s", out)
        self.assertEqual([line["reason"] for line in self.journal("exhausted")],
                         ["no better value for too long (kiln.sweep.patience)"])
        self.run_kiln("-m", "--resume", "s", "kiln.sweep.patience=0")
        self.assertEqual(self.statuses(), 6 * ["ok"])

    def test_max_steps(self):
        """Eight steps an epoch: after two jobs of two epochs there are 32."""
        self.run_kiln("-m", *JOB, "trainer.max_epochs=2", "lr=0.1,0.2,0.3,0.4", "kiln.sweep.max_steps=20", "kiln.sweep.dir=s")
        self.assertEqual(self.statuses(), 2 * ["ok"] + 2 * ["waiting"])
        self.run_kiln("-m", "--resume", "s", "kiln.sweep.max_steps=33")
        self.assertEqual(self.statuses(), 3 * ["ok"] + ["waiting"])

    def test_timeout(self):
        out, _ = self.run_kiln("-m", *JOB, "trainer.max_epochs=1", "lr=0.1,0.2", "kiln.sweep.timeout=1us", "kiln.sweep.dir=s",
                               status=0)
        self.assertIn("no more jobs start: the time is over (kiln.sweep.timeout)", out)
        self.assertEqual(self.statuses(), 2 * ["waiting"])


if __name__ == "__main__":
    main()
