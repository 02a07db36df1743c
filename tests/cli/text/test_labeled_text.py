"""Training on files of texts: formats, bad rows, resuming, and predictions of raw text."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import gzip
import json
import os
import subprocess

from kilntest import BUILD, Case, main, read_json

GOOD, BAD = ["fine", "warm", "joy", "glad"], ["dull", "cold", "bore", "sad"]
MODEL = ["task=classification", "model=bag_of_tokens", "model.width=8", "optimizer=adam", "lr=0.05", "trainer.threads=1",
         "batch_size=8", "seed=3"]


def rows(n, start=0):
    """n texts that a bag of words tells apart, with words that do not matter."""
    words = [(GOOD if i % 2 else BAD, "pos" if i % 2 else "neg", i) for i in range(start, start + n)]
    return [(f"a {w[i % 4]} film {w[i // 4 % 4]} no{i % 7}", label) for w, label, i in words]


def csv(samples):
    return "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in samples)


class LabeledText(Case):
    def kiln(self, *args, stdin="", status=0):
        done = subprocess.run([os.path.join(BUILD, "kiln"), *args], cwd=self.dir, input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def train(self, *args, run="run", epochs=1, status=0):
        return self.kiln("train", "datamodule=labeled_text", *MODEL, f"trainer.max_epochs={epochs}", f"kiln.run.dir={run}",
                         *args, status=status)

    def test_formats(self):
        """Each format gives the same samples, and so the same weights."""
        samples = rows(40)
        self.write("a.csv", csv(samples))
        self.write("a.tsv", "text\tlabel\r\n" + "".join(f"{t}\t{l}\r\n" for t, l in samples))
        self.write("a.jsonl", "\ufeff" + "".join(json.dumps({"label": l, "text": t}) + "\n" for t, l in samples))
        self.write("a.txt", "".join(f"__label__{l} {t}\n" for t, l in samples))
        self.write("a.csv.gz", gzip.compress(csv(samples).encode()))
        files = {"a.csv": [], "a.tsv": [], "a.jsonl": [], "a.txt": ["datamodule.format=labeled"],
                 "a.csv.gz": ["datamodule.cache=cache"]}
        losses = {}
        for name, more in files.items():
            self.train(f"datamodule.files.train=[{name}]", *more, run=f"run-{name}")
            losses[name] = read_json(self.path(f"run-{name}", "summary.json"))["metrics"]
        for name in files:
            self.assertEqual(losses[name]["val/loss"]["last"], losses["a.csv"]["val/loss"]["last"], name)

    def test_folders(self):
        for i, (text, label) in enumerate(rows(24)):
            self.write(f"train/{label}/{i}.txt", text)
        out, _ = self.train("datamodule.files.train=[train]", epochs=20)
        self.assertIn("classes    2: neg, pos", out)

    def test_inferred_formats(self):
        """Files alone are enough: their endings, beginnings and first rows tell the rest, and the run says what."""
        samples = rows(40)
        self.write("a.csv", csv(samples))
        self.write("b.txt", "".join(f"__label__{label} {text}\n" for text, label in samples))
        self.write("c.train", "".join(f"{label}:fine {text}\n" for text, label in samples))
        self.write("d.tsv", "".join(f"{text}\t{label}\n" for text, label in samples))
        self.write("e.csv", "n,label,text\n" + "".join(f"{i},{label},{text}\n" for i, (text, label) in enumerate(samples)))
        for name, told in {"a.csv": "csv, columns text, label, named in the first row", "b.txt": "labeled, columns text, label",
                           "c.train": "label_first, columns text, label", "d.tsv": "tsv, columns text, label, without a header",
                           "e.csv": "csv, columns text, label, named in the first row"}.items():
            out, _ = self.train(f"datamodule.files.train=[{name}]", "datamodule.columns=[text,label]", "datamodule.label_end=:",
                                run=name[0])
            self.assertRegex(out, f"files +{name}: format {told}\n")
            self.assertIn("classes    2: neg, pos", out)
            loss = read_json(self.path(name[0], "summary.json"))["metrics"]["train/loss_epoch"]["last"]["value"]
            self.assertEqual(loss, read_json(self.path("a", "summary.json"))["metrics"]["train/loss_epoch"]["last"]["value"])
        # what is not clear is asked for
        self.write("f.csv", "sentence,label\n" + "".join(f"{text},{label}\n" for text, label in samples))
        for name, options, message in [
                ("f.csv", [], 'no column "text"; columns: sentence, label; this option takes another name, and columns=[...]'),
                ("f.csv", ["datamodule.columns=[text,label]"], 'f.csv:1: has "label", but not "text"'),
                ("c.train", [], "nothing tells the format of the file, so each line is a text: set format"),
                ("c.train", ["datamodule.format=labeled"], "c.train:1: the line does not begin with __label__; format=label_first")]:
            _, err = self.train(f"datamodule.files.train=[{name}]", *options, run="refused", status=1)
            self.assertIn(message, err)
        self.write("g.txt", b"__label__pos a caf\xe9\n__label__neg caf\xc3\xa9\n" * 4)
        out, _ = self.train("datamodule.files.train=[g.txt]", "datamodule.encoding=utf-8-or-latin-1", run="g")
        self.assertIn("café", read_json(self.path("g/checkpoints/last/preprocessing/tokenizer.json"))["model"]["vocab"])

    def test_models_of_a_recipe(self):
        """Each model of texts takes a recipe's data: the tokens, the bag of n-grams, or both."""
        self.write("a.csv", csv(rows(120)))
        for recipe in "trec/bag_of_ngrams", "trec/text_cnn":
            for model in "bag_of_ngrams", "bag_of_tokens", "text_cnn", "text_lstm":
                run = f"{recipe}-{model}".replace("/", "-")
                self.kiln("train", f"experiment={recipe}", f"model={model}", "datamodule.files.train=[a.csv]",
                          "datamodule.bag.buckets=1000", "trainer.max_epochs=1", "trainer.threads=1", f"kiln.run.dir={run}")

    def test_models(self):
        """Each model learns it, with a tokenizer of each kind."""
        self.write("a.csv", csv(rows(120)))
        self.write("b.csv", csv(rows(30, 120)))
        files = ["datamodule.files.train=[a.csv]", "datamodule.files.test=[b.csv]"]
        bag = ["datamodule.bag=ngrams", "datamodule.bag.word_ngrams=2", "datamodule.bag.buckets=1000"]
        for model in [["bag_of_tokens", *bag],
                      ["text_cnn", "model.maps=8"], ["text_lstm", "model.hidden=8", "datamodule.tokenizer=bpe"]]:
            self.train(f"model={model[0]}", "model.width=16", *model[1:], *files, epochs=12, run=model[0])
            metrics = read_json(self.path(model[0], "summary.json"))["metrics"]
            self.assertEqual(metrics["test/accuracy"]["last"]["value"], 1.0, model[0])

    def test_predict_is_validation(self):
        """Texts in a file, and on standard input, get what the same texts of the test split got."""
        samples = rows(20, 100)
        self.write("a.csv", csv(rows(60)))
        self.write("b.csv", csv(samples))
        self.write("b.txt", "".join(f"{text}\n" for text, _ in samples))
        self.train("datamodule.files.train=[a.csv]", "datamodule.files.test=[b.csv]", "model=text_lstm", "model.hidden=8",
                   epochs=2)
        split, _ = self.kiln("predict", "ckpt_path=run", "split=test")
        given, _ = self.kiln("predict", "ckpt_path=run", "input=b.txt")
        split = [json.loads(line) for line in split.splitlines()]
        given = [json.loads(line) for line in given.splitlines()]
        self.assertEqual(len(given), 20)
        piped, _ = self.kiln("predict", "run", "-", stdin="".join(f"{text}\n" for text, _ in samples))
        for a, b in zip([json.loads(line) for line in piped.splitlines()], given, strict=True):
            self.assertEqual(a["class"], b["class"])
            for p, q in zip(a["probabilities"], b["probabilities"]):
                self.assertAlmostEqual(p, q, places=6)
        for a, b in zip(split, given):
            self.assertEqual(a["class"], b["class"])
            for p, q in zip(a["probabilities"], b["probabilities"]):
                self.assertAlmostEqual(p, q, places=6)

    def test_standard_input(self):
        """Each line is answered before the next one comes; one that is no text gets a message."""
        self.write("a.csv", csv(rows(40)))
        self.train("datamodule.files.train=[a.csv]")
        process = subprocess.Popen([os.path.join(BUILD, "kiln"), "predict", "run", "-"], cwd=self.dir, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for i, text in enumerate([b"a fine film\n", b"a dull film\r\n"]):
            process.stdin.write(text)
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            self.assertEqual(answer["index"], i)
            self.assertAlmostEqual(sum(answer["probabilities"]), 1.0, places=5)
        out, err = process.communicate(b"\na\0b\ncaf\xe9\nlast", timeout=60)
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertIn("empty", answers[0]["error"])
        self.assertIn("NUL", answers[1]["error"])
        self.assertIn("not UTF-8", answers[2]["error"])
        self.assertIn("class", answers[3])
        self.assertEqual(answers[3]["file"], "-:6")
        self.assertEqual(process.returncode, 1)
        self.assertIn("some lines could not be read", err.decode())
        self.kiln("predict", "run", "-", "output=x.jsonl", status=2)
        self.kiln("predict", "run", "-", "format=csv", status=2)

    def test_json_from_standard_input(self):
        """Lines are JSON objects with format=jsonl, and where a sample is more than one text."""
        self.write("a.csv", "text,second,label\n" + "".join(f"{t},{t},{l}\n" for t, l in rows(40)))
        self.train("datamodule.files.train=[a.csv]")
        self.train("datamodule.files.train=[a.csv]", "datamodule.pair=second", run="pair")
        lines = '{"text": "a fine film", "second": "a joy"}\nno JSON\n{"text": "a fine film"}\n'
        for run, args, errors in ("run", ["format=jsonl"], [1]), ("pair", [], [1, 2]):
            out, _ = self.kiln("predict", run, "-", *args, stdin=lines, status=1)
            answers = [json.loads(line) for line in out.splitlines()]
            self.assertEqual([i for i, answer in enumerate(answers) if "error" in answer], errors)
            self.assertIn(answers[0]["class"], ("pos", "neg"))
        self.assertIn("not JSON", answers[1]["error"])
        self.assertIn("second", answers[2]["error"])
        self.kiln("predict", "pair", "-", "format=text", status=2)

    def test_columns(self):
        """A column of a table gives the predictions of the same texts in a file."""
        self.write("a.csv", csv(rows(40)))
        self.train("datamodule.files.train=[a.csv]")
        texts = [text for text, _ in rows(9, start=3)]
        self.write("new.txt", "".join(text + "\n" for text in texts))
        self.write("new.csv", "id,text\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(texts)))
        self.write("new.tsv.gz", gzip.compress(("text\n" + "".join(text + "\n" for text in texts)).encode()))
        expected = [json.loads(line) for line in self.kiln("predict", "run", "new.txt")[0].splitlines()]
        for name in "new.csv", "new.tsv.gz":
            found = [json.loads(line) for line in self.kiln("predict", "run", name)[0].splitlines()]
            self.assertEqual([row["file"] for row in found], [f"{name}:{i + 2}" for i in range(9)])
            self.assertEqual([row["probabilities"] for row in found], [row["probabilities"] for row in expected])
        self.write("other.csv", "txt\na fine film\n")
        self.assertIn('no column "text" (did you mean "txt"?)', self.kiln("predict", "run", "other.csv", status=1)[1])
        self.kiln("predict", "run", "other.csv", "datamodule.text=txt")
        self.write("bad.csv", 'text,n\na fine film,1\n"a fine film"\n,2\na dull film,3\n')
        found = [json.loads(line) for line in self.kiln("predict", "run", "bad.csv", status=1)[0].splitlines()]
        self.assertEqual(["error" in row for row in found], [False, True, True, False])

    def test_resume(self):
        """A run that continues from the checkpoint of its first epoch ends with the same bytes."""
        self.write("a.csv", csv((text * (1 + i % 9), label) for i, (text, label) in enumerate(rows(50))))
        args = ["datamodule.files.train=[a.csv]", "model=text_cnn", "model.maps=4", "datamodule.max_tokens=80"]
        self.train(*args, "callbacks.model_checkpoint.save_top_k=-1", epochs=3, run="whole")
        first, = pathlib.Path(self.path("whole/checkpoints")).glob("epoch=000-*")
        out, _ = self.train(*args, f"ckpt_path={first}", epochs=3, run="again")
        self.assertIn("epoch 1/2", out)
        self.assertNotIn("epoch 0/2", out)
        weights = [pathlib.Path(self.path(run, "checkpoints/last/model.safetensors")).read_bytes() for run in ("whole", "again")]
        self.assertEqual(weights[0], weights[1])

    def test_bad_rows(self):
        good = csv(rows(40))
        cases = [
            ("ragged", good + "a,b,c\n", "a.csv:42: the row has 3 columns; expected 2"),
            ("encoding", good.encode() + b"caf\xe9,pos\n", "(0xe9) is not UTF-8"),
            ("nul", good.encode() + b"a\0b,pos\n", "is NUL"),
            ("empty", good + " ,pos\n", 'a.csv:42: the text (column "text") is empty'),
            ("label", good + "a b,\n", 'a.csv:42: the label (column "label") is empty'),
        ]
        for name, content, message in cases:
            self.write("a.csv", content)
            _, err = self.train("datamodule.files.train=[a.csv]", run=name, status=1)
            self.assertIn(message, err)
            out, _ = self.train("datamodule.files.train=[a.csv]", "datamodule.on_error=skip", run=name + "-skip")
            self.assertRegex(out, r"left out +.*a.csv:42")
        self.write("a.csv", good)
        self.write("b.csv", csv(rows(4)) + "a b,other\n")
        files = ["datamodule.files.train=[a.csv]", "datamodule.files.test=[b.csv]"]
        _, err = self.train(*files, run="unknown", status=1)
        self.assertIn('b.csv:6: the label "other" is not one of the 2 classes of the training files', err)
        out, _ = self.train(*files, "datamodule.on_error=skip", run="unknown-skip")
        self.assertRegex(out, r'left out +.*b.csv:6: the label "other"')
        _, err = self.train(*files, "datamodule.text=texts", run="column", status=1)
        self.assertIn('did you mean "text"?', err)
        _, err = self.train(run="none", status=1)
        self.assertIn("files.train: no files", err)

    def test_counts_of_bad_rows(self):
        """Rows that are left out are counted by reason, with the place of the first, in each split; the offset is that of the
        byte in the file."""
        good = csv(rows(40)).encode()
        self.write("a.csv", good + b"caf\xe9,pos\nx,y,z\n\xff\xfe,neg\n ,pos\nq,r,s,t\n")
        self.write("b.csv", csv(rows(4)).encode() + b"a b,other\nc d,third\n")
        files = ["datamodule.files.train=[a.csv]", "datamodule.files.test=[b.csv]"]
        _, err = self.train(*files, run="stop", status=1)
        self.assertIn(f"a.csv:42: byte {len(good) + 3} of the file (0xe9) is not UTF-8", err)
        self.train(*files, "datamodule.on_error=skip", run="skip")
        left_out = json.dumps(read_json(self.path("skip", "summary.json")))
        for text in ["a.csv:42", "b.csv:6"]:
            self.assertIn(text, left_out)
        out = "".join(pathlib.Path(self.path("skip", "train.log")).read_text())
        self.assertRegex(out, r"4 train rows")
        self.assertRegex(out, r"left out +a.csv:45: the text")
        self.assertRegex(out, r"2 test rows")
        self.assertRegex(out[out.index("finished after"):], r"left out +4 train rows")  # again at the end

    def test_long_line(self):
        """A line of 100 MB is a bad row, and does not keep others from being read."""
        good = csv(rows(40)).encode()
        self.write("a.csv", good + b"x" * 100_000_000 + b",pos\na fine film,pos\n")
        _, err = self.train("datamodule.files.train=[a.csv]", run="stop", status=1)
        self.assertIn("a.csv:42: the row has 100000005 bytes; at most 67108864 are read (on_error=skip leaves", err)
        out, _ = self.train("datamodule.files.train=[a.csv]", "datamodule.on_error=skip", run="skip")
        self.assertRegex(out, r"left out +.*a.csv:42: the row has 100000005 bytes")
        self.assertRegex(out, r"samples +train 37, val 4")

    def test_bad_files(self):
        """Files that can't be read row by row stop the run whatever on_error says."""
        good = csv(rows(40))
        cases = [
            (good.encode("utf-16"), "the text is UTF-16; convert it: iconv"),
            (good.encode() + b'"a,pos\n', "a.csv:42: a quote in this row is never closed"),
            (good.encode() + b'"a,pos\n"b",pos\n', "a.csv:43: text after a quoted field that begins in line 42"),
            (b"", "a.csv: is empty"),
            (good.replace("text,label", "text,text").encode(), 'a.csv:1: two columns are called "text"'),
        ]
        for i, (content, message) in enumerate(cases):
            self.write("a.csv", content)
            _, err = self.train("datamodule.files.train=[a.csv]", "datamodule.on_error=skip", run=f"run{i}", status=1)
            self.assertIn(message, err)

    def test_byte_order_mark(self):
        """A byte order mark and Windows line ends change nothing, in each format."""
        samples = rows(40)
        lines = {"a.csv": csv(samples), "a.jsonl": "".join(json.dumps({"label": l, "text": t}) + "\n" for t, l in samples),
                 "a.txt": "".join(f"__label__{l} {t}\n" for t, l in samples)}
        for name, text in lines.items():
            form = ["datamodule.format=labeled"] if name == "a.txt" else []
            losses = []
            for kind, content in ("plain", text), ("windows", "\ufeff" + text.replace("\n", "\r\n")):
                self.write(name, content)
                self.train(f"datamodule.files.train=[{name}]", *form, run=f"{name}-{kind}")
                losses.append(read_json(self.path(f"{name}-{kind}", "summary.json"))["metrics"]["val/loss"]["last"]["value"])
            self.assertEqual(losses[0], losses[1], name)

    def test_unusual_text(self):
        """Right to left, combining characters, emoji of several code points."""
        strange = ["שלום עולם", "e\u0301 a\u0308", "👩‍👩‍👧‍👦 🏳️‍🌈", "\u202eabc", "\u200b\u200d"]
        self.write("a.csv", csv(rows(40) + [(text, "pos") for text in strange]))
        for tokenizer in ["words", "bytes", "characters", "bpe", "wordpiece", "ngrams"]:
            self.train("datamodule.files.train=[a.csv]", f"datamodule.tokenizer={tokenizer}", run=tokenizer)
            self.write("new.txt", "".join(f"{text}\n" for text in strange))
            out, _ = self.kiln("predict", f"ckpt_path={tokenizer}", "input=new.txt")
            self.assertEqual(len(out.splitlines()), len(strange))


main()
