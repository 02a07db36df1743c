"""Training on tables: kinds of columns, splits, missing values, bad rows, and predictions of raw rows."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import gzip
import json
import random
import re
import sqlite3

from kilntest import Case, main, read, read_json

FIXED = ["datamodule=table", "optimizer=adam", "lr=0.05", "trainer.threads=1", "batch_size=16", "seed=3", "callbacks=none",
         "trainer.enable_progress_bar=false"]
HEADER = ["id", "age", "city", "joined", "note", "same", "risk"]


def rows(n, seed=1):
    """Rows whose class follows from age and city, with an id, a date, free text and a constant."""
    draw = random.Random(seed)
    for i in range(n):
        age, city = draw.randint(18, 80), draw.choice(["Bonn", "Kiel", "Ulm"])
        yield [str(1000 + i), str(age) if i % 11 else "", city, f"2024-{1 + i % 12:02}-{1 + i % 28:02}",
               f"note no {draw.random()}", "x", "high" if age + 30 * (city == "Ulm") > 55 else "low"]


def csv(table, header=HEADER):
    return "".join(",".join(row) + "\n" for row in ([header] if header else []) + list(table))


class Table(Case):
    def train(self, *args, run="run", epochs=1, status=0, task="classification"):
        return self.run_kiln(*FIXED, f"task={task}", f"trainer.max_epochs={epochs}", f"kiln.run.dir={run}", *args,
                             status=status)

    def metrics(self, run="run"):
        return {k: v["last"]["value"] for k, v in read_json(self.path(run, "summary.json"))["metrics"].items()}

    def plan(self, run="run"):
        return read_json(self.path(run, "checkpoints/last/preprocessing/table.json"))

    def columns(self, out):
        """The kinds in the report."""
        return {line.split()[1]: line.split()[2] for line in out.splitlines() if line.startswith("column ")}

    def test_kinds_are_inferred(self):
        self.write("a.csv", csv(rows(200)))
        out, _ = self.train("datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear", epochs=30)
        self.assertEqual(self.columns(out), {"id": "ignored", "age": "number", "city": "category", "joined": "date",
                                             "note": "text", "same": "ignored", "risk": "target"})
        self.assertIn("each row has a number of its own", out)
        self.assertIn("it has one value", out)
        self.assertIn("x f32 [6], ids i32 [1], label i32", out)
        self.assertGreater(self.metrics()["val/accuracy"], 0.9)

    def config(self, run="run"):
        """The lines of the run's config from datamodule.target_type and datamodule.columns."""
        text = read(self.path(run, ".kiln/config.yaml"), "r")
        target, kinds = re.search(r"^  (target_type: .*)$", text, re.M), re.search(r"^  columns:\n((?:    .*\n)*)", text, re.M)
        return [target[1], *(line.strip() for line in kinds[1].splitlines())]

    KEPT = ["target_type: classes", "id: ignored", "age: number", "city: category", "joined: date", "note: text", "same: ignored"]

    def test_kinds_are_kept(self):
        """A run's config has the kinds that were inferred, with their origin, and gives the same run."""
        table = list(rows(200))
        self.write("a.csv", csv(table))
        setup = ["datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear"]
        out, _ = self.train(*setup)
        self.assertIn("inferred   options of the datamodule, kept in .kiln/config.yaml of the run", out)
        self.assertNotIn("datamodule.columns", out)
        self.assertEqual(self.config(), self.KEPT)
        out, _ = self.run_kiln("explain", "run", "datamodule.columns.city", program="kiln")
        self.assertIn("set to  category  inferred from a.csv", out)
        out, _ = self.run_kiln("explain", "run", "datamodule.target_type", program="kiln")
        self.assertIn("set to  classes  inferred from a.csv", out)
        model = read(self.path("run", "checkpoints/last/model.safetensors"))
        # a copy of the config gives the same run, and infers nothing
        self.write("copy/config.yaml", read(self.path("run", ".kiln/config.yaml"), "r"))
        out, _ = self.run_kiln("--config-path", "copy", "kiln.run.dir=again")
        self.assertNotIn("inferred", out)
        self.assertEqual(read(self.path("again", "checkpoints/last/model.safetensors")), model)
        # also after the file changed: all ages of cities are numbers now
        self.write("a.csv", csv([[*row[:2], str(i % 3), *row[3:]] for i, row in enumerate(table)]))
        self.run_kiln("--config-path", "copy", "kiln.run.dir=changed")
        self.assertEqual(self.config("changed"), self.KEPT)
        self.assertEqual(self.plan("changed")["columns"][2]["names"], ["0", "1", "2"])
        self.assertEqual(self.train(*setup, run="new")[0].count("city                     number"), 1)
        # a resumed run keeps what it has
        self.run_kiln("resume=run", "trainer.max_epochs=2")
        self.assertEqual(self.config(), self.KEPT)
        out, _ = self.run_kiln("explain", "run", "datamodule.columns.city", program="kiln")
        self.assertIn("set to  category  inferred from a.csv", out)

    def test_kinds_that_are_given_stay(self):
        """Only what is not given is added, also to a mapping that an interpolation stands for."""
        self.write("a.csv", csv(rows(60)))
        self.write("conf/experiment/mine.yaml", "# @package _global_\nmine: {age: category}\n"
                                                "datamodule: {columns: '${mine}', target_type: classes}\n")
        self.train("experiment=mine", "datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear")
        self.assertEqual(sorted(self.config()), sorted([line.replace("age: number", "age: category") for line in self.KEPT]))
        self.assertRegex(read(self.path("run", ".kiln/config.yaml"), "r"), r"\nmine:\n  age: category\n\w")
        out, _ = self.run_kiln("explain", "run", "datamodule.columns.age", program="kiln")
        self.assertIn("conf/experiment/mine.yaml:2:13", out)
        # nothing is left to infer
        kinds = ", ".join(self.KEPT[1:])
        out, _ = self.train("datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear",
                            "datamodule.target_type=classes", f"+datamodule.columns={{{kinds}}}", run="all")
        self.assertNotIn("inferred", out)

    def test_names_that_yaml_reads_differently(self):
        names = ["a.b", "x, y", "<<", "${v}", "null", "1", 'q"q', "[0]", "n" * 300, " lead", "# c", "_target_"]
        draw = random.Random(1)
        lines = [[draw.choice(["u", "v"]) for _ in names] + [draw.choice(["yes", "no"])] for _ in range(40)]
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        self.write("a.csv", csv(lines, [*quoted, "y"]))
        self.train("datamodule.files.train=[a.csv]", "datamodule.target=y", "model=mlp", "model.hidden=[4]")
        self.run_kiln("--config-path", "run/.kiln", "kiln.run.dir=again")
        self.assertEqual(self.plan("again"), self.plan())
        self.run_kiln("resume=run", "trainer.max_epochs=2")
        self.run_kiln("eval", "ckpt_path=run/checkpoints/last", "split=val", program="kiln")

    def test_jobs_of_a_sweep_keep_kinds(self):
        self.write("a.csv", csv(rows(60)))
        self.run_kiln("-m", *FIXED, "task=classification", "trainer.max_epochs=1", "datamodule.files.train=[a.csv]",
                      "datamodule.target=risk", "model=linear,mlp", "kiln.sweep.dir=sweep")
        for job in "01":
            self.assertEqual(self.config(f"sweep/{job}"), self.KEPT)
            out, _ = self.run_kiln("explain", f"sweep/{job}", "datamodule.columns.city", program="kiln")
            self.assertIn("set to  category  inferred from a.csv", out)
            self.assertEqual(read(self.path(f"sweep/{job}", "checkpoints/last/config.yaml"), "r"), read(self.path(f"sweep/{job}", ".kiln/config.yaml"), "r"))
            self.assertIn("\n  lr: ${lr}\n", read(self.path(f"sweep/{job}", ".kiln/job.yaml"), "r"))
            self.assertIn("model=", read(self.path(f"sweep/{job}", ".kiln/overrides.yaml"), "r"))

    def test_plan_prints_a_config(self):
        """What `train --plan` prints can be pasted."""
        self.write("a.csv", csv(rows(60)))
        args = [*FIXED, "task=classification", "datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear"]
        out, _ = self.run_kiln(*args, "--plan")
        block = out.split("a config with this keeps it\n")[1].split("\n\n")[0]
        self.assertEqual([line.strip() for line in block.splitlines()],
                         ["datamodule:", "columns:", *self.KEPT[1:], self.KEPT[0]])
        self.write("conf/experiment/mine.yaml", "# @package _global_\n" + block)
        out, _ = self.run_kiln("experiment=mine", *args, "--plan")
        self.assertNotIn("a config with this", out)

    def test_formats(self):
        """CSV, TSV, JSON lines, gzip, quotes, CRLF, a byte order mark and SQL give the same numbers."""
        table = list(rows(60))
        self.write("a.csv", csv(table))
        self.write("b.csv", b"\xef\xbb\xbf" + "".join(
            ",".join(f'"{v}"' for v in row) + "\r\n" for row in [HEADER, *table]).encode())
        self.write("c.tsv", csv(table).replace(",", "\t"))
        self.write("d.csv.gz", gzip.compress(csv(table).encode()))
        number = {"id": int, "age": lambda v: int(v) if v else None}
        self.write("e.jsonl", "".join(json.dumps({k: number.get(k, str)(v) for k, v in zip(HEADER, row)}) + "\n"
                                      for row in table))
        self.write("f.csv", csv(table, None))
        self.write("g.csv", csv([[v.replace(",", ".") for v in row] for row in table]).replace(",", ";"))
        db = sqlite3.connect(self.path("h.db"))
        db.execute(f"CREATE TABLE people ({', '.join(HEADER)})")
        db.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(HEADER))})",
                       [[number.get(k, str)(v) for k, v in zip(HEADER, row)] for row in table])
        db.commit()
        db.close()
        more = {"f.csv": [f"datamodule.names=[{','.join(HEADER)}]"], "g.csv": ["datamodule.delimiter=';'"],
                "h.db": ["datamodule.query='SELECT * FROM people'"]}
        for name in "a.csv", "b.csv", "c.tsv", "d.csv.gz", "e.jsonl", "f.csv", "g.csv", "h.db":
            self.train(f"datamodule.files.train=[{name}]", "datamodule.target=risk", "model=mlp", "model.hidden=[8]",
                       *more.get(name, []), run=f"run-{name}")
            self.assertEqual(self.metrics(f"run-{name}"), self.metrics("run-a.csv"), name)
            self.assertEqual(self.plan(f"run-{name}"), self.plan("run-a.csv"), name)

    def test_predict_is_test(self):
        """Raw rows of a file, and of JSON, get what the same rows of the test split got."""
        table = list(rows(40, 7))
        self.write("a.csv", csv(rows(120)))
        self.write("b.csv", csv(table))
        keys = ["age", "city", "joined"]
        self.write("b.jsonl", "".join(json.dumps({k: v for k, v in zip(HEADER, row) if k in keys and v}) + "\n" for row in table))
        for scaling in "standard", "quantile":
            self.train("datamodule.files.train=[a.csv]", "datamodule.files.test=[b.csv]", "datamodule.target=risk",
                       "model=mlp", "model.hidden=[8]", f"datamodule.scaling={scaling}", "datamodule.missing_indicators=true",
                       run=scaling)
            predicted = {}
            for name in "split=test", "input=b.csv", "input=b.jsonl":
                out, _ = self.run_kiln("predict", f"ckpt_path={scaling}/checkpoints/last", name, program="kiln")
                predicted[name] = [json.loads(line)["probabilities"] for line in out.splitlines()]
            self.assertEqual(len(predicted["split=test"]), 40)
            self.assertEqual(predicted["input=b.csv"], predicted["split=test"])
            self.assertEqual(predicted["input=b.jsonl"], predicted["split=test"])
        # what a row lacks, and what it should not have
        self.write("c.csv", "age,city,joined\nold,Bonn,2024-01-01\n30,Paris,2024-01-01\n30,Bonn,tomorrow\n")
        out, _ = self.run_kiln("predict", "ckpt_path=standard/checkpoints/last", "input=c.csv", program="kiln", status=1)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertIn('column "age" has "old"; expected a number', lines[0]["error"])
        self.assertIn("probabilities", lines[1])
        self.assertIn('column "joined" has "tomorrow"; expected a date', lines[2]["error"])
        self.write("d.csv", "age,joined\n30,2024-01-01\n")
        _, err = self.run_kiln("predict", "ckpt_path=standard/checkpoints/last", "input=d.csv", program="kiln", status=1)
        self.assertIn('no column "city"', err)

    def test_regression(self):
        """Metrics and predictions are in the data's units, and a resumed run equals one that was not stopped."""
        draw = random.Random(2)
        points = [(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(200)]
        self.write("a.csv", "a,b,price\n" + "".join(f"{a},{b},{50000 + 20000 * a - 7000 * b}\n" for a, b in points))
        options = ["datamodule.files.train=[a.csv]", "datamodule.target=price", "model=linear", "scheduler=constant"]
        self.train(*options, task="regression", epochs=40)
        metrics = self.metrics()
        self.assertLess(metrics["val/rmse"], 2000)
        self.assertGreater(metrics["val/r2"], 0.95)
        self.assertAlmostEqual(metrics["val/mae"], metrics["val/rmse"], delta=2000)
        out, _ = self.run_kiln("predict", "ckpt_path=run/checkpoints/last", "input=a.csv", program="kiln")
        first = json.loads(out.splitlines()[0])["value"][0]
        a, b = points[0]
        self.assertAlmostEqual(first, 50000 + 20000 * a - 7000 * b, delta=6000)
        for loss in "mae", "huber":
            self.train(*options, f"task.loss={loss}", "task.standardize=true", task="regression", epochs=40, run=loss)
            self.assertLess(self.metrics(loss)["val/rmse"], 4000, loss)
        self.train(*options, "+callbacks.model_checkpoint._target_=callback/model_checkpoint",
                   "callbacks.model_checkpoint.monitor=null", task="regression", epochs=2, run="part")
        self.run_kiln("resume=part", "trainer.max_epochs=4")
        self.train(*options, task="regression", epochs=4, run="once")
        self.assertEqual(self.metrics("part")["val/rmse"], self.metrics("once")["val/rmse"])

    def test_splits(self):
        table = list(rows(200))
        self.write("a.csv", csv(table))
        options = ["datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear"]
        out, _ = self.train(*options, "datamodule.val_fraction=0.16", "datamodule.test_fraction=0.2")
        self.assertIn("samples    train 128, val 32, test 40", out)
        names = [r + ["train" if i % 4 < 2 else "val" if i % 4 == 2 else "test"] for i, r in enumerate(table)]
        self.write("b.csv", csv(names, HEADER + ["part"]))
        out, _ = self.train("datamodule.files.train=[b.csv]", "datamodule.target=risk", "model=linear",
                            "datamodule.split_column=part", run="column")
        self.assertIn("samples    train 100, val 50, test 50", out)
        self.assertEqual(self.columns(out)["part"], "ignored")
        self.write("c.csv", csv(rows(30, 5)))
        self.write("d.csv", csv([row[:-1] for row in rows(10, 6)], HEADER[:-1]))
        out, _ = self.train("datamodule.files.train=[a.csv]", "datamodule.files.val=[c.csv]", "datamodule.files.test=[d.csv]",
                            "datamodule.target=risk", "model=linear", run="files")
        self.assertIn("samples    train 200, val 30, test 10", out)
        # evaluation divides the rows as training did
        out, _ = self.run_kiln("eval", "ckpt_path=run/checkpoints/last", program="kiln")
        self.assertEqual(json.loads(out)["samples"], 40)
        self.assertEqual(json.loads(out)["metrics"]["test/accuracy"], self.metrics()["test/accuracy"])

    def test_hashed_categories(self):
        """Values that training lacks have an id, too; ids are the same in training and prediction."""
        self.write("a.csv", csv([row[:2] + [row[2] if i % 10 else ""] + row[3:] for i, row in enumerate(rows(200))]))
        options = ["datamodule.files.train=[a.csv]", "datamodule.target=risk", "+datamodule.columns={id: ignored, note: ignored}"]
        out, _ = self.train(*options, "+datamodule.hash_buckets={city: 1000}", "model=linear", epochs=30)
        self.assertEqual(self.columns(out)["city"], "category")
        self.assertIn("17 missing; hashed into 1000", out)
        self.assertGreater(self.metrics()["val/accuracy"], 0.8)
        column = next(c for c in self.plan()["columns"] if c["name"] == "city")
        self.assertEqual((column["hash_buckets"], column["names"]), (1000, []))
        # in one bucket all values are alike, also new ones
        self.train(*options, "+datamodule.hash_buckets={city: 1}", "model=linear", run="one")
        self.write("b.jsonl", "".join(json.dumps({"age": 50, "joined": "2024-05-31", "city": city}) + "\n"
                                      for city in ("Bonn", "Oslo", None, "Bonn")))
        for run, alike in ("one", True), ("run", False):
            out, _ = self.run_kiln("predict", f"ckpt_path={run}/checkpoints/last", "input=b.jsonl", program="kiln")
            bonn, oslo, missing, again = [json.loads(line)["probabilities"] for line in out.splitlines()]
            self.assertEqual(bonn, again)
            self.assertEqual(bonn == oslo, alike)
            self.assertNotEqual(bonn, missing)
        for buckets, says in {"{cty: 9}": 'hash_buckets: no column "cty" (did you mean "city"?)', "{risk: 9}": 'column "risk" is the target',
                              "{id: 9}": 'column "id" is ignored; only categories are hashed'}.items():
            _, err = self.train(*options, f"+datamodule.hash_buckets={buckets}", "model=linear", run="bad", status=1)
            self.assertIn(says, err)

    def held_out(self, split, run):
        """The rows of a split, by their lines in the file: 0 is the first."""
        out, _ = self.run_kiln("predict", f"ckpt_path={run}/checkpoints/last", f"split={split}", program="kiln")
        return [int(json.loads(line)["file"].rsplit(":", 1)[1]) - 2 for line in out.splitlines()]

    def test_last_rows_are_held_out(self):
        """Of all rows, or of each group; times are numbers or dates, in any order in the file."""
        draw = random.Random(4)
        times = draw.sample(range(1000, 9000), 60)
        users = [draw.choice(["ann", "bob", "cy", ""]) for _ in times[2:]] + ["once", "twice"]
        users[0] = "twice"
        table = [[user, str(time), str(draw.random()), str(draw.random())] for user, time in zip(users, times)]
        self.write("a.csv", csv(table, ["user", "time", "x", "y"]))
        options = ["datamodule.files.train=[a.csv]", "datamodule.target=y", "model=linear", "datamodule.split_order=time",
                   "+datamodule.columns={user: category, time: ignored, x: number}"]
        order = sorted(range(60), key=times.__getitem__)
        self.train(*options, "datamodule.val_fraction=0.1", "datamodule.test_fraction=0.2", task="regression")
        self.assertEqual(self.held_out("test", "run"), sorted(order[-12:]))
        self.assertEqual(self.held_out("val", "run"), sorted(order[-18:-12]))

        # rows of no user, and of one with a single row, are trained on; of two rows the last is the test's
        groups = {user: [i for i in order if users[i] == user] for user in users if user not in ("", "once")}
        self.train(*options, "datamodule.leave_last_out=user", task="regression", run="groups")
        self.assertEqual(self.held_out("test", "groups"), sorted(rows[-1] for rows in groups.values()))
        self.assertEqual(self.held_out("val", "groups"), sorted(rows[-2] for rows in groups.values() if len(rows) > 2))
        # without an order, as they stand in the file; with a file for the test, the last rows are validation's
        self.train(*options, "datamodule.leave_last_out=user", "datamodule.split_order=null", "datamodule.files.test=[a.csv]",
                   task="regression", run="file")
        self.assertEqual(self.held_out("val", "file"), sorted(max(rows) for rows in groups.values()))

        dates = [f"2024-{1 + i % 12:02}-{1 + i % 28:02}T{i % 24:02}:00" for i in range(60)]
        self.write("b.csv", csv([[d, *row[2:]] for d, row in zip(dates, table)], ["time", "x", "y"]))
        self.train("datamodule.files.train=[b.csv]", "datamodule.target=y", "model=linear", "datamodule.split_order=time",
                   "datamodule.val_fraction=0.25", task="regression", run="dates")
        self.assertEqual(self.held_out("val", "dates"), sorted(sorted(range(60), key=dates.__getitem__)[-15:]))

    def test_mistakes_in_the_order_of_rows(self):
        self.write("a.csv", "time,when,x,y\n1,soon,3,4\n2,,3,5\n3,later,3,6\n")
        options = ["datamodule.files.train=[a.csv]", "datamodule.target=y", "model=linear"]
        _, err = self.train(*options, "datamodule.split_order=when", status=1, task="regression")
        self.assertIn('a.csv:2: column "when" (split_order) has no number and no date', err)
        _, err = self.train(*options, "datamodule.split_order=tme", status=1, task="regression", run="b")
        self.assertIn('split_order: no column "tme" (did you mean "time"?)', err)
        _, err = self.train(*options, "datamodule.leave_last_out=user", status=1, task="regression", run="c")
        self.assertIn('leave_last_out: no column "user"', err)
        _, err = self.train(*options, "datamodule.leave_last_out=x", "datamodule.split_column=y", status=1, task="regression", run="d")
        self.assertIn("says which rows are held out; leave_last_out has no use then", err)

    def test_unknown_categories_and_leaks(self):
        table = list(rows(100))
        self.write("a.csv", csv([row + [row[-1].upper(), str(int(row[-1] == "low"))] for row in table],
                                HEADER + ["copy", "flag"]))
        self.write("b.csv", csv([row[:2] + ["Oslo"] + row[3:] + [row[-1].upper(), "1"] for row in table[:20]],
                                HEADER + ["copy", "flag"]))
        out, _ = self.train("datamodule.files.train=[a.csv]", "datamodule.files.val=[b.csv]", "datamodule.target=risk",
                            "model=linear")
        words = " ".join(out.split())
        self.assertIn("val: values that the training rows lack are read as unknown: city 20", words)
        for column in "copy", "flag":  # texts, and numbers
            self.assertIn(f'warning: column "{column}" alone tells the target "risk"', words)

    def test_models(self):
        """Linear, MLP with periodic numbers, and the transformer over columns learn it."""
        self.write("a.csv", csv(rows(300)))
        self.write("b.csv", csv(rows(100, 9)))
        files = ["datamodule.files.train=[a.csv]", "datamodule.files.test=[b.csv]", "datamodule.target=risk"]
        models = {"linear": [], "mlp": ["model.hidden=[16]", "model.numbers=periodic", "model.number_width=4"],
                  "ft_transformer": ["model.width=16", "model.layers=1", "model.heads=2", "model.mlp_dim=16", "lr=0.01"]}
        for model, options in models.items():
            self.train(*files, f"model={model}", *options, epochs=15, run=model)
            self.assertGreater(self.metrics(model)["test/accuracy"], 0.9, model)
        self.train(*files, "model=ft_transformer", "model.width=16", "model.layers=1", "model.heads=2", "model.mlp_dim=16",
                   "model.embed.numbers=periodic", "model.embed.frequencies=4", run="periodic")

    def test_categories_alone(self):
        """Every model of rows takes a table without numbers; predictions and a resumed run agree."""
        draw = random.Random(2)
        table = [[draw.choice("abcd"), draw.choice(["left", "right"])] for _ in range(240)]
        table = [[*row, "yes" if (row[0] in "ab") == (row[1] == "left") or row[0] == "a" else "no"] for row in table]
        self.write("a.csv", csv(table, ["letter", "side", "y"]))
        files = ["datamodule.files.train=[a.csv]", "datamodule.target=y"]
        for model, least in {"linear": 0.75, "mlp": 0.95, "ft_transformer": 0.95, "dlrm": 0.95}.items():
            options = ["model.width=16", "model.layers=1", "model.heads=2", "model.mlp_dim=16", "lr=0.01"]
            out, _ = self.train(*files, f"model={model}", *(options if model == "ft_transformer" else []), epochs=15, run=model)
            self.assertIn("a sample   ids i32 [2], label i32", out)
            self.assertGreaterEqual(self.metrics(model)["val/accuracy"], least, model)
        for model in "linear", "mlp":
            self.train(*files, f"model={model}", "scheduler=constant", epochs=5, run=f"{model}-5")
            self.run_kiln(f"resume={model}-5", "trainer.max_epochs=6")
            self.train(*files, f"model={model}", "scheduler=constant", epochs=6, run=f"{model}-6")
            weights = [read(self.path(f"{model}-{n}", "checkpoints/last/model.safetensors")) for n in (5, 6)]
            self.assertTrue(weights[0] == weights[1], model)
            out, _ = self.run_kiln("predict", f"ckpt_path={model}/checkpoints/last", "input=a.csv", program="kiln")
            self.assertEqual(len(out.splitlines()), 240)
        _, err = self.train(*files, "model=mlp", "model.numbers=periodic", status=1, run="refused")
        self.assertIn("periodic makes vectors of numbers, and the data have none", err)

    def test_texts_alone(self):
        self.write("a.csv", "title,y\n" + "".join(f"{'good' if i % 2 else 'bad'} film {i},{i % 2}\n" for i in range(80)))
        files = ["datamodule.files.train=[a.csv]", "datamodule.target=y"]
        _, err = self.train(*files, "model=mlp", status=1)
        self.assertIn('learn from texts such as "title": tokenizer=words', " ".join(err.split()))
        _, err = self.train(*files, "datamodule.tokenizer=words", "model=mlp", status=1)
        self.assertIn("mlp takes an image", err)
        self.train(*files, "datamodule.tokenizer=words", "model=bag_of_tokens", epochs=10)
        self.assertGreater(self.metrics()["val/accuracy"], 0.9)

    def refused_table(self, text, *options, says, name="bad.csv", **more):
        self.write(name, text)
        _, err = self.train(f"datamodule.files.train=[{name}]", "model=linear", *options, status=1, run="refused", **more)
        for part in says:
            self.assertIn(part, " ".join(err.split()))
        return err

    def test_bad_files(self):
        good, target = csv(rows(40)), "datamodule.target=risk"
        self.refused_table("", target, says=["bad.csv: is empty"])
        self.refused_table("a,b\n", "datamodule.target=b", says=["no row can be used"])
        self.refused_table("a,b\n1,x\n", "datamodule.target=b", says=["no column is left to learn from"])
        self.refused_table("a,a\n1,2\n", says=['bad.csv:1: two columns are called "a"; rename one of them'])
        self.refused_table(good + "1,2\n", target, says=["bad.csv:42: the row has 2 columns; expected 7", "on_error=skip"])
        self.refused_table(good.encode() + b"7,50,K\xf6ln,2024-01-01,n,x,low\n", target, says=["bad.csv:42", "not UTF-8"])
        self.refused_table(good.encode() + b"7,50,K\x00ln,2024-01-01,n,x,low\n", target, says=["bad.csv:42", "NUL"])
        self.refused_table(good + '7,"50,x\n', target, says=["a quote in this row is never closed"])
        self.refused_table(good + '7,"50,x\n7,"50",x\n', target, says=["bad.csv:43: text after a quoted field that begins in line 42"])
        self.refused_table(good + "7,5O,Ulm,2024-01-01,n,x,low\n", target,
                           says=['bad.csv:42: column "age" has "5O"; expected a number'])
        self.refused_table(good + "7,1e999,Ulm,2024-01-01,n,x,low\n", target,
                           says=['column "age" has "1e999"; expected a number'])
        self.refused_table(good + '7,"50,5",Ulm,2024-01-01,n,x,low\n', target,
                           says=['column "age" has "50,5"', 'decimal=","'])
        self.refused_table(good + "7,50,Ulm,2024-01-01,n,x,nan\n", target,
                           says=['bad.csv:42: the target (column "risk") is missing'])
        self.refused_table(good, "datamodule.target=risc", says=['target: no column "risc" (did you mean "risk"?)'])
        self.refused_table(good, target, "+datamodule.columns={agee: number}", says=['columns: no column "agee"', "age"])
        self.refused_table(good, target, "datamodule.target_type=number", says=['column "risk" has', "expected a number"],
                           task="regression")
        self.refused_table(good.replace("high", "low"), target, says=["needs at least 2 classes"])
        self.write("val.csv", "id,age\n1,2\n")
        self.refused_table(good, target, "datamodule.files.val=[val.csv]", says=["files.val: val.csv lacks the column"])

    def test_bad_rows_are_skipped(self):
        good = csv(rows(40))
        self.write("a.csv", good)
        self.write("b.csv", good + "1,2\n" + "7,5O,Ulm,2024-01-01,n,x,low\n" * 2 + "7,50,Ulm,2024-01-01,n,x,\n")
        options = ["datamodule.target=risk", "model=linear", "datamodule.on_error=skip", "datamodule.files.val=[a.csv]"]
        self.train("datamodule.files.train=[a.csv]", *options, run="a")
        out, _ = self.train("datamodule.files.train=[b.csv]", *options, run="b")
        words = " ".join(out.split())
        self.assertIn("b.csv:42: the row has 2 columns; expected 7", words)
        self.assertIn('2 train rows such as b.csv:43: column "age" has "5O"', words)
        self.assertIn('b.csv:45: the target (column "risk") is missing', words)
        self.assertEqual(self.metrics("a")["val/loss"], self.metrics("b")["val/loss"])

    def test_missing_stays_nan(self):
        """For trees: missing numbers are NaN, so a network's loss is NaN."""
        self.write("a.csv", csv(rows(60)))
        _, err = self.train("datamodule.files.train=[a.csv]", "datamodule.target=risk", "model=linear",
                            "datamodule.missing='nan'", status=3)
        self.assertIn("nan", err.lower())


main()
