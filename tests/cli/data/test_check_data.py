"""`kiln check-data`: each mistake in data that it knows, planted and found; and what is in order."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

import json
import os
import random
import struct
import subprocess
import zlib

from kilntest import ROOT, Case, main, png
from test_new import grey_png

ROWS = "datamodule.files.train=[train.csv]"


class CheckCase(Case):
    def check(self, *args, status=0):
        """The findings by check: {check: [(level, count, text)]}, and the whole report."""
        out, err = self.run_kiln("check-data", "--json", *args, program="kiln", status=status)
        report = json.loads(out)
        found = {}
        for one in report["checks"]:
            found.setdefault(one["check"], []).append((one["level"], one["count"], one["text"]))
        levels = [one["level"] for one in report["checks"]]
        for key, level in ("passed", "passed"), ("notes", "note"), ("warnings", "warning"), ("errors", "error"):
            self.assertEqual(report[key], levels.count(level))
        self.assertEqual(status, int(report["errors"] > 0), err)
        return found, report

    def finds(self, found, check, level, *says, count=None):
        """One finding of that check and level has all these texts."""
        fitting = [one for one in found.get(check, []) if one[0] == level and all(text in one[2] for text in says)]
        self.assertTrue(fitting, f"{check}, {level}, {says}: {found.get(check)}\n{list(found)}")
        if count is not None:
            self.assertEqual(fitting[0][1], count, fitting)


class Table(CheckCase):
    args = ["task=classification", "datamodule=table", "model=mlp", ROWS, "datamodule.target=label"]

    def rows(self, n, name="train.csv", head="x,y,label", row=None):
        rng = random.Random(name)
        row = row or (lambda i: f"{rng.random():.4f},{rng.random():.4f},{'ab'[i % 2]}")
        return self.write(name, head + "\n" + "".join(row(i) + "\n" for i in range(n)))

    def test_nothing_is_wrong(self):
        self.rows(400)
        found, report = self.check(*self.args)
        self.assertEqual((report["warnings"], report["errors"], report["samples"]), (0, 0, 400))
        for check in ("overlap of splits", "duplicates", "contrary labels", "samples of each class", "leakage",
                      "missing values", "constants and ids", "NaN and infinity", "splits that differ"):
            self.assertEqual(found[check][0][0], "passed", check)

    def test_text_output(self):
        self.rows(400)
        out = self.run_kiln("check-data", *self.args, program="kiln")[0]
        self.assertRegex(out, r"\n\d+ passed, 0 notes, 0 warnings, 0 errors; 400 of 400 samples were read\n$")

    def test_overlap_duplicates_and_contrary_labels(self):
        lines = [f"{i}.5,{i * 7 % 50}.25,{'ab'[i % 2]}" for i in range(100)]
        self.write("train.csv", "x,y,label\n" + "\n".join([*lines, *lines[:30], "0.5,0.25,b"]) + "\n")
        self.write("val.csv", "x,y,label\n" + "\n".join([*lines[:10], *(f"{i}.75,3.5,a" for i in range(30))]) + "\n")
        found, _ = self.check(*self.args, "datamodule.files.val=[val.csv]")
        self.finds(found, "overlap of splits", "warning", "10 of 40 samples of val are in train", "val.csv:2",
                   "train.csv:2", count=10)
        self.finds(found, "duplicates", "warning", "31 of 131 samples of train", count=31)
        self.finds(found, "contrary labels", "warning", "train.csv:2 and train.csv:132")

    def test_classes(self):
        self.rows(300, row=lambda i: f"{i}.5,{i * 7 % 50}.25,{'c' if i < 4 else 'a' if i % 20 == 0 else 'b'}")
        found, _ = self.check(*self.args, "datamodule.val_fraction=0.2")
        self.finds(found, "samples of each class", "warning", "1 of 3 classes have fewer than 10", "c (")
        self.finds(found, "balance of classes", "warning", "times as many")

    def test_leaks(self):
        self.rows(400, head="x,copy,near,label",
                  row=lambda i: f"{i * 37 % 101}.5,{'pq'[i % 2]},{(i % 2) * 5 + (i * 13 % 40) / 10 + (6 if i == 0 else 0):.2f},{'ab'[i % 2]}")
        found, _ = self.check(*self.args)
        self.finds(found, "leakage", "warning", 'column "copy" alone tells the target')
        self.finds(found, "leakage", "warning", "column near alone tells label")
        self.assertEqual(len(found["leakage"]), 2)

    def test_correlated(self):
        self.rows(400, head="x,copy,label", row=lambda i: f"{i * 37 % 101}.5,{i * 3 % 211 * 2 + (i % 5) * 1.5 + .25},{i * 3 % 211}.125")
        found, _ = self.check("task=regression", *self.args[1:])
        self.finds(found, "leakage", "warning", "column copy is correlated with label")

    def test_columns(self):
        self.rows(200, head="id,same,gaps,city,label",
                  row=lambda i: f"{i},7,{'' if i % 3 else i}.5,{'xyz'[i % 3]},{'ab'[i % 2]}".replace(",.5,", ",,"))
        self.rows(60, "val.csv", "id,same,gaps,city,label", lambda i: f"{i},7,{900 + i}.5,{'xw'[i % 2]},{'ab'[i % 2]}")
        found, _ = self.check(*self.args, "datamodule.files.val=[val.csv]")
        self.finds(found, "constants and ids", "note", "id is left out")
        self.finds(found, "constants and ids", "note", "same is left out: it has one value")
        self.finds(found, "missing values", "warning", "gaps: 66.5 %")
        self.finds(found, "values unknown to training", "warning", "30 of 60 rows of val have a city", count=30)
        self.finds(found, "splits that differ", "warning", "the mean of gaps in val")

    def test_a_column_is_missing_in_validation(self):
        self.rows(100)
        self.write("val.csv", "x,label\n1.5,a\n")
        found, _ = self.check(*self.args, "datamodule.files.val=[val.csv]", status=1)
        self.finds(found, "opening the data", "error", 'val.csv lacks the column "y"', "columns.y=ignored")

    def test_bad_rows(self):
        self.rows(100)
        with open(self.path("train.csv"), "a") as f:
            f.write("1,2\n")
        found, _ = self.check(*self.args, status=1)
        self.finds(found, "opening the data", "error", "train.csv:102")
        found, _ = self.check(*self.args, "datamodule.on_error=skip")
        self.finds(found, "left out", "warning", "train.csv:102", count=1)

    def test_some_samples_of_many(self):
        self.rows(3000)
        found, report = self.check(*self.args, "--samples", "100")
        self.assertEqual(report["samples"], 3000)
        self.assertLessEqual(report["samples_read"], 200)
        self.assertNotIn("fewer than", str(found))
        for wrong in "0", "x", "-3":
            self.refused("check-data", *self.args, f"--samples={wrong}", program="kiln", status=2, says=["--samples"])

    def test_the_short_form_in_a_plan(self):
        self.write("train.csv", "x,label\n" + "".join(f"{i % 7}.5,{'ab'[i % 3 == 0]}\n" for i in range(100)))
        out = self.run_kiln(*self.args, "--plan")[0]
        self.assertRegex(out, r"checks +\d+ passed, \d+ warnings, 0 errors in 100 samples; which, and in all samples: +"
                              r"`kiln\s+check-data task=classification")

    def test_config_mistakes(self):
        self.refused("check-data", "datamodule=tabel", program="kiln", says=["datamodule=tabel", "did you mean"])
        self.refused("check-data", "lr=fast", program="kiln", says=["expected a number"])


class Images(CheckCase):
    def folder(self, split, n, size=(16, 16), names=("cat", "dog")):
        for k, name in enumerate(names):
            for i in range(n):
                colour = (k * 90 + i, (7 * i) % 256, 30 if split == "train" else 220)
                self.write(f"d/{split}/{name}/{i}.png", self.picture(size, colour))

    @staticmethod
    def picture(size, colour):
        """Not of one colour: two PNGs would differ in nothing but that."""
        width, height = size
        row = b"\0" + b"".join(bytes(colour) if x % 2 else b"\xff\xff\xff" for x in range(width))

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b""))

    args = ["datamodule=image_folder", "datamodule.root=d", "datamodule.size=16"]

    def test_all_is_well(self):
        self.folder("train", 20)
        self.folder("val", 5)
        found, report = self.check(*self.args)
        self.assertEqual((report["warnings"], report["errors"]), (0, 0), found)
        self.finds(found, "sizes of images", "note", "train: 16x16 to 16x16 pixels")

    def test_overlap_with_augmentation(self):
        """Training samples are compared as validation prepares them."""
        self.folder("train", 20)
        self.folder("val", 5)
        for i in range(4):
            os.replace(self.write("copy", self.picture((16, 16), (i, (7 * i) % 256, 30))), self.path(f"d/val/cat/{i}.png"))
        self.write("d/val/dog/0.png", self.picture((16, 16), (3, 21, 30)))  # a cat of training
        found, _ = self.check(*self.args, "datamodule.transforms=[{_target_: transform/flip}, {_target_: transform/crop, size: 16, padding: 2}, {_target_: transform/normalize}]", status=1)
        self.finds(found, "overlap of splits", "error", "5 of 10 samples of val are in train", count=5)
        self.finds(found, "contrary labels", "warning", "d/train/cat/3.png")
        out = self.run_kiln(*self.args, "model=mlp", "datamodule.transforms=[{_target_: transform/crop, size: 16, padding: 4}]", "--plan")[0]
        self.assertIn("checks", out)

    def test_broken_blank_grey_small_and_stretched(self):
        self.folder("train", 20)
        self.folder("val", 5)
        self.write("d/train/cat/0.png", b"\x89PNG\r\n\x1a\nnothing at all")
        self.write("d/train/cat/1.png", png(16, 16))
        self.write("d/train/cat/2.png", self.picture((90, 16), (1, 2, 3)))
        self.write("d/val/dog/1.png", self.picture((2, 2), (1, 2, 3)))
        self.write("d/train/notes.gif", "x")
        found, _ = self.check(*self.args, status=1)
        self.finds(found, "samples that can't be read", "error", "1 of 40 samples of train", "cat/0.png", count=1)
        self.finds(found, "images of one colour", "warning", "cat/1.png")
        self.finds(found, "proportions of images", "warning", "cat/2.png")
        self.finds(found, "sizes of images", "warning", "dog/1.png")
        self.finds(found, "image files", "error", "cat/0.png")
        self.finds(found, "left out", "warning", "notes.gif")

    def test_masks(self):
        for split, top in ("train", 2), ("val", 3):
            for i in range(3):
                self.write(f"d/images/{split}/{i}.png", self.picture((16, 16), (i, 0, top)))
                self.write(f"d/masks/{split}/{i}.png", grey_png(16, 16, [[x % top for x in range(16)]] * 16))
        found, _ = self.check("task=segmentation", "datamodule=mask_folder", "model=unet", "datamodule.root=d",
                              "datamodule.classes=[a,b,c]")
        self.finds(found, "classes unknown to training", "warning", "pixels of val", 'training sample has: c')


class Texts(CheckCase):
    def test_labels_and_lengths(self):
        self.write("train.csv", "text,label\n" + "".join(f"word{i % 9} and {'more ' * (i % 12)}{i},{'ab'[i % 2]}\n" for i in range(100)))
        self.write("val.csv", "text,label\n" + "".join(f"new{i} things{i} here{i},{'ab'[i % 2]}\n" for i in range(30)))
        found, _ = self.check("task=classification", "datamodule=labeled_text", "model=bag_of_tokens", ROWS,
                              "datamodule.files.val=[val.csv]", "datamodule.max_length=6")
        self.finds(found, "truncated samples", "warning", "have the greatest length possible (6)")
        self.finds(found, "lengths", "note", "tokens of train")

    def test_tags(self):
        lines = ["Ada B-person\nlives O\nin O\nNew B-city\nYork I-city\n"] * 20
        lines += ["Rome I-city\nfell O\n", "Ulm B-city\n. I-city\n"]
        self.write("train.conll", "\n".join(lines))
        self.write("val.conll", "Kiel B-town\nwon O\n")
        found, _ = self.check("task=tagging", "datamodule=tagged_text", "model=text_lstm", "datamodule.files.train=[train.conll]",
                              "datamodule.files.val=[val.conll]", "datamodule.unknown=keep")
        self.finds(found, "malformed tags", "warning", '1 tags that continue no span in train', 'word 1 "Rome": I-city', count=1)
        self.finds(found, "punctuation of spans", "warning", 'word 2 "."', count=1)
        self.finds(found, "classes unknown to training", "warning", "words of val")

    def test_blanks_in_words(self):
        self.write("train.jsonl", '{"text": ["New York ", "grows"], "tags": ["B-city", "O"]}\n' * 20)
        found, _ = self.check("task=tagging", "datamodule=tagged_text", "model=text_lstm", "datamodule.files.train=[train.jsonl]",
                              "datamodule.pieces=true", status=1)  # and all are equal
        self.finds(found, "blanks in spans", "warning", "New York")


class Plugins(CheckCase):
    def test_a_datamodule_of_a_plugin(self):
        """What is in samples is checked for every datamodule."""
        subprocess.run(["cc", "-std=c17", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN", "-D_POSIX_C_SOURCE=200809L", "-I",
                        os.path.join(ROOT, "src"), "-o", self.path("pairs.so"),
                        os.path.join(ROOT, "examples/plugin/word_pairs.c")], check=True)
        args = ["--plugin", "pairs.so", "datamodule=word_pairs", "task=longer_list", "model=two_encoders"]
        found, _ = self.check(*args, status=1)
        self.finds(found, "overlap of splits", "error", "256 of 256 samples of val are in train")  # they are drawn alike
        self.finds(found, "samples that can't be read", "passed")
        self.finds(found, "lengths", "note", "source of train: 1 to 12")


if __name__ == "__main__":
    main()
