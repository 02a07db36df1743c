"""Object detection as users run it: training on drawn shapes, values, predictions of files, resuming, mistakes."""
import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kilntest import Case, main  # noqa: E402

RUN = ["experiment=shapes/fcos", "datamodule.size=64", "datamodule.train_count=64", "datamodule.val_count=8",
       "datamodule.test_count=8", "model.width=32", "model.convs=1", "batch_size=8", "trainer.threads=1"]


def picture(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80\x10\x10" * width for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


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
                f.write(picture(*size))
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

    def test_mistakes(self):
        _, err = self.run_kiln(*RUN, "model.width=48", status=1)
        self.assertIn("multiple of 32, got 48", err)
        _, err = self.run_kiln("task=detection", "datamodule=shapes", "model=unet", status=1)
        self.assertIn('task detection needs a sequence "logits", but unet gives a map', err)
        _, err = self.run_kiln("task=detection", "model=fcos", status=1)
        self.assertIn('"boxes"', err)


if __name__ == "__main__":
    main()
