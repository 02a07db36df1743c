"""Texts with any number of labels: how files have them, training to predictions, weights of labels, mistakes."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import random
import subprocess

from kilntest import BUILD, Case, main, read_json

WORDS = {"joy": ["fine", "warm"], "long": ["hours", "slow"], "sad": ["dull", "cold"]}
TRAIN = ["task=multilabel_classification", "datamodule=labeled_text", "datamodule.multilabel=true", "model=bag_of_tokens",
         "model.width=16", "optimizer=adam", "lr=0.05", "batch_size=16", "trainer.threads=1"]


def rows(n, seed=1):
    rng = random.Random(seed)
    for i in range(n):
        labels = [label for label in WORDS if rng.random() < 0.4]
        words = ["a", "film", f"no{i % 9}"] + [rng.choice(WORDS[label]) for label in labels]
        rng.shuffle(words)
        yield " ".join(words), labels


class Multilabel(Case):
    def kiln(self, *args, stdin="", status=0):
        done = subprocess.run([os.path.join(BUILD, "kiln"), *args], cwd=self.dir, input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def train(self, *args, run="run", epochs=1, status=0):
        return self.kiln("train", *TRAIN, f"trainer.max_epochs={epochs}", f"kiln.run.dir={run}", *args, status=status)

    def last(self, run):
        return {name: metric["last"]["value"] for name, metric in read_json(self.path(run, "summary.json"))["metrics"].items()}

    def write_jsonl(self, name, n, seed=1):
        self.write(name, "".join(json.dumps({"text": t, "label": l}) + "\n" for t, l in rows(n, seed)))

    def test_formats(self):
        """Lists, a column with separators, and a column per label give the same samples; labels are sorted, or in the order of
        the columns."""
        self.write_jsonl("a.jsonl", 80)
        self.write("a.csv", "text,label\n" + "".join(f"{t},{' | '.join(reversed(l))}\n" for t, l in rows(80)))
        self.write("b.tsv", "text\t" + "\t".join(WORDS) + "\n" +
                   "".join(t + "".join(f"\t{int(w in l)}" for w in WORDS) + "\n" for t, l in rows(80)))
        values = []
        for name, more in [("a.jsonl", []), ("a.csv", ["datamodule.label_separator=|"]),
                           ("b.tsv", ["datamodule.label_columns=[joy,long,sad]"])]:
            out, _ = self.train(f"datamodule.files.train=[{name}]", *more, run=name + "-run")
            self.assertIn("joy, long, sad", out)
            values.append(self.last(name + "-run"))
        self.assertEqual(values[0], values[1])
        self.assertEqual(values[0], values[2])
        self.write("a.txt", "".join("".join(f"__label__{x} " for x in l) + t + "\n" for t, l in rows(80) if l))
        self.train("datamodule.files.train=[a.txt]", "datamodule.format=labeled", run="labeled")

    def test_from_training_to_predictions(self):
        """It learns; the test gives the metrics; predictions of raw text are those of the test split; the threshold decides."""
        self.write_jsonl("a.jsonl", 200)
        self.write_jsonl("b.jsonl", 30, seed=2)
        self.train("datamodule.files.train=[a.jsonl]", "datamodule.files.test=[b.jsonl]", epochs=20,
                   *["+task.metrics.ap={_target_: metric/average_precision, per_class: true}"])
        metrics = self.last("run")
        for name in "accuracy", "micro_f1", "macro_f1", "ap", "ap/joy", "ap/long", "ap/sad":
            self.assertGreater(metrics[f"test/{name}"], 0.9, name)
        expected = [labels for _, labels in rows(30, 2)]
        split = [json.loads(line) for line in self.kiln("predict", "ckpt_path=run/checkpoints/best", "split=test")[0].splitlines()]
        raw = [json.loads(line) for line in self.kiln("predict", "run/checkpoints/best", "b.jsonl")[0].splitlines()]
        right = sum(sorted(row["labels"]) == labels for row, labels in zip(split, expected))
        self.assertAlmostEqual(right / 30, metrics["test/accuracy"], places=6)
        self.assertEqual([row["labels"] for row in raw], [row["labels"] for row in split])
        for a, b in zip(split, raw):
            self.assertEqual(list(a["probabilities"]), ["joy", "long", "sad"])
            for label, p in a["probabilities"].items():
                self.assertAlmostEqual(p, b["probabilities"][label], places=6)
                self.assertEqual(label in a["labels"], p >= 0.5)
            self.assertNotIn("class", a)
        out, _ = self.kiln("predict", "run", "-", "task.threshold=0.000001", stdin="a film\n")
        self.assertEqual(json.loads(out)["labels"], ["joy", "long", "sad"])
        self.kiln("predict", "ckpt_path=run", "split=test", "output=p.csv")
        head = pathlib.Path(self.path("p.csv")).read_text().splitlines()[0]
        self.assertIn("labels/joy", head)

    def test_balanced(self):
        """Weights from the training samples are those given as numbers, also when the checkpoint is evaluated."""
        self.write_jsonl("a.jsonl", 80)
        self.write_jsonl("v.jsonl", 20, seed=2)
        files = ["datamodule.files.train=[a.jsonl]", "datamodule.files.val=[v.jsonl]"]
        counts = [sum(word in labels for _, labels in rows(80)) for word in WORDS]
        weights = ",".join(repr((80 - n) / n) for n in counts)
        self.train(*files, "task.loss={_target_: loss/binary_cross_entropy, balanced: true}", run="balanced")
        self.train(*files, f"task.loss={{_target_: loss/binary_cross_entropy, pos_weight: [{weights}]}}", run="given")
        self.train(*files, run="plain")
        self.assertAlmostEqual(self.last("balanced")["val/loss"], self.last("given")["val/loss"], places=6)
        self.assertNotAlmostEqual(self.last("balanced")["val/loss"], self.last("plain")["val/loss"], places=3)
        out, _ = self.kiln("eval", "balanced", "split=val")
        self.assertEqual(json.loads(out)["metrics"]["val/loss"], self.last("balanced")["val/loss"])
        _, err = self.kiln("eval", "plain", "split=val", "task.loss.balanced=true", status=1)
        self.assertIn("needs the classes of the training samples", err)

    def test_balanced_classes(self):
        """One class each: weights of the cross-entropy."""
        self.write("a.csv", "text,label\n" + "".join(f"film {i},{'rare' if i % 5 == 0 else 'often'}\n" for i in range(50)))
        args = ["task=classification", "datamodule.multilabel=false", "datamodule.files.train=[a.csv]",
                "datamodule.files.val=[a.csv]"]
        self.train(*args, "task.loss={_target_: loss/cross_entropy, balanced: true}", run="balanced")
        self.train(*args, "task.loss={_target_: loss/cross_entropy, class_weights: [0.625, 2.5]}", run="given")
        self.assertEqual(self.last("balanced")["val/loss"], self.last("given")["val/loss"])

    def test_resume(self):
        self.write_jsonl("a.jsonl", 60)
        args = ["datamodule.files.train=[a.jsonl]", "task.loss={_target_: loss/binary_cross_entropy, balanced: true}"]
        self.train(*args, "callbacks.model_checkpoint.save_top_k=-1", epochs=3, run="whole")
        first, = pathlib.Path(self.path("whole/checkpoints")).glob("epoch=000-*")
        self.train(*args, f"ckpt_path={first}", epochs=3, run="again")
        weights = [pathlib.Path(self.path(run, "checkpoints/last/model.safetensors")).read_bytes() for run in ("whole", "again")]
        self.assertEqual(weights[0], weights[1])

    def test_mistakes(self):
        self.write_jsonl("a.jsonl", 40)
        self.write("flags.csv", "text,joy,sad\nx y,1,0\nx y,2,0\n")
        self.write("one.jsonl", '{"text": "a b", "label": ["joy"]}\n' * 20)
        self.write("test.jsonl", '{"text": "a b", "label": ["joy", "other"]}\n')
        train = "datamodule.files.train=[a.jsonl]"
        flags = ["datamodule.files.train=[flags.csv]"]
        cases = [
            ([train, "datamodule.multilabel=false"], "several labels; expected one (datamodule.multilabel=true"),
            ([train, "task=classification"], "task classification needs a label of i32"),
            ([train, "datamodule.files.test=[test.jsonl]"], 'test.jsonl:1: the label "other" is not one of the 3 classes'),
            ([train, "task.loss={_target_: loss/binary_cross_entropy, pos_weight: [1, 2]}"],
             "pos_weight has 2 numbers, but the data has 3 labels"),
            ([train, "task.loss={_target_: loss/binary_cross_entropy, pos_weight: [1], balanced: true}"], "set one of them"),
            ([*flags, "datamodule.label_columns=[joy,sad]"], 'flags.csv:3: column "joy" has "2"; expected 0 or 1'),
            ([*flags, "datamodule.label_columns=[joy,sat]"], 'did you mean "sad"?'),
            ([*flags, "datamodule.label_columns=[joy,sad]", "datamodule.multilabel=false"], "needs multilabel=true"),
            ([*flags, "datamodule.label_columns=[joy,sad]", "datamodule.classes=[a]"], "leave the option classes out"),
            (["datamodule.files.train=[one.jsonl]"], "needs at least 2 labels, but the data has 1"),
        ]
        for i, (args, message) in enumerate(cases):
            done = subprocess.run([os.path.join(BUILD, "kiln"), "train", *TRAIN, f"kiln.run.dir=m{i}", *args], cwd=self.dir,
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertIn(message, done.stderr)


main()
