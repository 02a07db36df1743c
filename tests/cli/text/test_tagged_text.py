"""Tagging words and classifying sentences: formats, bad rows, resuming, and predictions of raw text with spans."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import subprocess

from kilntest import BUILD, Case, main, read_json

MODEL = ["task=tagging", "model=text_lstm", "model.width=16", "model.hidden=16", "model.dropout=0.1", "model.embedding_dropout=0",
         "optimizer=adam", "lr=0.02", "trainer.threads=1", "batch_size=8", "seed=3"]
NAMES, CITIES = ["ada", "Émile", "grace", "مريم"], ["new york", "rome", "são paulo", "東京"]
COLUMNS = "datamodule.columns=[text,tags]"


def sentences(n, start=0):
    """n sentences (words, tags, intent) that a small network learns."""
    made = []
    for i in range(start, start + n):
        name, city = NAMES[i % 4], CITIES[i // 4 % 4].split()
        words, tags = [name, "lives", "in", *city], ["B-person", "O", "O", "B-city", *["I-city"] * (len(city) - 1)]
        if i % 3:
            words, tags = ["is", *words, "?"], ["O", *tags, "O"]
        made.append((words, tags, "ask" if i % 3 else "tell"))
    return made


def conll(samples, end="\n", tab="\t"):
    return end.join("".join(f"{w}{tab}{t}{end}" for w, t in zip(words, tags)) for words, tags, _ in samples)


def spans_of(words, tags):
    """The spans of BIO tags in the words joined with spaces, as kiln predict gives them."""
    text, found, at = " ".join(words), [], 0
    for word, tag in zip(words, tags):
        if tag.startswith("B"):
            found.append({"type": tag[2:], "start": at, "end": at + len(word)})
        elif tag.startswith("I"):
            found[-1]["end"] = at + len(word)
        at += len(word) + 1
    return [{**span, "text": text[span["start"]:span["end"]]} for span in found]


class TaggedText(Case):
    def kiln(self, *args, stdin="", status=0):
        done = subprocess.run([os.path.join(BUILD, "kiln"), *args], cwd=self.dir, input=stdin, text=True, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def train(self, *args, run="run", epochs=1, status=0):
        return self.kiln("train", "datamodule=tagged_text", *MODEL, f"trainer.max_epochs={epochs}", f"kiln.run.dir={run}",
                         *args, status=status)

    def metric(self, run, name):
        return read_json(self.path(run, "summary.json"))["metrics"][name]["last"]["value"]

    def write_parallel(self, name, samples):
        self.write(f"{name}/in", "".join(" ".join(w) + "\n" for w, _, _ in samples))
        self.write(f"{name}/out", "".join(" ".join(t) + "\n" for _, t, _ in samples))
        self.write(f"{name}/label", "".join(f"{i}\n" for _, _, i in samples))
        return f"datamodule.files.{name}=[{name}/in,{name}/out,{name}/label]"

    def train_joint(self, *args, samples=sentences(96), test=sentences(24, 7), **more):
        files = [self.write_parallel("train", samples), self.write_parallel("test", test)]
        return self.train(*files, "datamodule.format=parallel", "datamodule.columns=[text,tags,label]", "datamodule.label=label",
                          *args, **more)

    def predict(self, text, *args, run="run", status=0):
        out, _ = self.kiln("predict", run, "-", *args, stdin=text, status=status)
        return [json.loads(line) for line in out.splitlines()]

    def test_formats(self):
        """Each format gives the same samples, and so the same weights; a byte order mark and CRLF make no difference."""
        samples = sentences(40)
        self.write("a.conll", conll(samples))
        self.write("b.conll", "\ufeff" + conll(samples, "\r\n"))
        self.write("c.conll", conll(samples, tab=" ") + "\n\n\n")
        self.write("d.jsonl", "".join(json.dumps({"text": w, "tags": t}) + "\n" for w, t, _ in samples))
        self.write("e.csv", "text,tags\n" + "".join(f'"{" ".join(w)}",{" ".join(t)}\n' for w, t, _ in samples))
        for name in "a.conll", "b.conll", "c.conll", "d.jsonl", "e.csv":
            columns = [COLUMNS] if name.endswith(".conll") else []
            self.train(f"datamodule.files.train=[{name}]", *columns, run=name[0])
        # the first column has the words, the last one the tags; files of other names are CoNLL's, too
        self.write("f.txt", conll(samples))
        self.write("g.bio", "-DOCSTART- -X- O\n\n" + conll(samples, tab="\tNN\t"))
        self.write("h.words", "".join(" ".join(w) + "\n" for w, _, _ in samples))
        self.write("h.tags", "".join(" ".join(t) + "\n" for _, t, _ in samples))
        for files in "f.txt", "g.bio", "h.words,h.tags":
            out, _ = self.train(f"datamodule.files.train=[{files}]", run=files[0])
            self.assertRegex(out, "files +[fgh].*: format (conll, columns 0, [12]|parallel, columns words, tags)\n")
        for run in "bcdefgh":
            self.assertEqual(self.metric(run, "val/loss"), self.metric("a", "val/loss"), run)
        _, err = self.train("datamodule.files.train=[a.conll]", "datamodule.label=label", run="i", status=1)
        self.assertIn('no column "label"; columns: 0, 1; label=null if sentences have no class', err)

    def test_models(self):
        """Each model learns it: with and without the CRF, characters, and pieces of words."""
        self.write("a.conll", conll(sentences(96)))
        self.write("b.conll", conll(sentences(24, 7)))
        files = ["datamodule.files.train=[a.conll]", "datamodule.files.test=[b.conll]", COLUMNS]
        transformer = ["model=transformer", "~model.hidden", "~model.embedding_dropout", "model.embed._target_=model/token_embedding",
                       "model.layers=1", "model.heads=2", "model.mlp_dim=32", "model.width=32", "lr=0.01"]
        cases = {
            "plain": [],
            "crf": ["task.crf=true"],
            "characters": ["task.crf=true", "datamodule.characters=characters", "model.character_width=8", "model.character_maps=8",
                           "datamodule.tokenizer.min_frequency=1000000"],
            "pieces": ["datamodule.tokenizer={_target_: tokenizer/bpe, vocab_size: 300, add_prefix_space: true}",
                       "datamodule.pieces=true"],
            "transformer": ["model=transformer", "model.embed._target_=model/token_embedding"],
        }
        for name, more in cases.items():
            base = [*files, *more]
            if name == "transformer":
                base = [a for a in [*files, *transformer] if not a.startswith("~")]
                self.kiln("train", "datamodule=tagged_text", "task=tagging", *base, "optimizer=adam", "trainer.threads=1",
                          "batch_size=8", "seed=3", "trainer.max_epochs=20", f"kiln.run.dir={name}")
            else:
                self.train(*base, epochs=12, run=name)
            self.assertEqual(self.metric(name, "test/slot_f1"), 1.0, name)

    def test_joint(self):
        """Tags and intents of raw text, with spans, are those of the same sentences in the test split."""
        samples = sentences(24, 7)
        out, _ = self.train_joint("task.crf=true", epochs=12)
        self.assertEqual(self.metric("run", "test/slot_f1"), 1.0)
        self.assertEqual(self.metric("run", "test/intent_accuracy"), 1.0)
        texts = "".join(" ".join(words) + "\n" for words, _, _ in samples)
        self.write("t.txt", texts)
        split = [json.loads(line) for line in self.kiln("predict", "ckpt_path=run", "split=test")[0].splitlines()]
        given = [json.loads(line) for line in self.kiln("predict", "ckpt_path=run", "input=t.txt")[0].splitlines()]
        for (words, tags, intent), a, b, c in zip(samples, split, given, self.predict(texts), strict=True):
            for row in a, b, c:
                self.assertEqual((row["words"], row["tags"], row["intent"]), (words, tags, intent))
                spans = spans_of(words, tags)
                self.assertEqual(row["spans"], [{k: s[k] for k in ("type", "text", "start", "end")} for s in spans])
                self.assertAlmostEqual(sum(row["intent_probabilities"]), 1.0, places=5)
            self.assertEqual(a["true_tags"], " ".join(tags))
            for p, q in zip(a["intent_probabilities"], b["intent_probabilities"]):
                self.assertAlmostEqual(p, q, places=6)

    def test_raw_text(self):
        """Offsets count code points of the text as it was given; a splitter finds words without spaces between them."""
        self.train_joint("datamodule.splitter=words", epochs=12)
        text = "  is\tÉmile lives in\u3000são  paulo?"
        row, = self.predict(text + "\r\n")
        self.assertEqual(row["words"], ["is", "Émile", "lives", "in", "são", "paulo", "?"])
        for span in row["spans"]:
            self.assertEqual(text[span["start"]:span["end"]], span["text"])
        self.assertEqual([span["text"] for span in row["spans"]], ["Émile", "são  paulo"])
        self.write("t.jsonl", json.dumps({"text": text}) + "\n")
        line, = self.kiln("predict", "ckpt_path=run", "input=t.jsonl")[0].splitlines()
        self.assertEqual(json.loads(line)["spans"], row["spans"])
        # combining characters, right-to-left text, characters that nobody has seen
        for text in "e\u0301mile lives", "مريم lives in 東京", "\U0001f600 \u200d \u0301":
            row, = self.predict(text + "\n")
            self.assertEqual(len(row["words"]), len(row["tags"]))
            for span in row["spans"]:
                self.assertEqual(text[span["start"]:span["end"]], span["text"])
        rows = self.predict("\n   \n" + "a " * 300 + "\nada lives\n", status=1)
        self.assertIn("no words", rows[0]["error"])
        self.assertIn("no words", rows[1]["error"])
        self.assertIn("300 words; datamodule.max_length allows 256", rows[2]["error"])
        self.assertEqual(rows[3]["words"], ["ada", "lives"])

    def test_resume(self):
        """A run that was interrupted ends with the bytes of one that was not; an evaluation repeats its test."""
        self.train_joint("task.crf=true", "datamodule.characters=characters", "scheduler=constant", epochs=3)
        self.train_joint("task.crf=true", "datamodule.characters=characters", "scheduler=constant", epochs=1, run="cut")
        self.kiln("train", "resume=cut", "trainer.max_epochs=3")
        whole, cut = [pathlib.Path(self.path(run, "checkpoints/last/model.safetensors")).read_bytes() for run in ("run", "cut")]
        self.assertEqual(whole, cut)
        out, _ = self.kiln("eval", "ckpt_path=run/checkpoints/best")
        self.assertEqual(json.loads(out)["metrics"]["test/loss"], self.metric("run", "test/loss"))
        self.assertEqual(sorted(os.listdir(self.path("run/checkpoints/last/preprocessing"))),
                         ["characters.json", "classes.txt", "tags.txt", "tokenizer.json"])

    def test_unknown_names(self):
        """A tag or class that training lacks stops the run, is skipped and counted, or counts as a mistake."""
        strange = [(["ada", "lives", "in", "rome"], ["B-person", "O", "O", "B-place"], "tell"),
                   (["ada", "lives"], ["B-person", "O"], "shout")]
        test = sentences(8, 7) + strange
        _, err = self.train_joint(test=test, status=1)
        self.assertIn('test/in:9: word 4 "rome": the tag "B-place" is not among the 4 of the training files', err)
        _, err = self.train_joint(test=test[:8] + strange[1:], status=1)
        self.assertIn('test/in:9: the class "shout" is not among the 2', err)
        out, _ = self.train_joint("datamodule.on_error=skip", test=test)
        self.assertIn("2 test rows", out)
        self.train_joint("datamodule.unknown=keep", test=test, epochs=12, run="keep")
        self.assertAlmostEqual(self.metric("keep", "test/intent_accuracy"), 0.9, places=6)
        self.assertLess(self.metric("keep", "test/slot_f1"), 1.0)
        self.assertGreater(self.metric("keep", "test/slot_f1"), 0.9)

    def test_bad_rows(self):
        """Each bad file gives a message with file and row."""
        good = conll(sentences(16))
        cases = {
            "rome\tB-city\nis\n\n": ("a short line", "the line has 1 column; expected 2"),
            "rome\tB-city\tx\n\n": ("a long line", "the line has 3 columns; expected 2"),
            "rome\tB-city\n\tO\n\n": ("an empty word", 'column "text" is empty'),
            "rome\t\n\n": ("an empty tag", 'column "tags" is empty'),
            "rome\tB-city\n" * 300 + "\n": ("long", "300 words; datamodule.max_length allows 256"),
        }
        for text, (name, message) in cases.items():
            self.write("x.conll", good + "\n" + text)
            _, err = self.train("datamodule.files.train=[x.conll]", COLUMNS, status=1)
            self.assertIn(message, err, name)
            line = good.count("\n") + 2 + (name in ("a short line", "an empty word"))
            self.assertIn(f"x.conll:{line}: ", err, name)
            out, _ = self.train("datamodule.files.train=[x.conll]", COLUMNS, "datamodule.on_error=skip", run=name.replace(" ", ""))
            self.assertRegex(out, "left out +x.conll:", name)
        self.write("x.jsonl", json.dumps({"text": ["a", "b"], "tags": ["O"]}) + "\n")
        self.assertIn("x.jsonl:1: 2 words, but 1 tags", self.train("datamodule.files.train=[x.jsonl]", status=1)[1])
        self.write("x.jsonl", json.dumps({"text": ["a"], "tags": ["O", "O"]}) + "\n")
        self.assertIn("x.jsonl:1: there are more tags than the 1 word", self.train("datamodule.files.train=[x.jsonl]", status=1)[1])
        self.write("x.jsonl", json.dumps({"text": [], "tags": []}) + "\n")
        self.assertIn("x.jsonl:1: there are no words", self.train("datamodule.files.train=[x.jsonl]", status=1)[1])
        self.write("x.jsonl", json.dumps({"text": ["a", ""], "tags": ["O", "O"]}) + "\n")
        self.assertIn("x.jsonl:1: word 2 is empty", self.train("datamodule.files.train=[x.jsonl]", status=1)[1])
        self.write("x.jsonl", json.dumps({"text": ["a"], "tags": ["B x"]}) + "\n")
        self.assertIn("white space", self.train("datamodule.files.train=[x.jsonl]", status=1)[1])
        self.write("x.conll", good)
        _, err = self.train("datamodule.files.train=[x.conll]", "datamodule.columns=[text,tag]", status=1)
        self.assertIn('tags: ', err)
        self.assertIn('"tag"', err)
        _, err = self.train("datamodule.files.train=[x.conll]", COLUMNS, "datamodule.tokenizer.split=words",
                            "datamodule.tokenizer._target_=tokenizer/characters", status=1)
        self.write("x.conll", good + "\nain't\tO\n")
        _, err = self.train("datamodule.files.train=[x.conll]", COLUMNS, "datamodule.tokenizer.split=words", status=1)
        self.assertIn('word 1 "ain\'t" is 3 tokens: set datamodule.tokenizer.split=white_space', err)
        self.write("x.conll", conll([(["a"], ["O"], "")] * 8))
        _, err = self.train("datamodule.files.train=[x.conll]", COLUMNS, status=1)
        self.assertIn("at least 2 tags", err)

    def test_too_many_pieces(self):
        """A sentence whose words are too many pieces is a bad row, in training and in validation."""
        good = sentences(40)
        bad = [(["ada", "lives", "in", "Taumatawhakatangihangakoauauotamateapokaiwhenuakitanatahu"], ["B-person", "O", "O", "B-city"], "")]
        self.write("plain.conll", conll(good))
        self.write("mixed.conll", conll(good[:20] + bad + good[20:] + bad))
        self.write("val.conll", conll(good[:4] + bad))
        pieces = [COLUMNS, "datamodule.pieces=true", "datamodule.max_length=40",
                  "datamodule.tokenizer={_target_: tokenizer/bytes}", "datamodule.val_fraction=0"]
        _, err = self.train("datamodule.files.train=[mixed.conll]", *pieces, status=1)
        self.assertIn(f"mixed.conll:{conll(good[:20]).count(chr(10)) + 2}: 4 of 4 words have more than 40 tokens; "
                      "datamodule.max_length allows no more per sentence (on_error=skip leaves such rows out)", err)
        _, err = self.train("datamodule.files.train=[plain.conll]", "datamodule.files.val=[val.conll]", *pieces, status=1)
        self.assertIn("val.conll:", err)
        skip = [*pieces, "datamodule.on_error=skip", "datamodule.files.val=[val.conll]"]
        out, _ = self.train("datamodule.files.train=[mixed.conll]", *skip, run="mixed")
        self.assertRegex(out, "left out +mixed.conll:[0-9]+ and 1 more|left out +2 ")
        self.train("datamodule.files.train=[plain.conll]", *skip, run="plain")
        for name in "train/loss_epoch", "val/loss":
            self.assertEqual(self.metric("mixed", name), self.metric("plain", name))


if __name__ == "__main__":
    main()
