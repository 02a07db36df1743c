"""Object detection as users run it: training on drawn shapes, values, predictions of files, resuming, mistakes."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kilntest import TINY, Case, main, png, png_pixels  # noqa: E402

RUN = ["experiment=shapes/fcos", "datamodule.size=64", "datamodule.train_count=64", "datamodule.val_count=8",
       "datamodule.test_count=8", "model.width=32", "model.convs=1", "batch_size=8", "trainer.threads=1"]
SMALL = ["model=fcos", "model.depth=18", "model.backbone_width=8", "model.width=32", "model.levels=3", "model.convs=1"]


class Detection(Case):
    def metrics(self, run):
        with open(self.path(run, "summary.json")) as f:
            return {name: entry["last"]["value"] for name, entry in json.load(f)["metrics"].items()}

    def test_trains_and_predicts(self):
        out, _ = self.run_kiln(*RUN, "trainer.max_epochs=2", "task.metrics.map.per_class=true", "kiln.run.dir=run")
        self.assertIn("boxes f32 [6, 11]", out)
        values = self.metrics("run")
        for name in ("test/map", "test/map/50", "test/map/mar_100", "test/map/circle", "test/map/small", "val/loss_box"):
            self.assertIn(name, values)
        self.assertLess(values["train/loss_epoch"], 2.2)
        os.makedirs(self.path("photos"))
        for name, size in (("wide", (200, 50)), ("pixel", (1, 1))):
            with open(self.path("photos", f"{name}.png"), "wb") as f:
                f.write(png(*size, (90, 90, 90)))
        out, _ = self.run_kiln("predict", "run", "photos", "task.score_threshold=0", program="kiln")
        rows = {os.path.basename(row["file"]): row for row in map(json.loads, out.splitlines())}
        self.assertGreater(len(rows["wide.png"]["detections"]), 10)
        scores = [found["score"] for found in rows["wide.png"]["detections"]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for name, (width, height) in (("wide.png", (200, 50)), ("pixel.png", (1, 1))):
            for found in rows[name]["detections"]:
                left, top, right, bottom = found["box"]
                self.assertTrue(0 <= left < right <= width and 0 <= top < bottom <= height, found)
                self.assertIn(found["label"], ("circle", "square", "triangle"))
        self.draws(rows["wide.png"]["detections"])

    def draws(self, found):
        """Pictures of predictions: the file under its boxes, only the best if the threshold says so."""
        best, second = (one["score"] for one in found[:2])
        writer = "+callbacks.detection_writer={_target_: callback/detection_writer, dir: %s, score_threshold: %r}"
        self.run_kiln("predict", "run", "photos", writer % ("out", (best + second) / 2), "task.score_threshold=0", program="kiln")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["pixel.png", "wide.png"])
        rows = png_pixels(self.path("out/wide.png"))
        self.assertEqual((len(rows), len(rows[0])), (50, 200))
        left, top, right, bottom = (round(v) for v in found[0]["box"])
        colour = {"circle": (0, 115, 179), "square": (215, 94, 0), "triangle": (0, 158, 115)}[found[0]["label"]]
        for y in range(50):  # the right side of the box, where there is no text
            edge = any(rows[y][x] == colour for x in range(max(right - 2, 0), min(right + 2, 200)))
            self.assertTrue(edge or not top + 16 < y < bottom - 2, (y, found[0]))
        self.assertEqual(len({rows[y][x] for y in range(top + 18, bottom - 3) for x in range(left + 3, right - 3)} - {(90, 90, 90)}), 0)
        _, err = self.run_kiln("predict", "run", "photos", writer % ("photos", 0.5), program="kiln", status=1)
        self.assertIn("the picture photos/pixel.png would overwrite the image itself", err)
        self.run_kiln("predict", "run", "split=val", writer % ("drawn", 0.1), program="kiln")
        self.assertEqual(len(os.listdir(self.path("drawn"))), 8)

    def test_pictures_while_training(self):
        self.run_kiln(*RUN, "trainer.max_epochs=3", "test=false", "callbacks=sample_detections", "callbacks.sample_detections.every_n_epochs=2",
                      "callbacks.sample_detections.count=3", "callbacks.sample_detections.score_threshold=1", "logger=[csv,tensorboard]",
                      "kiln.run.dir=drawn")
        self.assertEqual(sorted(os.listdir(self.path("drawn/detections"))), ["epoch=000.png", "epoch=002.png"])
        rows = png_pixels(self.path("drawn/detections/epoch=002.png"))
        self.assertEqual((len(rows), len(rows[0])), (3 * 321 - 1, 641))  # images of 64 pixels, five times as large
        self.assertEqual(rows[320][5], (128, 128, 128))
        colours = [(0, 115, 179), (215, 94, 0), (0, 158, 115)]
        sides = [[sum(p in colours for p in row[at:at + 320]) for row in rows] for at in (0, 321)]
        self.assertGreater(sum(sides[0]), 300)  # true boxes on the left; nothing has a score of 1
        self.assertEqual(sum(sides[1]), 0)
        events = [name for name in os.listdir(self.path("drawn/tensorboard")) if "tfevents" in name]
        with open(self.path("drawn/tensorboard", events[0]), "rb") as f:
            self.assertEqual(f.read().count(b"val/detections"), 2)
        _, err = self.run_kiln(*TINY, "callbacks=sample_detections", "kiln.run.dir=tiny", status=1)
        self.assertIn("the task gives no detections of images; use task detection", err)

    def test_resumes_to_the_same_bytes(self):
        args = RUN + ["scheduler=constant", "trainer.max_epochs=2", "test=false"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        self.run_kiln(*args, "trainer.max_steps=11", "kiln.run.dir=part")
        self.run_kiln("resume=part", "trainer.max_steps=-1")
        weights = []
        for run in ("whole", "part"):
            with open(self.path(run, "checkpoints/last/model.safetensors"), "rb") as f:
                weights.append(f.read())
        self.assertTrue(weights[0] == weights[1])

    def coco(self, **changes):
        """A folder in COCO's format: red and green squares, an image without boxes, a crowd, one pixel."""
        images = [{"id": i + 5, "file_name": f"{i}.png", "width": 40, "height": 30} for i in range(4)]
        images.append({"id": 1, "file_name": "pixel.png"})
        boxes = [{"id": i + 1, "image_id": 5 + i % 3, "category_id": (7, 3)[i % 2], "bbox": [2 + 3 * i, 4, 10.5, 9], "area": 90,
                  "iscrowd": int(i == 5)} for i in range(6)]
        data = {"images": images, "annotations": boxes, "categories": [{"id": 7, "name": "red"}, {"id": 3, "name": "green"}]}
        data.update(changes)
        for split in ("train", "val"):
            self.write(f"data/annotations/instances_{split}2017.json", json.dumps(data))
            for i in range(4):
                self.write(f"data/{split}2017/{i}.png", png(40, 30))
            self.write(f"data/{split}2017/pixel.png", png(1, 1))
        return data

    def test_coco(self):
        self.coco()
        args = ["task=detection", "datamodule=coco", "datamodule.root=data", "datamodule.size=[48,64]", *SMALL, "batch_size=2",
                "trainer.threads=1", "optimizer=adamw", "lr=0.001", "trainer.max_epochs=1", "test=false",
                "datamodule.transforms=[{_target_: transform/affine, translate: [0.1, 0.1], scale: [0.8, 1.2]}, transform/flip]"]
        out, _ = self.run_kiln(*args, "kiln.run.dir=run")
        self.assertIn("2: green, red", out)
        self.assertIn("boxes f32 [2, 11]", out)
        self.assertIn("val/map/50", self.metrics("run"))
        out, _ = self.run_kiln("predict", "run", "data/val2017", program="kiln")
        self.assertEqual(len(out.splitlines()), 5)

        self.holds_out(args)

        def bad(says, **changes):
            self.coco(**changes)
            _, err = self.run_kiln(*args, "kiln.run.dir=bad", status=1)
            self.assertIn(says, err)

        whole = self.coco()
        box = whole["annotations"][0]
        bad("annotation 1: the width and height of", annotations=[{**box, "bbox": [1, 1, 0, 5]}])
        bad("annotation 1: the width and height of", annotations=[{**box, "bbox": [1, 1, 4, -5]}])
        bad("annotation 1: \"bbox\" is outside", annotations=[{**box, "bbox": [50, 1, 4, 5]}])
        bad("annotation 1: \"bbox\" must be 4 numbers", annotations=[{**box, "bbox": [1, 1, 4]}])
        bad("annotation 1: there is no category 9", annotations=[{**box, "category_id": 9}])
        bad("annotation 1: there is no image 99", annotations=[{**box, "image_id": 99}])
        bad("annotation 1: this id is there twice", annotations=[box, box])
        bad("image 5: this id is there twice", images=whole["images"] + whole["images"][:1])
        bad("image 9: data/train2017/none.png: No such file", images=whole["images"] + [{"id": 9, "file_name": "none.png"}])
        bad("there is no list \"images\"", images=None)
        bad("no image has a box", annotations=[])
        self.write("data/annotations/instances_train2017.json", json.dumps(whole)[:200])
        _, err = self.run_kiln(*args, status=1)
        self.assertIn("instances_train2017.json", err)
        self.coco(annotations=whole["annotations"] + [{**box, "id": 50, "category_id": 9}])
        out, _ = self.run_kiln(*args, "datamodule.on_error=skip", "kiln.run.dir=skipped")
        self.assertIn("annotation 50: there is no category 9", out)
        _, err = self.run_kiln(*args, "datamodule.transforms=[transform/rand_augment]", status=1)
        self.assertIn("boxes can't follow", err)

    def holds_out(self, args):
        """Without annotations for validation a part of the images is held out; valid is another name for val."""
        args = [*args, "datamodule.images=train2017"]
        out, _ = self.run_kiln(*args, "datamodule.annotations=annotations/instances_train2017.json", "datamodule.val_fraction=0.4",
                               "kiln.run.dir=held")
        self.assertIn("train 3, val 2", out)
        out, _ = self.run_kiln("eval", "held", "split=val", program="kiln")
        self.assertEqual(json.loads(out)["samples"], 2)
        for split in "train", "valid":
            self.write(f"data/{split}/boxes.json", json.dumps(self.coco()))
        out, _ = self.run_kiln(*args, "datamodule.annotations=SPLIT/boxes.json", "kiln.run.dir=valid")
        self.assertIn("train 5, val 5", out)
        self.coco(images=[{"id": 5, "file_name": "0.png"}], annotations=[{"id": 1, "image_id": 5, "category_id": 7, "bbox": [1, 1, 9, 9]}])
        self.refused(*args, "datamodule.annotations=annotations/instances_train2017.json",
                     says=["val_fraction: 0.1 of 1 training images leaves none to train on"])

    YOLO = ["task=detection", "datamodule=yolo", "datamodule.data=data/data.yaml", "datamodule.size=[48,64]", *SMALL, "batch_size=2",
            "trainer.threads=1", "optimizer=adamw", "lr=0.001", "trainer.max_epochs=1",
            "test=false"]

    def yolo(self, text="path: .\ntrain: images/train\nval: [images/val]\ntest:\nnames: {0: green, 1: red}\n", **labels):
        """A folder in YOLO's layout: five images, one without a text, one without a row."""
        rows = {"0": "1 0.25 0.5 0.25 0.5\n0 0.625 0.5 0.25 0.25\n", "1": "\n  0\t0.5 0.5 1 1\r\n0 0.5 0.5 1 1", "2": "1 0.5 0.5 0.5 0.5",
                "3": "", **labels}
        self.write("data/data.yaml", text)
        for split in ("train", "val"):
            for i in range(5):
                self.write(f"data/images/{split}/{'deep/' if i == 4 else ''}{i}.png", png(64, 32))
            for name, row in rows.items():
                self.write(f"data/labels/{split}/{name}.txt", row)

    def test_yolo(self):
        """The same boxes in YOLO's texts and in COCO's JSON give the same numbers."""
        self.yolo()
        out, _ = self.run_kiln(*self.YOLO, "kiln.run.dir=yolo")
        self.assertIn("2: green, red", out)
        self.assertIn("boxes f32 [2, 11]", out)
        self.assertIn("train 5, val 5", out)
        boxes = [(0, 1, [8, 8, 16, 16]), (0, 0, [32, 12, 16, 8]), (1, 0, [0, 0, 64, 32]), (2, 1, [16, 8, 32, 16])]
        self.coco(images=[{"id": i, "file_name": f"{'deep/' if i == 4 else ''}{i}.png"} for i in range(5)],
                  annotations=[{"id": i, "image_id": image, "category_id": label, "bbox": box} for i, (image, label, box) in enumerate(boxes)],
                  categories=[{"id": 0, "name": "green"}, {"id": 1, "name": "red"}])
        args = ["datamodule=coco" if arg == "datamodule=yolo" else "datamodule.root=data" if "data.yaml" in arg else arg for arg in self.YOLO]
        self.run_kiln(*args, "datamodule.images=images/SPLIT", "kiln.run.dir=coco")
        a, b = self.metrics("yolo"), self.metrics("coco")
        for name in a:
            if name.startswith("val/") or "loss" in name:
                self.assertTrue(a[name] == b[name] or a[name] != a[name], name)
        # Lists, Roboflow's paths, another root, a polygon, labels beside images, letterbox, predictions.
        self.yolo("path: /none\ntrain: [../images/train, list.txt]\nval: images/val\nnames: [green, red]\nnc: 2\n",
                  **{"2": "1 0.25 0.25 0.75 0.25 0.5 0.75\n"})
        self.write("data/list.txt", "./images/train/0.png\n\nother/x.png\n")
        self.write("data/other/x.png", png(64, 32))
        self.write("data/other/x.txt", "0 0.5 0.5 0.2 0.2")
        self.write("data/images/val/notes.pdf", "notes")
        out, _ = self.run_kiln(*self.YOLO, "datamodule.root=data", "datamodule.letterbox=true", "kiln.run.dir=boxed")
        self.assertIn("train 7, val 5", out)
        self.assertIn("notes.pdf", out)
        out, _ = self.run_kiln("predict", "boxed", "data/images/val/0.png", "task.score_threshold=0", program="kiln")
        for found in json.loads(out)["detections"]:
            self.assertTrue(0 <= found["box"][0] < found["box"][2] <= 64 and 0 <= found["box"][1] < found["box"][3] <= 32)

    def test_double_precision(self):
        """Training, validation and detections in f64 give what f32 does, up to rounding."""
        found = {}
        for precision in ("32-true", "64-true"):
            self.run_kiln(*RUN, "trainer.max_epochs=1", "trainer.max_steps=3", "test=false", f"trainer.precision={precision}",
                          f"kiln.run.dir={precision}")
            values = self.metrics(precision)
            out, _ = self.run_kiln("predict", precision, "split=val", "task.score_threshold=0", program="kiln")
            found[precision] = values, [json.loads(line)["detections"][0] for line in out.splitlines()]
        (low, first), (high, second) = found["32-true"], found["64-true"]
        for name in ("val/loss", "val/loss_box", "val/loss_centerness"):
            self.assertAlmostEqual(low[name], high[name], delta=2e-3)
            self.assertNotEqual(low[name], high[name])
        self.assertEqual(len(first), 8)
        for a, b in zip(first, second):
            self.assertAlmostEqual(a["score"], b["score"], delta=5e-3)

    def test_yolo_mistakes(self):
        def bad(says, *more, text=None, **labels):
            self.yolo(*([text] if text is not None else []), **labels)
            _, err = self.run_kiln(*self.YOLO, *more, "kiln.run.dir=bad", status=1)
            self.assertIn(says, err)

        bad("data/labels/train/0.txt:2: expected a class and 4 numbers (center x, center y, width, height), or a polygon of at least 3 "
            "points, got a class and 3 numbers", **{"0": "1 0.5 0.5 0.5 0.5\n1 0.5 0.5 0.1"})
        bad("got a class and 5 numbers", **{"0": "1 0.5 0.5 0.1 0.1 0.7"})
        bad("got a class and 7 numbers", **{"0": "1 0.5 0.5 0.1 0.1 0.7 0.1 0.1"})
        bad("0.txt:1: the class 2 is not one of 0 to 1", **{"0": "2 0.5 0.5 0.1 0.1"})
        bad("the class 0.5 is not one of", **{"0": "0.5 0.5 0.5 0.1 0.1"})
        bad("the class -1 is not one of", **{"0": "-1 0.5 0.5 0.1 0.1"})
        bad("12 is outside of 0 to 1", **{"0": "1 12 0.5 0.1 0.1"})
        bad("1.5 is outside of 0 to 1", **{"0": "1 0.5 0.5 0.1 0.1 0.7 1.5"})
        bad('"x" is not a number', **{"0": "1 x 0.5 0.1 0.1"})
        bad('"nan" is not a number', **{"0": "1 nan 0.5 0.1 0.1"})
        bad("the box has no area in the image", **{"0": "1 0.5 0.5 0 0.1"})
        bad("the file is not text", **{"0": "\0"})
        bad("no image of train has a box", **{"0": "", "1": "", "2": ""})
        bad('data.yaml: expected "names", a list', text="train: images/train\n")
        bad("there is no name of class 1", text="train: images/train\nnames: {0: a, 2: b}\n")
        bad('expected "train", a folder of images', text="names: [a, b]\n")
        bad("data.yaml:1: train: data/none: no such folder", text="train: none\nnames: [a, b]\n")
        bad("path: none: no such folder; say where the data are with datamodule.root", text="path: none\ntrain: images\nnames: [a, b]\n")
        bad("root: none: no such folder", "datamodule.root=none")
        bad("there are no images (.png, .jpg, .jpeg, .webp)", text="train: labels\nnames: [a, b]\n")
        bad("data.yaml", text="train: [")
        self.write("data/list.txt", "images/train/0.png\nnone.png\n")
        bad("data/list.txt:2: data/none.png: no such file", text="train: list.txt\nnames: [a, b]\n")
        self.yolo(**{"0": "1 0.5 0.5 0.5 0.5\n9 0.5 0.5 0.1 0.1"})
        out, _ = self.run_kiln(*self.YOLO, "datamodule.on_error=skip", "kiln.run.dir=skipped")
        self.assertIn("labels/train/0.txt:2: the class 9 is not one of 0 to 1", out)

    def test_mistakes(self):
        _, err = self.run_kiln(*RUN, "model.width=48", status=1)
        self.assertIn("multiple of 32, got 48", err)
        _, err = self.run_kiln("task=detection", "datamodule=shapes", "model=unet", status=1)
        self.assertIn('task detection needs a sequence "logits", but unet gives a map', err)
        _, err = self.run_kiln("task=detection", "model=fcos", status=1)
        self.assertIn('"boxes"', err)


if __name__ == "__main__":
    main()
