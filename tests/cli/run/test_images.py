"""Images as users have them: folders of all formats, tar files, lists with labels, broken files."""
import gzip
import io
import json
import math
import pathlib
import random
import shutil
import struct
import sys
import tarfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]

from kilntest import ROOT, Case, main, png, read, read_json

MODEL = ["model=mlp", "model.hidden=[4]", "trainer.max_epochs=1", "trainer.threads=1"]
FORMATS = pathlib.Path(ROOT, "tests/data/formats")


def tar(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def pets():
    """Files of two classes in two splits, some with a name of another format."""
    files = {}
    for split, n in (("train", 6), ("val", 2)):
        for k, name in enumerate(("cat", "dog")):
            for i in range(n):
                files[f"{split}/{name}/{i}.png"] = png(8, 6, (200 * k, 40 * i, 9))
    return files


class Folders(Case):
    def write_all(self, folder, files):
        for name, data in files.items():
            self.write(f"{folder}/{name}", data)

    def test_formats(self):
        files = pets()
        for i, name in enumerate(("rgb_420.jpg", "cmyk.jpg", "rgb_progressive.jpg", "oriented_6.png")):
            files[f"train/cat/x{i}.jpg"] = (FORMATS / name).read_bytes()
        self.write_all("pets", files)
        out, _ = self.run_kiln("datamodule=image_folder", "datamodule.root=pets", "datamodule.size=16", *MODEL, "kiln.run.dir=run")
        self.assertIn("train 16, val 4", out)
        self.run_kiln("predict", "ckpt_path=run", f"input={FORMATS}/rgb_422.jpg", program="kiln")

    def test_broken_images(self):
        files = pets()
        files["train/cat/cut.jpg"] = (FORMATS / "bad/cut.jpg").read_bytes()
        self.write_all("pets", files)
        args = ["datamodule=image_folder", "datamodule.root=pets", "datamodule.size=16", *MODEL]
        _, err = self.run_kiln(*args, status=1)
        self.assertIn("pets/train/cat/cut.jpg: damaged JPEG: the file ends before the image does", err)
        for name in ("pets/train/cat/cut2.jpg", "pets/val/dog/cut.jpg"):
            self.write(name, files["train/cat/cut.jpg"])
        self.write("pets/test/dog/text.jpg", b"a note")
        self.write("pets/test/dog/0.png", files["train/dog/0.png"])
        out, _ = self.run_kiln(*args, "datamodule.on_error=skip", "test=true", "kiln.run.dir=skips")
        self.assertEqual(out.count("warning: sample left out"), 2)  # of each kind of error
        self.assertRegex(out, "left out +3 samples such as pets/[a-z/]+/cut2?.jpg: damaged JPEG: the file ends")
        left = read_json(self.path("skips/summary.json"))["data"]["left_out"]
        self.assertEqual([(each["count"], each["what"]) for each in left], [(3, "samples"), (1, "samples")])
        _, err = self.run_kiln("eval", "skips", "split=val", program="kiln")
        self.assertIn("warning: sample left out: pets/val/dog/cut.jpg: damaged JPEG", err)

    def test_statistics_of_the_data(self):
        """normalize without numbers takes those of the training images; they are part of the checkpoint."""
        self.write_all("pets", pets())
        args = ["datamodule=image_folder", "datamodule.root=pets", *MODEL, "datamodule.transforms=[{_target_: normalize}]"]
        self.run_kiln(*args, "kiln.run.dir=run", "seed=1")
        numbers = read(self.path("run/checkpoints/last/preprocessing/image_statistics.txt"), "r").split()
        self.assertEqual(numbers[0], "0")
        mean, std = [[float(n) for n in part] for part in (numbers[1:4], numbers[4:])]
        for got, want in zip(mean + std, [100 / 255, 100 / 255, 9 / 255, 100 / 255, 68.313 / 255, 0]):
            self.assertAlmostEqual(got, want, 5)
        std[2] = 1  # of a channel that is constant
        self.run_kiln(*args[:-1], f"datamodule.transforms=[{{_target_: normalize, mean: {mean}, std: {std}}}]",
                      "kiln.run.dir=same", "seed=1")
        self.assertEqual(read(self.path("run/checkpoints/last/model.safetensors")),
                         read(self.path("same/checkpoints/last/model.safetensors")))
        out = [self.run_kiln("predict", f"ckpt_path={run}", "input=pets/val", "output=-", program="kiln")[0] for run in ("run", "same")]
        self.assertEqual(*out)
        self.run_kiln("resume=run", "trainer.max_epochs=2")

    def test_tar(self):
        """The numbers of a folder, also from a packed archive; and what its members' names say is checked."""
        files = pets()
        self.write_all("pets", files)
        self.write("pets.tar", tar({f"./{name}": data for name, data in files.items()}))
        self.write("pets.tar.gz", gzip.compress(tar(files)))
        tables = []
        for root in ("pets", "pets.tar", "pets.tar.gz"):
            self.run_kiln("datamodule=image_folder", f"datamodule.root={root}", *MODEL, f"kiln.run.dir=run-{root}", "seed=1")
            tables.append([row.split(",")[:3] for row in read(self.path(f"run-{root}/metrics.csv"), "r").splitlines()])
            self.assertEqual(read_json(self.path(f"run-{root}/summary.json"))["data"]["samples"]["train"], 12)
        weights = [read(self.path(f"run-{root}/checkpoints/last/model.safetensors")) for root in ("pets", "pets.tar", "pets.tar.gz")]
        self.assertEqual(weights[0], weights[1])
        self.assertEqual(weights[0], weights[2])
        for change, says in (({"train/bird/deep/1.png": png(8, 6)}, "pets.tar/train/bird/deep: a folder inside a class"),
                             ({"val/fish/1.png": png(8, 6)}, 'the class "fish" is not among the 2 classes'),
                             ({"train/cat/9.png": b"text"}, "pets.tar/train/cat/9.png: not an image")):
            self.write("pets.tar", tar({**files, **change}))
            _, err = self.run_kiln("datamodule=image_folder", "datamodule.root=pets.tar", *MODEL, status=1)
            self.assertIn(says, err)
        self.write("pets.tar", tar(files)[:3000])
        _, err = self.run_kiln("datamodule=image_folder", "datamodule.root=pets.tar", *MODEL, status=1)
        self.assertIn("pets.tar: damaged tar, at byte", err)
        self.write("pets.tar", tar({"x/1.png": b""}))
        _, err = self.run_kiln("datamodule=image_folder", "datamodule.root=pets.tar", *MODEL, status=1)
        self.assertIn("has no folder train/", err)


class Lists(Case):
    def setUp(self):
        super().setUp()
        self.files = {name: data for name, data in pets().items() if name.startswith("train")}
        for name, data in self.files.items():
            self.write(f"images/{name}", data)
        self.write("images.tar", tar(self.files))
        self.rows = [(name, name.split("/")[1]) for name in self.files]
        self.write("list.csv", "image,label\n" + "".join(f"{a},{b}\n" for a, b in self.rows))

    def train(self, *args, **options):
        """Into the folder `run`, which may be there."""
        shutil.rmtree(self.path("run"), ignore_errors=True)
        return self.run_kiln("datamodule=image_list", *MODEL, "kiln.run.dir=run", *args, **options)

    def test_formats_of_lists(self):
        self.write("list.tsv", "file\tkind\n" + "".join(f"{a}\t{b}\n" for a, b in self.rows))
        self.write("list.jsonl", "".join(json.dumps({"image": a, "label": b}) + "\n" for a, b in self.rows))
        out, _ = self.train("datamodule.files.train=[list.csv]", "datamodule.root=images")
        self.assertIn("train 11, val 1", out)
        self.assertIn("2: cat, dog", out)
        self.train("datamodule.files.train=[list.tsv]", "datamodule.root=images", "datamodule.image=file", "datamodule.label=kind")
        self.train("datamodule.files.train=[list.jsonl]", "datamodule.root=images.tar")
        self.run_kiln("predict", "ckpt_path=run", "input=images/train/cat", program="kiln")
        self.train("datamodule.files={train: [list.csv], val: [list.csv], test: [list.csv]}", "datamodule.root=images.tar",
                   "datamodule.on_error=skip")
        weights = read(self.path("run/checkpoints/last/model.safetensors"))
        self.train("datamodule.files={train: [list.csv], val: [list.csv], test: [list.csv]}", "datamodule.root=images")
        self.assertEqual(weights, read(self.path("run/checkpoints/last/model.safetensors")))
        self.write("images/list.csv", read(self.path("list.csv")))
        self.train("datamodule.files={train: [images/list.csv], val: [images/list.csv], test: [images/list.csv]}")
        self.assertEqual(weights, read(self.path("run/checkpoints/last/model.safetensors")))

    def test_several_labels(self):
        flags = "".join(f"{a},{int(b == 'cat')},{i % 2},0\n" for i, (a, b) in enumerate(self.rows))
        self.write("flags.csv", "image,furry,old,loud\n" + flags)
        self.write("some.jsonl", "".join(json.dumps({"image": a, "label": [b, "odd"][: i % 3]}) + "\n"
                                         for i, (a, b) in enumerate(self.rows)))
        self.write("some.csv", "image,label\n" + "".join(f"{a},{';'.join([b, 'odd'][: i % 3])}\n" for i, (a, b) in enumerate(self.rows)))
        weights = []
        for args in (["datamodule.files.train=[flags.csv]", "datamodule.label_columns=[furry,old,loud]",
                      "task.loss={_target_: binary_cross_entropy, balanced: true}"],
                     ["datamodule.files.train=[some.jsonl]"],
                     ["datamodule.files.train=[some.csv]", "datamodule.label_separator=;"]):
            out, _ = self.train("task=multilabel_classification", "datamodule.multilabel=true", "datamodule.root=images", *args)
            self.assertIn("labels f32 [", out)
            self.assertIn("val/micro_f1", out)
            weights.append(read(self.path("run/checkpoints/last/model.safetensors")))
        self.assertEqual(weights[1], weights[2])  # the same labels in two forms
        out, _ = self.run_kiln("predict", "run", "split=train", program="kiln")
        self.assertEqual([len(json.loads(line)["probabilities"]) for line in out.splitlines()], [3] * 11)

    def test_class_weights(self):
        """The loss of the test is the weighted mean that PyTorch computes, with weights of a list and of the classes' numbers."""
        self.write("list.csv", "image,label\n" + "".join(f"{a},{'cat' if i < 9 else 'dog'}\n" for i, (a, _) in enumerate(self.rows)))
        for option, weights in (("class_weights=[1,3]", (1, 3)), ("balanced=true", (12 / 18, 12 / 6))):
            self.train("datamodule.files={train: [list.csv], val: [list.csv], test: [list.csv]}", "datamodule.root=images",
                       "task.loss." + option, "lr=0.5")
            out, _ = self.run_kiln("predict", "run", "split=test", program="kiln")
            rows = [json.loads(line) for line in out.splitlines()]
            kinds = [("cat", "dog").index(row["label"]) for row in rows]
            loss = sum(-weights[k] * math.log(row["probabilities"][k]) for k, row in zip(kinds, rows)) / sum(weights[k] for k in kinds)
            self.assertAlmostEqual(read_json(self.path("run/summary.json"))["metrics"]["test/loss"]["last"]["value"], loss, 5)
        self.train("datamodule.files.train=[list.csv]", "datamodule.root=images", "task.loss.class_weights=[1,2,3]", status=1)

    def test_mistakes(self):
        for text, args, says in (
                ("image,label\nnone.png,cat\n", ["datamodule.root=images.tar"], 'list.csv:2: "none.png" is not in images.tar'),
                ("image,label\n,cat\n", [], 'list.csv:2: the path (column "image") is empty'),
                ("image,label\nx.png,\n", [], 'the label (column "label") is empty'),
                ("image,label\nnone.png,cat\nnone.png,dog\nnone.png,dog\n", ["datamodule.root=images"],
                 "images/none.png: No such file"),
                ("path,label\nx.png,cat\n", [], '"image"'),
                ("image,label\nx.png,cat\n", ["datamodule.classes=[dog]"], 'the label "cat" is not one of the 1 classes'),
                ("image,label\nx.png,cat\n", ["datamodule.label_separator=;"], "needs multilabel=true")):
            self.write("list.csv", text)
            _, err = self.train("datamodule.files.train=[list.csv]", *args, status=1)
            self.assertIn(says, err)

    def test_bad_rows_are_counted(self):
        self.write("list.csv", read(self.path("list.csv"), "r") + ",cat\n,dog\n")
        out, _ = self.train("datamodule.files.train=[list.csv]", "datamodule.root=images", "datamodule.on_error=skip")
        self.assertIn("2 train rows such as list.csv:14", out)
        left = read_json(self.path("run/summary.json"))["data"]["left_out"]
        self.assertEqual([each["count"] for each in left], [2])


class Shards(Case):
    def train(self, *args, **options):
        shutil.rmtree(self.path("run"), ignore_errors=True)
        return self.run_kiln("datamodule=image_shards", *MODEL, "kiln.run.dir=run", *args, **options)

    def shards(self, label, ending="cls"):
        """Two archives with a sample per image; label(i, class name) is the content of the file beside it."""
        for shard in range(2):
            files = {}
            for i, (name, data) in enumerate(pets().items()):
                if name.startswith("train") and i % 2 == shard:
                    files[f"part/{i:03}.left.png"] = data
                    content = label(i, name.split("/")[1])
                    if content is not None:
                        files[f"part/{i:03}.{ending}"] = content.encode()
                    files[f"part/{i:03}.txt"] = b"a caption"
            self.write(f"{shard}.tar", tar(files))
        self.write("1.tar.gz", gzip.compress(read(self.path("1.tar"))))

    def test_classes(self):
        self.shards(lambda i, name: name + "\n")
        out, _ = self.train("datamodule.files.train=[0.tar,1.tar.gz]")
        self.assertIn("train 11, val 1", out)
        self.assertIn("2: cat, dog", out)
        weights = read(self.path("run/checkpoints/last/model.safetensors"))
        self.train("datamodule.files.train=[0.tar,1.tar]", "task.loss.balanced=false")
        self.assertEqual(weights, read(self.path("run/checkpoints/last/model.safetensors")))
        self.run_kiln("eval", "ckpt_path=run", "datamodule.files.test=[1.tar]", program="kiln")
        self.train("datamodule.files={train: [0.tar], val: [1.tar], test: [1.tar]}", "task.loss.balanced=true")

    def test_numbers_keep_their_order(self):
        self.shards(lambda i, name: "2" if name == "cat" else "10")
        out, _ = self.train("datamodule.files.train=[0.tar,1.tar]")
        self.assertIn("11: 0, 1, 2, 3", out)

    def test_json(self):
        self.shards(lambda i, name: json.dumps({"kind": i % 3, "tags": ["x", name][: i % 3]}), "json")
        out, _ = self.train("datamodule.files.train=[0.tar,1.tar]", "datamodule.label=json", "datamodule.label_key=kind")
        self.assertIn("3: 0, 1, 2", out)
        out, _ = self.train("task=multilabel_classification", "datamodule.files.train=[0.tar,1.tar]", "datamodule.label=json",
                            "datamodule.label_key=tags", "datamodule.multilabel=true",
                            "task.loss={_target_: binary_cross_entropy, balanced: true}")
        self.assertIn("labels f32 [", out)

    def test_mistakes(self):
        for label, ending, args, says in (
                (lambda i, name: None if i == 3 else name, "cls", [], "1.tar/part/003.left.png: no file with the same name that ends in .cls"),
                (lambda i, name: "" if i == 2 else name, "cls", [], '0.tar/part/002.left.png: the label (column "cls") is empty'),
                (lambda i, name: "{", "json", ["datamodule.label=json", "datamodule.label_key=x"], "0.tar/part/000.json:1:"),
                (lambda i, name: '{"x": 1.5}', "json", ["datamodule.label=json", "datamodule.label_key=x"], '"x" is neither a text nor'),
                (lambda i, name: "[1]", "json", ["datamodule.label=json", "datamodule.label_key=x"], "(column \"x\") is empty"),
                (lambda i, name: name, "cls", ["datamodule.multilabel=true"], "multilabel: needs label_key")):
            self.shards(label, ending)
            _, err = self.train("datamodule.files.train=[0.tar,1.tar]", *args, status=1)
            self.assertIn(says, err)
        self.write("none.tar", tar({"a.txt": b""}))
        _, err = self.train("datamodule.files.train=[none.tar]", status=1)
        self.assertIn("none.tar: no sample with an image", err)

    def test_bad_samples_are_counted(self):
        self.shards(lambda i, name: None if i in (2, 3, 4) else name)
        out, _ = self.train("datamodule.files.train=[0.tar,1.tar]", "datamodule.on_error=skip")
        self.assertIn("3 samples such as 0.tar/part/002.left.png", out)
        self.assertEqual(read_json(self.path("run/summary.json"))["data"]["samples"]["train"], 8)


def crop(image, top, left, height, width):
    return [row[left:left + width] for row in image[top:top + height]]


def mirror(image):
    return [row[::-1] for row in image]


def scale(image, height, width):
    """Bilinear, as torch.nn.functional.interpolate without align_corners."""
    def places(size, to):
        for i in range(to):
            at = max((i + 0.5) * size / to - 0.5, 0)
            low = min(int(at), size - 1)
            yield low, min(low + 1, size - 1), at - low

    return [[[(1 - y) * ((1 - x) * image[a][c][k] + x * image[a][d][k]) + y * ((1 - x) * image[b][c][k] + x * image[b][d][k])
              for k in range(3)] for c, d, x in places(len(image[0]), width)] for a, b, y in places(len(image), height)]


class TestTimeAugmentation(Case):
    """The mean over the views of an image is that of the views predicted one by one."""
    HEIGHT, WIDTH = 8, 6

    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        for split, n in (("train", 6), ("val", 2), ("test", 5)):
            for k, name in enumerate(("cat", "dog")):
                for i in range(n):
                    self.write(f"pets/{split}/{name}/{i}.png", png(8, 6, (200 * k, 40 * i, draw.randrange(255))))
        self.images = [[[[draw.random() for _ in range(3)] for _ in range(self.WIDTH)] for _ in range(self.HEIGHT)] for _ in range(3)]
        self.run_kiln("datamodule=image_folder", "datamodule.root=pets", f"datamodule.size=[{self.HEIGHT},{self.WIDTH}]", *MODEL,
                      "model.hidden=[16]", "lr=1", "trainer.max_epochs=4", "kiln.run.dir=run")

    def predict(self, images, *args):
        numbers = struct.pack(f"<{len(images) * self.HEIGHT * self.WIDTH * 3}f", *(v for i in images for r in i for p in r for v in p))
        head = json.dumps({"image": {"dtype": "F32", "shape": [len(images), self.HEIGHT, self.WIDTH, 3],
                                     "data_offsets": [0, len(numbers)]}}).encode()
        self.write("views.safetensors", struct.pack("<Q", len(head)) + head + numbers)
        out, _ = self.run_kiln("predict", "run", "views.safetensors", *args, program="kiln")
        return [json.loads(line)["probabilities"] for line in out.splitlines()]

    def crops(self, image, height, width):
        bottom, right = self.HEIGHT - height, self.WIDTH - width
        return [scale(crop(image, top, left, height, width), self.HEIGHT, self.WIDTH) for top, left in
                ((0, 0), (0, right), (bottom, 0), (bottom, right), (round(bottom / 2), round(right / 2)))]

    def test_mean_of_the_views(self):
        for args, views in (
                (["flip"], lambda i: [i, mirror(i)]),
                (["five_crop"], lambda i: self.crops(i, 7, 5)),  # 7/8
                (["ten_crop", "task.test_crop=[5,4]"], lambda i: self.crops(i, 5, 4) + self.crops(mirror(i), 5, 4))):
            got = self.predict(self.images, "task.test_augmentation=" + args[0], *args[1:])
            self.assertNotEqual(got, self.predict(self.images))
            for image, probabilities in zip(self.images, got):
                each = self.predict(views(image))
                for k in range(2):
                    self.assertAlmostEqual(probabilities[k], sum(one[k] for one in each) / len(each), 6)

    def test_loss_and_accuracy(self):
        out, _ = self.run_kiln("eval", "run", "task.test_augmentation=ten_crop", program="kiln")
        metrics = json.loads(out)["metrics"]
        plain = json.loads(self.run_kiln("eval", "run", program="kiln")[0])["metrics"]
        self.assertNotEqual(metrics["test/loss"], plain["test/loss"])
        out, _ = self.run_kiln("predict", "run", "split=test", "task.test_augmentation=ten_crop", program="kiln")
        rows = [json.loads(line) for line in out.splitlines()]
        right = [row["probabilities"][["cat", "dog"].index(row["label"])] for row in rows]
        self.assertAlmostEqual(metrics["test/loss"], -sum(math.log(p) for p in right) / len(right), 5)
        self.assertAlmostEqual(metrics["test/accuracy"], sum(row["class"] == row["label"] for row in rows) / len(rows), 5)

    def test_mistakes(self):
        _, err = self.run_kiln("eval", "run", "task.test_augmentation=five_crop", "task.test_crop=7", program="kiln", status=1)
        self.assertIn("test_crop: 7 x 7 is larger than the images of 8 x 6", err)
        _, err = self.run_kiln("eval", "run", "task.test_augmentation=five_crop", "task.test_crop=5", "task.test_resize=false",
                               program="kiln", status=1)
        self.assertIn("5", err)


if __name__ == "__main__":
    main()
