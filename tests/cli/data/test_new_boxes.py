"""`kiln new` of images with boxes: COCO's JSON and YOLO's texts in the usual layouts, what is odd in them, and what is wrong."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

import json
import os

from kilntest import main, png
from test_new import NewCase

SMALL = ["model.backbone_width=8", "model.width=32", "model.convs=1", "batch_size=2", "datamodule.size=32"]


class Boxes(NewCase):
    def coco(self, path, folder, n=8, boxes=None, categories=("cat", "dog"), size=(64, 48), **changes):
        """n images in a folder, and annotations of one box each, the last of none."""
        for i in range(n):
            self.write(f"{folder}/{i}.png", png(*size, colour=(i, 90, 200)))
        data = {"info": {}, "images": [{"id": i, "file_name": f"{i}.png", "width": size[0], "height": size[1]} for i in range(n)],
                "annotations": [{"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [4, 4, 20 + i, 16], "area": 320, "iscrowd": 0}
                                for i in range(n - 1)] if boxes is None else boxes,
                "categories": [{"id": i + 1, "name": name} for i, name in enumerate(categories)], **changes}
        return self.write(path, json.dumps(data))

    def yolo(self, images, labels, n=8, rows=lambda i: f"{i % 2} 0.5 0.5 0.{i + 1} 0.25\n"):
        for i in range(n):
            self.write(f"{images}/{i}.png", png(64, 48, colour=(i, 90, 200)))
            if i < n - 1:
                self.write(f"{labels}/{i}.txt", rows(i))

    def starts(self, *args, train=(), **options):
        return super().starts(*args, train=[*SMALL, *train], **options)


class Coco(Boxes):
    def test_as_coco_lays_it_out(self):
        self.coco("d/annotations/instances_train2017.json", "d/train2017")
        self.coco("d/annotations/instances_val2017.json", "d/val2017", n=3)
        self.write("d/annotations/captions_train2017.json", '{"info": {}, "images": [], "annotations": []}')
        self.starts("d", says=["boxes in COCO's JSON: 7 on 8 images", "detection: boxes of objects", "2, with so many boxes: cat (4), dog (3)",
                               "48x64 pixels, colour", "train: d/annotations/instances_train2017.json (8 images); "
                               "val: d/annotations/instances_val2017.json (3 images); test: none",
                               "images of train without a box: 1 of 8; they count as background", "classes with fewer than 10 boxes: 2 of 2: cat (4), dog (3)"],
                    has=["override /task: detection", "override /datamodule: coco", "override /model: fcos", "root: d\n",
                         "annotations: annotations/instances_SPLIT2017.json", "images: SPLIT2017"])

    def test_as_roboflow_lays_it_out(self):
        for split, n in ("train", 8), ("valid", 3), ("test", 2):
            self.coco(f"d/{split}/_annotations.coco.json", f"d/{split}", n=n)
        self.starts("d", says=["val: d/valid/_annotations.coco.json (3 images)", "test: d/test/_annotations.coco.json (2 images)"],
                    has=["annotations: SPLIT/_annotations.coco.json", "images: SPLIT\n"])

    def test_one_file(self):
        self.coco("d/boxes.json", "d/photos", size=(700, 400))
        self.coco("d/boxes.json", "d/photos", n=12)
        self.write("d/photos/more.png", png(64, 48))
        out = self.starts("d", says=["val: 10 % of them, drawn by the seed", "images in d/photos that d/boxes.json does not name: 1 of 13; they are "
                                     "not used"], has=["annotations: boxes.json", "images: photos"])
        self.assertNotIn("SPLIT", self.config("d"))
        self.assertEqual(self.new("d/boxes.json").replace("boxes.yaml", "d.yaml").replace("experiment=boxes", "experiment=d").split(),
                         out.split())

    def test_one_file_of_several(self):
        for name in "old", "new":
            self.coco(f"d/{name}.json", "d/images")
        self.wrong("d", says=["2 files of COCO's annotations; give the one to train on: d/new.json, d/old.json"], status=2)
        self.starts("d/new.json", name="new", has=["root: d\n", "annotations: new.json"])
        self.coco("e/annotations/train.json", "e/images")
        self.starts("e/annotations/train.json", name="train", has=["root: e\n", "annotations: annotations/SPLIT.json", "images: images"])

    def test_sizes_differ(self):
        self.coco("d/boxes.json", "d/images", size=(640, 480))
        self.write("d/images/3.png", png(300, 500))
        self.starts("d", says=["480x300 to 500x640 pixels"], has=["size: [320, 320]", "letterbox: true"])

    def test_what_is_odd(self):
        box = {"image_id": 0, "category_id": 1}
        boxes = [{"id": 1, **box, "bbox": [4, 4, 20, 20]}, {"id": 2, **box, "bbox": [50, 4, 40, 20]}, {"id": 3, **box, "bbox": [4, 4, 0, 9]},
                 {"id": 4, **box, "bbox": [80, 4, 9, 9]}, {"id": 5, "image_id": 0, "category_id": 9, "bbox": [4, 4, 9, 9]}]
        images = [{"id": i, "file_name": f"{i}.png", "width": 64, "height": 48} for i in range(9)]
        self.coco("d/boxes.json", "d/images", boxes=boxes, images=images, categories=("cat", "dog", "owl"))
        self.starts("d", says=["what is wrong in train: images: 1, boxes: 3; the first: image 8: d/images/8.png: No such file",
                               "boxes of train that reach out of their images, and are cut there: 1, such as annotation 2 of d/boxes.json",
                               'classes without a box to train on: 2 of 3, such as "dog"; they will never be found'],
                    has=["on_error: skip"])

    def test_what_is_wrong(self):
        path = self.coco("d/boxes.json", "d/images")
        with open(path) as f:
            whole = f.read()
        self.write("d/boxes.json", whole[:-80] + "\n")
        self.wrong("d", says=["d/boxes.json:1: can't be read"])
        self.coco("d/boxes.json", "d/images", boxes=[])
        self.wrong("d", says=["d/boxes.json: no image has a box"])
        self.coco("d/boxes.json", "d/images", categories=())
        self.wrong("d", says=["d/boxes.json: there are no categories"])
        self.coco("d/boxes.json", "d/images", annotations=None)
        self.wrong("d", says=['d/boxes.json: expected COCO\'s format, but there is no list "annotations"'])
        self.coco("few.json", ".", n=2)
        self.wrong("few.json", says=["few.json: 2 images are too few"])
        self.coco("d/boxes.json", "d/images", images=[{"id": 1, "file_name": "no/such.png"}])
        self.wrong("d", says=['d/boxes.json: names images such as "no/such.png", which is neither in d nor in a folder there'])
        self.coco("d/boxes.json", "d/images", images=[])
        self.wrong("d", says=['begins as COCO\'s annotations, but no image has a "file_name"'])


class Yolo(Boxes):
    def test_images_and_labels(self):
        for split, n in ("train", 8), ("val", 3):
            self.yolo(f"d/images/{split}", f"d/labels/{split}", n=n)
        self.write("d/data.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n")
        self.starts("d", says=["boxes in YOLO's texts: 7 on 8 images", "cat (4), dog (3)", "train: d/images/train (8 images); val: d/images/val "
                               "(3 images)", "images of train without a box: 1 of 8"], has=["datamodule: yolo", "data: d/data.yaml"])
        self.assertNotIn("root:", self.config("d"))

    def test_roboflow_and_a_path_of_another_machine(self):
        self.yolo("d/train/images", "d/train/labels")
        self.write("d/data.yaml", "train: ../train/images\nnames: [cat, dog]\nnc: 2\n")
        self.starts("d", says=["val: 10 % of them, drawn by the seed"])
        self.write("d/data.yaml", "path: /home/me/set\ntrain: train/images\nval: train/images\nnames: [cat, dog]\n")
        self.starts("d/data.yaml", name="data", says=["path of d/data.yaml is no folder here; the images beside the file are used",
                                                      "val of d/data.yaml names images that train"], has=["root: d\n"])

    def test_texts_beside_images(self):
        self.yolo("d", "d")
        self.wrong("d", says=["d: boxes in YOLO's texts, but no YAML file that names their classes", "write d/data.yaml",
                              "printf 'train: .\\nnames: [cat, dog]\\n' >d/data.yaml"])
        self.write("d/data.yaml", "train: .\nnames: [cat, dog]\n")
        self.starts("d", says=["7 on 8 images"])

    def test_without_yaml(self):
        for split in "train", "val":
            self.yolo(f"d/images/{split}", f"d/labels/{split}")
        self.wrong("d", says=["printf 'train: images/train\\nval: images/val\\nnames: [cat, dog]\\n' >d/data.yaml"])
        self.yolo("e/train/images", "e/train/labels")
        self.wrong("e", says=["printf 'train: train/images\\nnames: [cat, dog]\\n' >e/data.yaml"])

    def test_other_formats(self):
        self.yolo("d/JPEGImages", "texts")
        self.write("d/Annotations/0.xml", "<annotation/>")
        self.wrong("d", says=["d: boxes in Pascal VOC's XML, which kiln does not read; convert them to COCO's JSON"])

    def test_what_is_odd(self):
        self.yolo("d/images/train", "d/labels/train",
                  rows=lambda i: ("0 0.5 0.5 0.25 0.25\n" * 2, "1 0.5 0.5 0.25\n", "7 0.5 0.5 0.2 0.2\n")[min(i, 2)] + "0 0 0.5 0.5 0.5\n")
        self.write("d/data.yaml", "train: images/train\nnames: {0: cat, 1: dog, 2: owl}\n")
        self.write("d/images/train/3.png", b"\x89PNG\r\n\x1a\nnothing")
        self.starts("d", says=["what is wrong in train: images: 0, boxes: 6; the first: d/labels/train/1.txt:1: expected a class and 4 numbers",
                               "boxes of train that reach out of their images, and are cut there: 7, such as d/labels/train/0.txt:3",
                               "boxes of train that are there twice: 1, such as in d/labels/train/0.txt", "1 of 8 images looked at can't be read"],
                    has=["on_error: skip"])

    def test_what_is_wrong(self):
        self.yolo("d/images/train", "d/labels/train", rows=lambda i: "9 0.5 0.5 0.25 0.25\n")
        self.write("d/data.yaml", "train: images/train\nnames: [cat]\n")
        self.wrong("d", says=["d/data.yaml: no image of train has a box; what is wrong first: d/labels/train/0.txt:1: the class 9 is not"])
        self.write("d/other.yaml", "train: images/train\nnames: [cat]\n")
        self.wrong("d", says=["2 files of YOLO's YAML; give the one to train on: d/data.yaml, d/other.yaml"], status=2)
        os.remove(self.path("d/other.yaml"))
        self.write("d/data.yaml", "train: images/none\nnames: [cat]\n")
        self.wrong("d", says=["d/data.yaml:1: train: d/images/none: no such folder of images"])
        self.write("d/data.yaml", "train: [\nnames: 3\n")
        self.wrong("d/data.yaml", says=["d/data.yaml"])


if __name__ == "__main__":
    main()
