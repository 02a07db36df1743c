"""Metrics selected on the command line: what is logged, rejected and shown."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os

from kilntest import Case, TINY, main, read_json

QUICK = [*TINY, "trainer.max_epochs=1", "task=vision", "kiln.run.dir=run"]


class Metrics(Case):
    def rows(self, run):
        with open(self.path(run, "metrics.csv"), newline="") as f:
            return list(csv.DictReader(f))

    def test_columns(self):
        self.run_kiln(*QUICK, "+task.metrics.f1=f1", "task.metrics.f1.per_class=true",
                      "+task.metrics.top3={_target_: accuracy, top_k: 3}", "+task.metrics.area=auroc")
        last = {}
        for row in self.rows("run"):  # training, validation and test have rows of their own
            last.update({name: value for name, value in row.items() if value})
        for phase in ["train", "val", "test"]:
            each = [float(last[f"{phase}/f1/{c}"]) for c in range(10)]
            self.assertAlmostEqual(float(last[f"{phase}/f1"]), sum(each) / 10)
            self.assertGreaterEqual(float(last[f"{phase}/top3"]), float(last[f"{phase}/accuracy"]))
            self.assertTrue(0 < float(last[f"{phase}/area"]) < 1)
        metrics = read_json(self.path("run", "summary.json"))["metrics"]
        self.assertIn("val/f1/9", metrics)

    def test_accuracy_is_the_default_and_can_go(self):
        self.run_kiln(*QUICK)
        self.assertIn("val/accuracy", self.rows("run")[-1])
        self.run_kiln(*QUICK, "task.metrics.accuracy=null", "task.monitor=val/loss",
                      "callbacks.model_checkpoint.mode=min", "kiln.run.dir=none")
        self.assertNotIn("val/accuracy", self.rows("none")[-1])

    def test_any_batch_size(self):
        """A test over the same weights, whatever the batches."""
        added = ["+task.metrics.f1=f1", "+task.metrics.area=auroc", "+task.metrics.nll=log_loss"]
        self.run_kiln(*QUICK, *added, "+task.metrics.pairs=confusion_matrix")
        values = []
        for size in [64, 7]:
            out, _ = self.run_kiln("eval", "ckpt_path=run", f"datamodule.batch_size={size}", program="kiln")
            values.append(json.loads(out.strip().splitlines()[-1])["metrics"])
        self.assertEqual(len([name for name in values[0] if name.startswith("test/pairs/")]), 100)
        for name in ["test/accuracy", "test/area", "test/f1", "test/nll", "test/pairs/3/3"]:
            self.assertAlmostEqual(values[0][name], values[1][name], places=6, msg=name)

    def test_the_better_way_is_the_metrics(self):
        """log_loss falls, under whatever name."""
        self.run_kiln(*QUICK, "+task.metrics.surprise=log_loss", "trainer.max_epochs=3")
        rows = [float(r["val/surprise"]) for r in self.rows("run") if r.get("val/surprise")]
        best = read_json(self.path("run", "summary.json"))["metrics"]["val/surprise"]["best"]["value"]
        self.assertEqual(best, min(rows))

    def test_killed_in_mid_epoch(self):
        """Every checkpoint of an epoch's middle leads to the same values."""
        added = ["+task.metrics.f1=f1", "+task.metrics.area=auroc", "+task.metrics.nll=perplexity",
                 "callbacks.model_checkpoint.every_n_train_steps=3", "callbacks.model_checkpoint.save_top_k=-1",
                 "callbacks.model_checkpoint.monitor=null"]
        self.run_kiln(*QUICK, *added)
        folders = [f for f in os.listdir(self.path("run", "checkpoints")) if f.endswith(("step=3", "step=6"))]
        self.assertEqual(len(folders), 2)  # of 8 steps
        for i, folder in enumerate(sorted(folders)):
            self.run_kiln(*QUICK, *added, f"kiln.run.dir=again{i}", f"ckpt_path='run/checkpoints/{folder}'")
            whole, again = ([row for row in self.rows(run) if row["train/f1"]][-1] for run in ["run", f"again{i}"])
            for name in ["train/loss_epoch", "train/accuracy", "train/f1", "train/area", "train/nll"]:
                self.assertEqual(whole[name], again[name], f"{folder}: {name}")

    def test_refused(self):
        for words, says in [
                (["+task.metrics.f1=f2"], "there is no metric \"f2\"; did you mean \"f1\"?"),
                (["+task.metrics.f1=f1", "task.metrics.f1.averge=micro"], "did you mean 'task.metrics.f1.average'"),
                (["+task.metrics.f1=f1", "task.metrics.f1.average=mean"], "task.metrics.f1.average"),
                (["+task.metrics.f1=optimizer/sgd"], "task.metrics.f1"),
                (["+task.metrics.top={_target_: accuracy, top_k: 11}"], "task.metrics.top: top_k=11 of 10 classes"),
                (["+task.metrics.f1=f1", "task.metrics.f1.average=binary"], "there are 10 classes"),
                (["+task.metrics.b=bleu"], "it counts rankings, sequences or detections"),
                (["+task.metrics.e=mse"], "it needs f32 targets")]:
            _, err = self.run_kiln(*QUICK, *words, status=1)
            self.assertIn(says, err, words)

    def test_shown(self):
        out, _ = self.run_kiln("show", "metric/f1", program="kiln")
        self.assertRegex(out, r"(?m)^  average +micro\|macro\|weighted\|binary +macro +micro: over all rows")
        self.assertIn("  train task=classification +task.metrics.f1=f1 task.metrics.f1.average=micro", out)
        self.assertIn("  metrics:\n    f1:\n      _target_: metric/f1\n      average: macro\n", out)
        for name in ["mse", "ndcg", "bleu", "slot_f1"]:  # which the task refuses
            out, _ = self.run_kiln("show", f"metric/{name}", program="kiln")
            self.assertIn("a task from a plugin that gives it", out)
            self.assertNotIn("task=vision", out)
        self.assertIn("slot_f1", self.run_kiln("show", "metric", program="kiln")[0])


if __name__ == "__main__":
    main()
