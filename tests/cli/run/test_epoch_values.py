"""An epoch's value is the mean of its steps wherever a user reads it, and a test belongs to the right epoch."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import os
import re
import unittest

from kilntest import TINY, Case, main, read_json

EACH = [*TINY, "datamodule.train_count=100", "datamodule.batch_size=16", "trainer.log_every_n_steps=1",
        "trainer.max_epochs=3", "kiln.run.dir=run"]
SIZES = [16] * 6 + [4]  # of the batches of an epoch


class Epochs(Case):
    def rows(self, run="run"):
        with open(self.path(run, "metrics.csv"), newline="") as f:
            return list(csv.DictReader(f))

    def metrics(self, run="run"):
        return read_json(self.path(run, "summary.json"))["metrics"]

    def means(self, name="train/loss", run="run"):
        """Weighted by the size of each batch, from the values of the steps."""
        found = {}
        for row in self.rows(run):
            if row[f"{name}_step"]:
                found.setdefault(int(row["epoch"]), []).append(float(row[f"{name}_step"]))
        return {epoch: sum(v * n for v, n in zip(values, SIZES, strict=True)) / sum(SIZES)
                for epoch, values in found.items()}

    def test_the_mean_is_shown_everywhere(self):
        out, _ = self.run_kiln(*EACH)
        means = self.means()
        self.assertEqual(sorted(means), [0, 1, 2])
        logged = {int(row["epoch"]): float(row["train/loss_epoch"]) for row in self.rows() if row["train/loss_epoch"]}
        shown = {int(epoch): float(value) for epoch, value in
                 re.findall(r"(?m)^epoch (\d)/2 .*?train/loss (\d\.\d{4}) ", out)}
        for epoch, mean in means.items():
            self.assertAlmostEqual(logged[epoch], mean, places=6)
            self.assertAlmostEqual(shown[epoch], mean, places=4)
        found = self.metrics()["train/loss_epoch"]
        self.assertEqual(found["last"], {"value": logged[2], "epoch": 2, "step": 21})
        self.assertEqual(found["best"]["value"], min(logged.values()))
        self.assertNotIn("train/loss_step", self.metrics(), "the last batch's")
        self.assertRegex(out, rf"(?m)^train/loss_epoch +{logged[2]:.4g} ")
        self.assertNotIn("train/loss_step", out)

    def test_of_a_task_with_two_optimizers(self):
        self.run_kiln(*EACH, "experiment=gan/digits", "trainer.max_epochs=2", "datamodule.train_count=100",
                      "datamodule.batch_size=16", "~model.hidden")
        for name in ["train/generator_loss", "train/discriminator_loss"]:
            means = self.means(name)
            self.assertAlmostEqual(self.metrics()[f"{name}_epoch"]["last"]["value"], means[1], places=5)

    def test_a_run_shorter_than_the_interval_has_a_loss(self):
        out, _ = self.run_kiln(*TINY, "kiln.run.dir=run")
        self.assertIn("trainer.log_every_n_steps=50 is larger than the 8 steps of an epoch", out)
        self.assertEqual(len([row for row in self.rows() if row["train/loss_epoch"]]), 2)
        if "no plots" not in out:
            self.assertTrue(os.path.exists(self.path("run/plots/loss.png")))
        for args in [["trainer.log_every_n_steps=8"], ["trainer.log_every_n_steps=0"], ["~logger"]]:
            out, _ = self.run_kiln(*TINY, *args)
            self.assertNotIn("log_every_n_steps=", re.sub(r"(?m)^trainer\.\S+ +\d+ +argument.*$", "", out))

    def test_monitored_it_is_the_mean(self):
        """Under its plain name, or as NAME_epoch; that of steps under NAME_step."""
        for name, of_epochs in [("train/loss", True), ("train/loss_epoch", True), ("train/loss_step", False)]:
            run = name.replace("/", "_")
            self.run_kiln(*EACH, f"callbacks.model_checkpoint.monitor={name}", f"kiln.run.dir={run}")
            state = read_json(self.path(run, "checkpoints/last/state.json"))["callbacks"]["callbacks.model_checkpoint"]
            scores = [float(row["train/loss_epoch"]) for row in self.rows(run) if row["train/loss_epoch"]]
            if not of_epochs:
                steps = [row for row in self.rows(run) if row["train/loss_step"]]
                scores = [float(row["train/loss_step"]) for row in steps if row["batch"] == "7"]
            self.assertIn(min(scores), [float(value) for value in re.findall(r"\d+\.\d+(?:e-\d+)?", str(state))], name)

    def test_a_sweep_ranks_by_the_mean(self):
        self.run_kiln("-m", *EACH[:-1], "lr=0.001,0.1,0.01", "kiln.sweeper.metric=train/loss", "kiln.sweep.dir=sweep")
        ranked = read_json(self.path("sweep/results.json"))["ranked"]
        best = [self.metrics(f"sweep/{i}")["train/loss_epoch"]["best"]["value"] for i in range(3)]
        self.assertEqual(ranked, sorted(range(3), key=lambda i: best[i]))

    def test_a_test_is_of_the_checkpoint_that_was_tested(self):
        out, _ = self.run_kiln(*TINY, "trainer.max_epochs=4", "callbacks.model_checkpoint.monitor=lr",
                               "callbacks.model_checkpoint.mode=max", "scheduler=exponential", "kiln.run.dir=run")
        best = os.readlink(self.path("run/checkpoints/best"))
        epoch, step = map(int, re.match(r"epoch=(\d+)-step=(\d+)", best).groups())
        self.assertLess(step, 32, "not the end of the run")
        row = self.rows()[-1]
        self.assertEqual([row[k] for k in ["phase", "epoch", "step", "samples"]],
                         ["test", str(epoch), str(step), str(32 * step)])
        found = self.metrics()["test/accuracy"]
        for which in ["last", "best"]:
            self.assertEqual((found[which]["epoch"], found[which]["step"]), (epoch, step))
        self.assertRegex(out, rf"(?m)^test/accuracy .* {epoch}$")
        summary = read_json(self.path("run/summary.json"))
        self.assertEqual((summary["epochs"], summary["steps"]), (4, 32), "of the run")


if __name__ == "__main__":
    main()
