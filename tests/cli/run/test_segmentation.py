"""Segmentation as users run it: masks of palettes and grey values, training, prediction, pictures, mistakes."""
import json
import os
import random
import shutil
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kilntest import ROOT, TINY, Case, main, png_pixels  # noqa: E402


def picture(rows, colour, depth=8, palette=None):
    """A PNG of rows of bytes: colour type 0 grey, 2 RGB, 3 palette."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width = len(rows[0]) * (8 // depth if depth < 8 else 1) // (3 if colour == 2 else 1)
    data = b"".join(b"\0" + bytes(row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)) +
            (chunk(b"PLTE", bytes(palette)) if palette else b"") + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


FORMATS = os.path.join(ROOT, "tests/data/formats")

HEIGHT, WIDTH = 24, 32
PALETTE = [0, 0, 0, 128, 0, 0, 0, 128, 0]  # not the numbers of the classes
RUN = ["task=segmentation", "datamodule=mask_folder", "datamodule.root=data", "datamodule.classes=[left,red,green]",
       "model=unet", "model.width=8", "model.levels=2", "optimizer=adam", "lr=0.01", "scheduler=constant", "batch_size=4",
       "trainer.threads=1", "kiln.run.dir=run"]


class Segmentation(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        for split, n in (("train", 8), ("val", 4), ("test", 2)):
            for i in range(n):
                # A red and a green rectangle on grey; the border of a mask has no class.
                mask = [[0] * WIDTH for _ in range(HEIGHT)]
                for kind in (1, 2):
                    top, left = draw.randrange(2, HEIGHT - 10), draw.randrange(2, WIDTH - 12)
                    for y in range(top, top + 8):
                        mask[y][left:left + 10] = [kind] * 10
                image = [[v for c in row for v in ((90, 90, 90), (200, 20, 20), (20, 200, 20))[c]] for row in mask]
                mask[0] = [255] * WIDTH
                self.write(f"data/images/{split}/{i}.png", picture(image, 2))
                kind = 3 if i % 2 else 0
                self.write(f"data/masks/{split}/{i}.png", picture(mask, kind, palette=PALETTE if kind else None))

    def test_learns_predicts_and_draws(self):
        out, _ = self.run_kiln(*RUN, "trainer.max_epochs=15")
        self.assertIn("mask i32 [24, 32]", out)
        with open(self.path("run/summary.json")) as f:
            metrics = {name: entry["last"]["value"] for name, entry in json.load(f)["metrics"].items()}
        self.assertGreater(metrics["test/iou"], 0.6, metrics)  # by chance 0.3
        self.assertGreater(metrics["test/accuracy"], 0.85)
        self.assertIn("test/iou/green", metrics)
        out, _ = self.run_kiln("predict", "run", "data/images/test", "+callbacks.mask_writer={_target_: callback/mask_writer, dir: out}",
                               program="kiln")
        first = json.loads(out.splitlines()[0])
        self.assertEqual(len(first["classes"]), HEIGHT * WIDTH)
        for name in ("0.png", "0-overlay.png", "1.png", "1-overlay.png"):
            self.assertTrue(os.path.getsize(self.path("out", name)) > 0)
        _, err = self.run_kiln("predict", "run", "data/images/test", "+callbacks.mask_writer={_target_: callback/mask_writer, dir: data/images/test}",
                               program="kiln", status=1)
        self.assertIn("the picture data/images/test/0.png would overwrite the image itself", err)
        # Files of one name in two folders have a picture each.
        for folder in ("data/more/a", "data/more/b"):
            os.makedirs(self.path(folder))
            shutil.copy(self.path("data/images/test/0.png"), self.path(folder))
        shutil.copy(self.path("data/images/test/1.png"), self.path("data/more/b"))
        self.run_kiln("predict", "run", "data/more", "+callbacks.mask_writer={_target_: callback/mask_writer, dir: more}", program="kiln")
        self.assertEqual(sorted(os.listdir(self.path("more"))),
                         ["0-000000-overlay.png", "0-000000.png", "0-000001-overlay.png", "0-000001.png", "1-overlay.png", "1.png"])
        _, err = self.run_kiln("eval", "run", program="kiln")
        self.assertNotIn("error", err)

    def test_no_val_folder(self):
        for name in os.listdir(self.path("data/images/val")):
            os.remove(self.path("data/images/val", name))
        os.rmdir(self.path("data/images/val"))
        out, _ = self.run_kiln(*RUN, "trainer.max_epochs=1", "test=false")
        self.assertIn("train 7, val 1", out)

    def test_parts_jpeg_and_orientation(self):
        """Pictures of all formats with masks, of which transforms take a part; an EXIF orientation turns both."""
        for i in range(8):
            for name in ("data/images/train", "data/masks/train"):
                os.remove(self.path(name, f"{i}.png"))
            shutil.copy(os.path.join(FORMATS, f"oriented_{i + 1}." + ("jpg", "webp")[i % 2]), self.path("data/images/train"))
        self.write("data/images/train/notes.txt", b"notes")
        with open(os.path.join(FORMATS, "upright.png"), "rb") as f:
            width, height = struct.unpack(">II", f.read(24)[16:])
        masks = {n: picture([[y % 3] * (height if n > 4 else width) for y in range(width if n > 4 else height)], 0) for n in range(1, 9)}
        for n, mask in masks.items():
            self.write(f"data/masks/train/oriented_{n}.png", mask)
        parts = ["trainer.max_steps=2", "datamodule.transforms=[{_target_: random_resized_crop, size: [24, 32]}, {_target_: flip}]"]
        out, _ = self.run_kiln(*RUN, *parts, "datamodule.mask_orientation=stored")
        self.assertIn("data/images/train/notes.txt: images are .png, .jpg, .jpeg and .webp files", out)
        shutil.rmtree(self.path("run"))
        _, err = self.run_kiln(*RUN, *parts, status=1)
        self.assertIn("as its EXIF orientation turns it; for masks of the stored pixels set datamodule.mask_orientation=stored", err)
        shutil.rmtree(self.path("run"))
        out, _ = self.run_kiln(*RUN, *parts, "datamodule.on_error=skip")
        self.assertRegex(out, "left out .*oriented_[5678].* pixels, but its image")

    def test_mirror_images_in_the_test(self):
        """An image that is its own mirror image gets a mask that is one, too."""
        self.run_kiln(*RUN, "trainer.max_epochs=8")
        rows = png_pixels(self.path("data/images/train/0.png"))
        half = [row[:WIDTH // 2] for row in rows]
        self.write("even.png", picture([[v for p in row + row[::-1] for v in p] for row in half], 2))
        masks = []
        for args in ([], ["task.test_augmentation=flip"]):
            out, _ = self.run_kiln("predict", "run", "even.png", *args, program="kiln")
            classes = json.loads(out)["classes"]
            masks.append([classes[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)])
        self.assertFalse(masks[0] == [row[::-1] for row in masks[0]])
        self.assertTrue(masks[1] == [row[::-1] for row in masks[1]])
        losses = [json.loads(self.run_kiln("eval", "run", *args, program="kiln")[0])["metrics"]["test/loss"]
                  for args in ([], ["task.test_augmentation=flip"])]
        self.assertNotEqual(*losses)

    def test_pictures_while_training(self):
        self.run_kiln(*RUN, "trainer.max_epochs=3", "test=false", "callbacks=sample_masks", "callbacks.sample_masks.every_n_epochs=2",
                      "callbacks.sample_masks.count=3", "logger=[csv,tensorboard]")
        self.assertEqual(sorted(os.listdir(self.path("run/masks"))), ["epoch=000.png", "epoch=002.png"])
        rows = png_pixels(self.path("run/masks/epoch=002.png"))
        self.assertEqual((len(rows), len(rows[0])), (3 * (HEIGHT + 1) - 1, 2 * (WIDTH + 1) - 1))
        self.assertEqual(rows[HEIGHT][5], (128, 128, 128))  # between pictures
        image = png_pixels(self.path("data/images/val/0.png"))
        colours = {(90, 90, 90): (0, 0, 0), (200, 20, 20): (128, 0, 0), (20, 200, 20): (0, 128, 0)}
        for y in range(HEIGHT):
            for x in range(WIDTH):
                seen = [255 * (v - 20) / 180 for v in image[y][x]]
                want = seen if y == 0 else [(v + c) / 2 for v, c in zip(seen, colours[image[y][x]])]
                for got, v in zip(rows[y][x], want):
                    self.assertAlmostEqual(got, v, delta=1)
        events = [name for name in os.listdir(self.path("run/tensorboard")) if "tfevents" in name]
        with open(self.path("run/tensorboard", events[0]), "rb") as f:
            self.assertEqual(f.read().count(b"val/masks"), 2)
        _, err = self.run_kiln(*TINY, "callbacks=sample_masks", "kiln.run.dir=tiny", status=1)
        self.assertIn("the task gives no class for each pixel", err)

    def refuses(self, *says, args=()):
        self.refused(*RUN, *args, "trainer.max_steps=2", says=says)

    def stops(self, *says):
        """While it reads the samples."""
        _, err = self.run_kiln(*RUN, "trainer.max_steps=2", status=1)
        for text in says:
            self.assertIn(text, err)
        shutil.rmtree(self.path("run"))

    def test_mask_mistakes(self):
        rows = [[7] * WIDTH for _ in range(HEIGHT)]
        self.write("data/masks/train/3.png", picture(rows, 0))
        self.stops("data/masks/train/3.png: a pixel has the value 7, but the classes are 0 to 2", "ignore")
        self.run_kiln(*RUN, "trainer.max_steps=2", "test=false", "datamodule.ignore=[255,7]")
        shutil.rmtree(self.path("run"))
        self.write("data/masks/train/3.png", picture(rows[:-1], 0))
        self.stops("masks/train/3.png is 23 x 32 pixels, but its image data/images/train/3.png is 24 x 32")
        self.write("data/masks/train/3.png", picture([[1, 2, 3] * WIDTH for _ in range(HEIGHT)], 2))
        self.stops("masks/train/3.png: a mask must be a PNG of a palette or of grey values")
        self.write("data/masks/train/3.png", b"no picture")
        self.stops("masks/train/3.png: not a PNG file")
        data = picture([[0] * WIDTH for _ in range(HEIGHT)], 0)
        self.write("data/masks/train/3.png", data[:-20])
        self.stops("masks/train/3.png: damaged PNG")
        os.remove(self.path("data/masks/train/3.png"))
        self.refuses("images/train/3.png has no mask: expected data/masks/train/3.png")

    def test_config_mistakes(self):
        self.refuses("rotation would mix the classes", args=["datamodule.transforms=[{_target_: rotation, degrees: 5}]"])
        self.refuses("2 is class \"green\"", args=["datamodule.ignore=[2]"])
        self.refuses("expected SPLIT in both paths or in none", args=["datamodule.masks=masks"])
        self.refuses("no such folder", args=["datamodule.masks=mask/SPLIT"])
        self.refuses("needs a map", "resnet gives", args=["model=resnet", "~model.width", "~model.levels"])
        self.refuses("too small to be halved 6 times", args=["model.levels=6"])

    def test_weights_of_classes_and_a_resnet(self):
        out, _ = self.run_kiln(*RUN, "task.loss.class_weights=[1,2,3]", "trainer.max_steps=2", "test=false")
        self.assertIn("finished", out)
        self.refuses("class_weights", args=["task.loss.class_weights=[1,2]"])


if __name__ == "__main__":
    main()
