#!/usr/bin/env python3
"""Recognition of text lines as users run it: training on drawn lines, error rates, predictions of image files, fonts and
words that are not there."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import random
import shutil
import unittest

from kilntest import SHORT, Case, grey_png, main, png, read

RUN = ["task=text_recognition", "datamodule=text_lines", "model=crnn", "model.width=8", "model.hidden=16", "optimizer=adamw",
       "scheduler=constant", "lr=0.005", "datamodule.train_count=64", "datamodule.val_count=8", "datamodule.test_count=8",
       "datamodule.max_words=1", "datamodule.max_width=192", "datamodule.batch_size=16", "datamodule.fonts=[DejaVu Sans]",
       "datamodule.val_fonts=[DejaVu Sans]", "datamodule.test_fonts=[DejaVu Sans]", "trainer.threads=1", "trainer.max_epochs=1"]


class Lines(Case):
    def setUp(self):
        super().setUp()
        process = self.start(*RUN, "--plan")
        why = process.communicate()[1]
        if "built without cairo" in why or "has no font" in why:
            self.skipTest(why)

    def metrics(self, run):
        return {name: entry["last"]["value"] for name, entry in json.loads(read(self.path(run, "summary.json")))["metrics"].items()}

    def weights(self, run):
        return read(self.path(run, "checkpoints/last/model.safetensors"))

    def test_trains_and_predicts(self):
        out, _ = self.run_kiln(*RUN, "kiln.run.dir=run")
        self.assertIn("line f32 [192, 32]", out)
        values = self.metrics("run")
        for name in ("train/loss_epoch", "val/loss", "val/cer", "val/wer", "test/cer", "test/wer"):
            self.assertIn(name, values)
        self.write("images/a.png", png(100, 25))
        self.write("images/b.png", png(3, 900))
        for args in ([], ["task.beam_size=5"], ["trainer.precision=64-true"]):
            out, _ = self.run_kiln("predict", "run", "images", *args, program="kiln")
            rows = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(len(rows), 2)
            for row in rows:
                self.assertIsInstance(row["text"], str)
                self.assertTrue(0 < row["confidence"] <= 1, row)
        self.write("list.csv", "image,text\na.png,Ab\n")
        out, _ = self.run_kiln("eval", "run", "datamodule=text_line_list", "datamodule.files.test=[list.csv]", "datamodule.root=images",
                               program="kiln")
        self.assertEqual(json.loads(out)["samples"], 1)
        self.write("wide.png", png(1000, 10))
        _, err = self.run_kiln("predict", "run", "wide.png", program="kiln", status=1)
        self.assertIn("10 x 1000 pixels (height x width) are 3200 columns when scaled to 32 rows, expected at most 192", err)
        out, _ = self.run_kiln("predict", "ckpt_path=run", "split=test", program="kiln")
        rows = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(rows), 8)
        self.assertEqual(list(rows[0]), ["index", "true_text", "text", "confidence"])

    def test_resumes_to_the_same_bytes(self):
        self.run_kiln(*RUN, "trainer.max_epochs=2", "kiln.run.dir=whole")
        self.run_kiln(*RUN, "kiln.run.dir=cut")
        self.run_kiln("resume=cut", "trainer.max_epochs=2")
        self.assertTrue(self.weights("whole") == self.weights("cut"))

    def test_words(self):
        self.write("words.txt", "to be or\nnot to be caf\u00e9 " + "x" * 25 + "\n")
        out, _ = self.run_kiln(*RUN, "datamodule.words=words.txt", "kiln.run.dir=run")
        self.assertIn("2 words", out + read(self.path("run", "train.log")).decode())
        names = read(self.path("run", "checkpoints/last/preprocessing/characters.txt")).decode()
        self.assertEqual(names.split("\n")[:-1], sorted(set(" tobeornot")))
        self.write("others.txt", "quiz\n")
        _, err = self.run_kiln("eval", "run", "datamodule.words=others.txt", program="kiln", status=1)
        self.assertIn("has the character \"q\", which no training line has", err)

    def test_mistakes(self):
        self.refused(*RUN, "datamodule.fonts=[DejaVu Sans,No Such Font]", says=["fonts: the system has no font \"No Such Font\""])
        self.refused(*RUN, "datamodule.test_fonts=[\"DejaVu Sans:heavy\"]",
                     says=["\"DejaVu Sans:heavy\": expected a family, or one with :bold"])
        self.refused(*RUN, "datamodule.val_fonts=[]", says=["expected at least one font"])
        self.refused(*RUN, "datamodule.min_size=30", says=["expected at most max_size (24), got 30"])
        self.refused(*RUN, "datamodule.height=40", says=["a multiple of 16 pixels high"])
        self.refused(*RUN, "datamodule.words=missing.txt", says=["words", "missing.txt"])
        self.write("empty.txt", "\u00e9\n")
        self.refused(*RUN, "datamodule.words=empty.txt", says=["empty.txt has no word of 1 to 24 printable ASCII characters"])

    @unittest.skipIf(SHORT, "trains for half a minute")
    def test_learns_to_read(self):
        self.write("words.txt", "to be or not\n")
        self.run_kiln(*RUN, "datamodule.words=words.txt", "datamodule.train_count=512", "trainer.max_epochs=6", "model.width=16",
                      "model.hidden=32", "trainer.threads=2", "kiln.run.dir=run", timeout=600)
        self.assertLess(self.metrics("run")["test/cer"], 0.05)


class Lists(Case):
    """Users' images. Each text is a row of bars, as many and as far apart as its characters say."""
    WIDTHS = {"a": 3, "b": 6, "\u00e9": 9}

    def line(self, text, height=16):
        row = b"".join(b"\xff" * 8 + b"\0" * self.WIDTHS[character] for character in text) + b"\xff" * 8
        return grey_png(len(row), height, [row] * height)

    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        self.texts = ["".join(draw.choice("ab\u00e9") for _ in range(draw.randint(1, 4))) for _ in range(320)]
        for i, text in enumerate(self.texts):
            self.write(f"images/{i}.png", self.line(text, draw.choice((16, 8))))
        self.rows = [f"{i}.png,{text}\n" for i, text in enumerate(self.texts)]
        self.write("list.csv", "image,text\n" + "".join(self.rows))
        self.args = ["task=text_recognition", "datamodule=text_line_list", "datamodule.files.train=[list.csv]", "datamodule.root=images",
                     "datamodule.max_width=192", "datamodule.height=16", "datamodule.batch_size=16", "model=crnn", "model.width=8",
                     "model.hidden=16", "optimizer=adamw", "scheduler=cosine", "lr=0.01", "trainer.threads=1", "trainer.max_epochs=1"]

    def test_trains_and_predicts(self):
        out, _ = self.run_kiln(*self.args, "trainer.max_epochs=25", "kiln.run.dir=run")
        self.assertIn("train 288, val 32", out)
        last = json.loads(read(self.path("run/summary.json")))["metrics"]["val/cer"]["last"]["value"]
        self.assertLess(last, 0.1)
        self.write("new.png", self.line("b\u00e9ab"))
        confidence = 0.05  # one alignment's, then the sum of several: how sure a network is depends on rounding
        for args in ([], ["task.beam_size=4"]):
            out, _ = self.run_kiln("predict", "run", "new.png", *args, program="kiln")
            row = json.loads(out)
            self.assertEqual(row["text"], "b\u00e9ab")
            self.assertTrue(confidence < row["confidence"] <= 1, row)
            confidence = row["confidence"]
        out, _ = self.run_kiln("eval", "run", "datamodule.files.test=[list.csv]", program="kiln")
        self.assertLess(json.loads(out)["metrics"]["test/cer"], 0.1)

    def test_formats(self):
        self.write("list.jsonl", "".join(json.dumps({"file": f"images/{i}.png", "words": text}) + "\n"
                                         for i, text in enumerate(self.texts)))
        for name, args in (("csv", []), ("jsonl", ["datamodule.files.train=[list.jsonl]", "datamodule.root=null", "datamodule.image=file",
                                                   "datamodule.text=words"])):
            self.run_kiln(*self.args, *args, f"kiln.run.dir={name}")
        self.assertEqual(*(read(self.path(name, "checkpoints/last/model.safetensors")) for name in ("csv", "jsonl")))

    def test_bad_rows(self):
        self.write("images/broken.png", self.line("ab")[:60])
        self.write("images/no.png", b"no image")
        self.write("images/wide.png", self.line("\u00e9" * 20))
        for row, says in (("none.png,a", "list.csv:322: images/none.png: No such file"),
                          (",a", 'list.csv:322: the path (column "image") is empty'),
                          ("1.png,", "list.csv:322: the text is empty"),
                          ('1.png,"a\nb"', "list.csv:322: the text has a control character (0x0a)"),
                          ("no.png,a", "list.csv:322: images/no.png: "),
                          ("wide.png,a", "list.csv:322: images/wide.png: 16 x 348 pixels (height x width) are 348 columns"),
                          ("1.png," + "a" * 90, "list.csv:322: the text has 90 characters, and its line is only"),
                          ("broken.png,a", "list.csv:322: images/broken.png: ")):
            self.write("list.csv", "image,text\n" + "".join(self.rows) + row + "\n")
            _, err = self.run_kiln(*self.args, "datamodule.val_fraction=0.01", "kiln.run.dir=bad", status=1)
            self.assertIn(says, err)
            shutil.rmtree(self.path("bad"), ignore_errors=True)
        self.write("list.csv", "image,text\n" + "".join(self.rows) + "none.png,a\n1.png,\nbroken.png,a\n")
        out, _ = self.run_kiln(*self.args, "datamodule.on_error=skip", "kiln.run.dir=run")
        self.assertIn("left out   list.csv:322: images/none.png: No such file", out)
        left = json.loads(read(self.path("run/summary.json")))["data"]["left_out"]
        self.assertEqual(sum(each["count"] for each in left), 3)

    def test_characters_that_training_lacks(self):
        self.write("test.csv", "image,text\n1.png,az\n")
        _, err = self.run_kiln(*self.args, "datamodule.files.test=[test.csv]", status=1)
        self.assertIn('test.csv:2: the text has the character "z", which no training line has', err)
        self.refused(*self.args, "datamodule.text=words", says=["list.csv", '"words"'])


if __name__ == "__main__":
    main()
