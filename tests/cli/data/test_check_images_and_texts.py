"""`kiln check-data` of images with boxes and of lines of text: mistakes planted and found."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

import json

from kilntest import main, png
from test_check_data import CheckCase


def words(text):
    return " ".join(text.split())


class Boxes(CheckCase):
    COCO = ["task=detection", "model=fcos", "datamodule=coco", "datamodule.root=d", "datamodule.size=32"]
    YOLO = ["task=detection", "model=fcos", "datamodule=yolo", "datamodule.data=d/data.yaml", "datamodule.size=32"]

    def coco(self, split, n, boxes, first=0, names=("cat", "dog", "owl")):
        """n images; boxes: (image, class, left, top, width, height)."""
        for i in range(n):
            self.write(f"d/{split}2017/{i}.png", png(64, 48, colour=(first + i, 90, 200)))
        self.write(f"d/annotations/instances_{split}2017.json", json.dumps({
            "images": [{"id": i, "file_name": f"{i}.png", "width": 64, "height": 48} for i in range(n)],
            "annotations": [{"id": i, "image_id": box[0], "category_id": box[1], "bbox": box[2:]} for i, box in enumerate(boxes)],
            "categories": [{"id": i, "name": name} for i, name in enumerate(names)]}))

    def test_nothing_is_wrong(self):
        self.coco("train", 12, [(i, c, 4 + c, 4, 20, 20) for i in range(12) for c in range(2)], names=("cat", "dog"))
        self.coco("val", 3, [(i, c, 4 + c, 4, 20, 20) for i in range(3) for c in range(2)], first=100, names=("cat", "dog"))
        found, report = self.check(*self.COCO)
        self.assertEqual(report["errors"], 0)
        self.assertNotIn("constant columns", found)
        self.finds(found, "boxes", "note", "train: 24 boxes on 12 images, at most 2 on one")
        for check, says in (("boxes outside of images", "all boxes of val are inside"), ("boxes that are there twice", "no box of train"),
                            ("boxes of each class", "each of 2 classes has at least 10"), ("overlap of splits", ""),
                            ("classes unknown to training", "training has boxes of every class of val"), ("samples that can't be read", "")):
            self.finds(found, check, "passed", says)

    def test_coco(self):
        self.coco("train", 8, [(0, 0, 4, 4, 20, 20), (0, 0, 4, 4, 20, 20), (1, 0, 50, 4, 40, 20), (2, 1, 1, 1, 9, 9)])
        self.coco("val", 4, [(0, 2, 4, 4, 20, 20)])
        found, _ = self.check(*self.COCO, status=1)
        self.finds(found, "boxes", "warning", "train: 4 boxes on 8 images", "5 images have none", "d/train2017/3.png")
        self.finds(found, "boxes outside of images", "warning", "1 boxes of train", "annotation 2 of d/annotations/instances_train2017.json",
                   count=1)
        self.finds(found, "boxes that are there twice", "warning", "1 boxes of train", "d/train2017/0.png", count=1)
        self.finds(found, "boxes of each class", "warning", "3 of 3 classes", "cat (3), dog (1), owl (0)", count=3)
        self.finds(found, "classes unknown to training", "error", "1 boxes of val", "owl (1)", count=1)
        self.finds(found, "overlap of splits", "error", "4 of 4 samples of val are in train", count=4)

    def test_damage(self):
        self.coco("train", 12, [(i, 0, 4, 4, 20, 20) for i in range(12)] + [(0, 0, 4, 4, 0, 9), (0, 0, 90, 4, 9, 9)], names=("cat",))
        self.write("d/train2017/3.png", b"\x89PNG\r\n\x1a\nnothing")
        self.write("d/train2017/4.png", b"")
        out, _ = self.run_kiln("check-data", *self.COCO, program="kiln", status=1)
        self.assertIn("d/annotations/instances_train2017.json: annotation 12: the width and height of \"bbox\" must be above 0", words(out))
        found, report = self.check(*self.COCO, "datamodule.on_error=skip", "datamodule.val_fraction=0", status=1)
        self.finds(found, "image files", "error", "2 of 12 files of train", count=2)
        self.assertIn("annotation 12: the width", json.dumps(report))

    def test_yolo(self):
        for split in "train", "val":
            for i in range(4):
                self.write(f"d/images/{split}/{i}.png", png(64, 48, colour=(i, 90, 200 if split == "val" else 9)))
                row = f"{int(split == 'val')} 0.5 0.5 0.25 0.25\n"
                self.write(f"d/labels/{split}/{i}.txt", row * (2 if i == 1 else 1) + ("0 1 1 0.5 0.5\n" if i == 2 else ""))
        self.write("d/data.yaml", "train: images/train\nval: images/val\nnames: [cat, dog]\n")
        found, _ = self.check(*self.YOLO, status=1)
        self.finds(found, "boxes outside of images", "warning", "d/labels/train/2.txt:2", count=1)
        self.finds(found, "boxes that are there twice", "warning", "1 boxes of train", "d/labels/train/1.txt", count=1)
        self.finds(found, "classes unknown to training", "error", "4 boxes of val", "dog (4)", count=4)
        self.write("d/labels/train/0.txt", "0 0.5 0.5\n")
        out, _ = self.run_kiln("check-data", *self.YOLO, program="kiln", status=1)
        self.assertIn("d/labels/train/0.txt:1: expected a class and 4 numbers", words(out))


class Lines(CheckCase):
    ARGS = ["task=text_recognition", "model=crnn", "datamodule=text_line_list", "datamodule.files.train=[d/train.csv]", "datamodule.root=d"]

    def lines(self, split, texts, first=0):
        for i, text in enumerate(texts):
            self.write(f"d/{split}{i}.png", png(16 * len(text) + i % 7 + 8, 16, colour=(first + i, 0, 90)))
        self.write(f"d/{split}.csv", "image,text\n" + "".join(f"{split}{i}.png,{text}\n" for i, text in enumerate(texts)))

    def test_nothing_is_wrong(self):
        self.lines("train", ["ab" * (1 + i % 3) for i in range(30)])
        found, report = self.check(*self.ARGS)
        self.assertEqual(report["errors"], 0)
        self.finds(found, "long texts", "passed", "all lines of train are wide enough for their texts of up to 6 characters")
        self.finds(found, "characters", "passed", "each of 2 characters occurs at least 10 times")
        self.finds(found, "characters unknown to training", "passed", "every character of val")

    def test_mistakes(self):
        texts = ["ab" * (1 + i % 3) for i in range(30)]
        self.lines("train", [*texts, "abz"])
        self.lines("val", texts[:8])
        with open(self.path("d/train.csv"), "a") as f:
            f.write(f"train0.png,{'a' * 25}\ntrain1.png,\nnone.png,a\n")
        with open(self.path("d/val.csv"), "a") as f:
            f.write("val1.png,x\n")
        args = [*self.ARGS, "datamodule.files.val=[d/val.csv]"]
        out, _ = self.run_kiln("check-data", *args, program="kiln", status=1)
        self.assertIn("d/train.csv:34: the text is empty", words(out))
        found, report = self.check(*args, "datamodule.on_error=skip", status=1)
        self.finds(found, "long texts", "warning", "1 of 32 lines of train", "train0.png", count=1)
        self.finds(found, "characters", "warning", '1 of 3 characters occur fewer than 10 times in training: "z"', count=1)
        self.finds(found, "overlap of splits", "error", "8 of 8 samples of val are in train", count=8)
        for text in "the text is empty", "d/none.png", "which no training line has":
            self.assertIn(text, json.dumps(report))

    def test_a_character_that_is_held_out(self):
        """Its only line happens to be one of those that validate."""
        self.lines("train", ["ab", "ba", "abc", "bca", "d", "e", "f", "g", "h", "i"])
        found, _ = self.check(*self.ARGS, "datamodule.val_fraction=0.5", status=1)
        self.finds(found, "characters unknown to training", "error", "characters of val are in no training line")


if __name__ == "__main__":
    main()
