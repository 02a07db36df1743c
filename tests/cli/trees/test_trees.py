"""task=trees and datamodule=libsvm: the values of XGBoost's Python package, resumed runs, predictions, mistakes."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import gzip
import json
import os
import subprocess

from kilntest import BUILD, ROOT, Braked, main, read, read_json

DATA = os.path.join(ROOT, "tests/data/trees")
TREES = ["task=trees", "datamodule=libsvm", "trainer.threads=1", "test=false"]


def files(kind, train="train", val="test"):
    return [f"datamodule.files.train=[{DATA}/{kind}.{train}.svm]", f"datamodule.files.val=[{DATA}/{kind}.{val}.svm]"]


def text(value):
    """A value in the language of overrides."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{v}" for k, v in value.items()) + "}"
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, list) else str(value)


class Trees(Braked):
    def setUp(self):
        super().setUp()
        process = self.start(*TREES, *files("numbers"), "--plan")
        if "built without XGBoost" in process.communicate()[1]:
            self.skipTest("built without XGBoost")

    def train(self, *args, run="run", epochs=8, **options):
        return self.run_kiln(*TREES, f"trainer.max_epochs={epochs}", f"kiln.run.dir={run}", *args, **options)

    def column(self, name, run="run"):
        rows = csv.DictReader(read(self.path(run, "metrics.csv"), "r").splitlines())
        return [float(row[name]) for row in rows if row[name] != ""]

    def predict(self, *args, run="run", stdin=None):
        done = subprocess.run([os.path.join(BUILD, "kiln"), "predict", run, *args], cwd=self.dir, input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def near(self, got, want, what):
        self.assertEqual(len(got), len(want), what)
        for a, b in zip(got, want):
            self.assertLessEqual(abs(a - b), 2e-6 + 2e-6 * abs(b), f"{what}: {a} for {b}")


class Values(Trees):
    def check(self, n, want):
        options = [f"{'+' * isinstance(value, dict)}task.{name}={text(value)}" for name, value in want["options"].items()]
        run = f"run{n}"
        self.train(*files(want["data"]), *options, run=run)
        for name, values in want["metrics"].items():
            self.near(self.column(name, run), values, f"{options}: {name}")
        for more in ["", "task.contributions=true"]:
            rows = self.predict(f"{DATA}/{want['data']}.test.svm", *([more] if more else []), run=run)
            for i, (row, values) in enumerate(zip(rows, want["predictions"])):
                got = row.get("probabilities", row.get("value", row.get("score")))
                if isinstance(got, dict):
                    got = list(got.values())
                if want["data"] == "binary":
                    got = got[1:]
                self.near(got, values, f"{options}: row {i}")
        flat = lambda values: [v for x in values for v in (flat(x) if isinstance(x, list) else [x])]
        for row, values in zip(rows, want["contributions"]):
            self.near(flat(row["contributions"]), flat(values), f"{options}: contributions")
        table = list(csv.DictReader(read(self.path(run, "importance.csv"), "r").splitlines()))
        gains = {row["column"]: float(row["gain"]) for row in table if float(row["gain"]) > 0}
        self.assertEqual(set(gains), set(want["gain"]))
        for name, gain in gains.items():
            self.assertAlmostEqual(gain / want["gain"][name], 1.0, places=4)

    def test_values_of_xgboost(self):
        for n, want in enumerate(read_json(os.path.join(DATA, "values.json"))):
            with self.subTest(data=want["data"], **want["options"]):
                self.check(n, want)


class Runs(Trees):
    def model(self, run):
        return read(self.path(run, "checkpoints/last/model.ubj"))

    def test_a_killed_run_goes_on_to_the_same_bytes(self):
        """Whatever it samples."""
        columns = ["task.colsample_bytree=0.7", "task.colsample_bynode=0.7"]
        for i, sampling in enumerate([[*columns, "task.subsample=0.6"], columns, ["task.subsample=0.6"],
                                      ["task.tree_method=approx"],
                                      ["task.subsample=0.6", columns[0], "task.tree_method=exact"]]):
            with self.subTest(sampling=sampling):
                self.check_resume([*files("numbers"), *sampling, *self.braked], f"run{i}", f"whole{i}")

    def check_resume(self, args, run, whole):
        self.train(*args, run=whole)
        self.hold(5)
        process = self.start(*TREES, "trainer.max_epochs=8", f"kiln.run.dir={run}", *args)
        self.wait_for(f"{run}/checkpoints/last/model.ubj", process)
        process.kill()
        process.communicate()
        self.let_go()
        out, _ = self.run_kiln("--plugin", self._brake, f"resume={run}")
        self.assertIn("resuming from", out)
        self.assertEqual(self.model(run), self.model(whole))
        self.assertEqual(self.column("val/rmse", run), self.column("val/rmse", whole))

    def test_rounds_of_an_epoch_and_early_stopping(self):
        self.train(*files("numbers"), "task.rounds_per_epoch=4", epochs=2, run="four")
        self.train(*files("numbers"), run="one")
        self.assertEqual(self.model("four"), self.model("one"))
        self.assertEqual(self.column("val/rmse", "four"), self.column("val/rmse", "one")[3::4])
        self.assertEqual(self.column("train/rmse", "four"), self.column("train/rmse", "one")[3::4])
        out, _ = self.train(*files("numbers"), "+callbacks=[early_stopping]", "callbacks.early_stopping.monitor=val/rmse",
                            "callbacks.early_stopping.patience=3", "callbacks.model_checkpoint.monitor=val/rmse", "task.eta=1",
                            epochs=200, run="early")
        values = self.column("val/rmse", "early")
        self.assertEqual(len(values), values.index(min(values)) + 4)
        best = os.path.basename(os.readlink(self.path("early/checkpoints/best")))
        self.assertIn(f"epoch={values.index(min(values)):03d}", best)

    def test_early_stopping_needs_a_metric(self):
        """Which there is depends on the objective, so the task names none."""
        self.refused(*TREES, *files("numbers"), "callbacks=early_stopping",
                     says=["task.monitor=null: expected a metric; it logs: train/rmse, val/rmse", "try task.monitor=val/rmse\n"])

    def test_evaluation_metrics_and_test(self):
        test = f"datamodule.files.test=[{DATA}/classes.test.svm]"
        self.train(*files("classes"), test, "test=true", "+task.metrics.accuracy=metric/accuracy", "+task.metrics.f1=metric/f1",
                   "task.eval_metric=[merror]")
        values = read_json(self.path("run/summary.json"))["metrics"]
        for split in ["val", "test"]:
            self.assertAlmostEqual(values[f"{split}/accuracy"]["last"]["value"],
                                   1.0 - values[f"{split}/merror"]["last"]["value"], places=6)
        out, _ = self.run_kiln("eval", "run", program="kiln")
        self.assertIn("test/accuracy", out)
        self.train(*files("ranking"), "+task.metrics.ndcg={_target_: metric/ndcg, k: 3, gain: exp2, empty: one, ties: order}",
                   "task.eval_metric=[ndcg@3]", run="ranks")
        self.near(self.column("val/ndcg", "ranks"), self.column("val/ndcg@3", "ranks"), "ndcg")

    def test_a_model_of_xgboost_is_continued(self):
        self.train(*files("numbers"), run="whole")
        self.train(*files("numbers"), epochs=3, run="first")
        self.train(*files("numbers"), f"task.init_model={self.path('first/checkpoints/last/model.ubj')}", epochs=5)
        self.assertEqual(self.model("run"), self.model("whole"))
        self.assertEqual(self.column("train/rmse"), self.column("train/rmse", "whole")[3:])
        model = f"task.init_model={self.path('first/checkpoints/last/model.ubj')}"
        self.train(*files("numbers"), model, f"datamodule.files.test=[{DATA}/numbers.test.svm]", "test=true", epochs=0, run="only")
        self.assertEqual(read_json(self.path("only/summary.json"))["metrics"]["test/rmse"]["last"]["value"],
                         self.column("val/rmse", "first")[-1])
        self.assertIn("the model splits 6 columns, but the data has 3",
                      self.few_columns(f"task.init_model={self.path('first/checkpoints/last/model.ubj')}"))

    def few_columns(self, *args):
        self.write("few.svm", "1 1:1 2:2 3:3\n2 1:2 3:1\n3 2:1\n" * 4)
        _, err = self.run_kiln(*TREES, "datamodule.files.train=[few.svm]", "datamodule.target_type=number", *args, status=1)
        return err

    def test_sweep(self):
        self.run_kiln("-m", *TREES, *files("numbers"), "trainer.max_epochs=2", "task.max_depth=2,3", "kiln.sweep.dir=sweep")
        self.assertTrue(os.path.exists(self.path("sweep/0/checkpoints/last/model.ubj")))
        self.assertNotEqual(self.model("sweep/0"), self.model("sweep/1"))


class Files(Trees):
    """What datamodule=libsvm reads."""

    def test_side_files_and_packed_files(self):
        self.train(*files("ranking"), run="qid")
        for split in ["train", "test"]:
            rows = [line.split() for line in read(f"{DATA}/ranking.{split}.svm", "r").splitlines()]
            queries = [row[1] for row in rows]
            self.write(f"{split}.txt.gz", gzip.compress("".join(" ".join([row[0], *row[2:]]) + "\n" for row in rows).encode()))
            self.write(f"{split}.txt.query", "".join(f"{queries.count(q)}\n" for q in dict.fromkeys(queries)))
        out, _ = self.train("datamodule.files.train=[train.txt.gz]", "datamodule.files.val=[test.txt.gz]", run="side")
        self.assertIn("with queries", out)
        self.assertEqual(self.column("val/ndcg", "side"), self.column("val/ndcg", "qid"))

    def test_weights(self):
        self.write("a.svm", "".join(f"{i % 2} 1:{i % 5} 2:{i % 3}\n" for i in range(40)))
        self.write("b.svm", read(self.path("a.svm"), "r") * 2)
        self.write("a.svm.weight", "2\n" * 40)
        for name in "ab":
            self.train(f"datamodule.files.train=[{name}.svm]", f"datamodule.files.val=[{name}.svm]", "task.max_depth=2",
                       run=name)
        self.near(self.column("train/logloss", "a"), self.column("train/logloss", "b"), "weights")

    def test_held_out_queries_are_whole(self):
        out, _ = self.train(f"datamodule.files.train=[{DATA}/ranking.train.svm]", "datamodule.val_fraction=0.3")
        self.assertIn("val/ndcg", out)
        self.assertIn("training queries have a single document", out)

    def test_bad_rows(self):
        good = "1 1:0.5 2:1\n0 1:0.1\n" * 10
        for line, says in [("1 1:0.5 x\n", '"x" is no INDEX:VALUE'), ("1 2:1 1:0\n", "indices must ascend"),
                           ("a 1:1\n", '"a" is no label'), ("1 1:b\n", '"1:b" is no INDEX:VALUE'), ("1:1\n", "has no label"),
                           ("1 -1:1\n", '"-1:1" is no INDEX:VALUE'), ("1 1:1 qid:3\n", "must follow the label")]:
            self.write("bad.svm", good + line + good)
            self.refused(*TREES, "datamodule.files.train=[bad.svm]", says=["bad.svm:21", says, "on_error=skip"])
        out, _ = self.train("datamodule.files.train=[bad.svm]", "datamodule.on_error=skip")
        self.assertIn("train 36, val 4", out)
        self.assertIn("bad.svm:21", out)

    def test_predictions_of_rows(self):
        self.train(*files("classes"))
        by_file = self.predict(f"{DATA}/classes.test.svm")
        self.assertEqual(len(by_file), 40)
        self.assertIn(by_file[0]["class"], ["0", "1", "2"])
        self.write("rows.txt", "1:0.5 3:-1\n\n2:1 900:4\n")
        self.assertEqual(len(self.predict(self.path("rows.txt"))), 3)
        line = read(f"{DATA}/classes.test.svm", "r").splitlines()[0]
        self.assertEqual(self.predict("-", stdin=line + "\n")[0]["probabilities"], by_file[0]["probabilities"])
        self.assertEqual([row["probabilities"] for row in self.predict("split=val")],
                         [row["probabilities"] for row in by_file])


class Mistakes(Trees):
    def test_refused_before_anything_runs(self):
        for kind, args, says in [
            ("numbers", ["task.eval_metric=[foo]"], ['"foo" is no metric', "rmse, rmsle"]),
            ("numbers", ["task.max_bin=1"], ["task.max_bin: expected an integer from 2"]),
            ("numbers", ["task.subsample=0"], ["task.subsample", "expected a number from"]),
            ("numbers", ["task.objective=rank:ndcg"], ["needs queries"]),
            ("numbers", ["task.objective=binary:logistic"], ["needs a class per row"]),
            ("classes", ["task.objective=binary:logistic"], ["needs 2 classes, and the data has 3"]),
            ("numbers", ["task.max_depth=0"], ["0 needs max_leaves above 0"]),
            ("numbers", ["task.tree_method=approx", "task.colsample_bytree=0.5"], ["approx can't sample rows or columns"]),
            ("numbers", ["task.tree_method=approx", "task.subsample=0.5"], ["set subsample and colsample_* to 1"]),
            ("numbers", ["+task.monotone_constraints={foo: 1}"], ['no column "foo"', '"x.0"']),
            ("numbers", ["datamodule.sampler=balanced"], ["datamodule.sampler", "whole training set"]),
        ]:
            self.refused(*TREES, *files(kind), *args, says=says)
        self.refused("task=trees", "datamodule=digits", says=['the data has "image", image', "such as libsvm"])

    def test_errors_of_xgboost(self):
        self.write("negative.svm", "-1 1:1\n2.5 1:2\n" * 10)
        _, err = self.train("datamodule.files.train=[negative.svm]", "task.objective=count:poisson", status=1)
        self.assertIn("XGBoost, a boosting round:", err)
        self.assertNotIn("Stack trace", err)
        self.write("broken.json", "{}")
        _, err = self.train(*files("numbers"), "task.init_model=broken.json", run="broken", status=1)
        self.assertIn("broken.json", err)


if __name__ == "__main__":
    main()
