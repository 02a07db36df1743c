#!/usr/bin/env python3
"""What a run reports about its data: samples, classes, shapes and skipped samples; and data that exceeds memory."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import resource
import signal
import struct
import unittest
import zlib

from kilntest import BUILD, TINY, Braked, Case, build_plugin, live, main, png, read, read_json

ASAN = "asan" in BUILD

MODEL = ["model=mlp", "model.hidden=[4]", "trainer.max_epochs=1", "trainer.threads=1"]


class Report(Case):
    """What the first screen, --plan and summary.json say."""

    def pets(self):
        for name in ["cat", "dog"]:
            for i in range(5):
                self.write(f"pets/train/{name}/{i}.png", png(8, 6))
            self.write(f"pets/val/{name}/1.png", png(8, 6))
            self.write(f"pets/test/{name}/1.png", png(8, 6))
        return ["datamodule=image_folder", "datamodule.root=pets", *MODEL]

    def lines(self, text, word):
        """The lines of the summary of the data; what was left out is said again at the end."""
        text = text.split(" finished after")[0]
        return [line.split(None, word.count(" ") + 1)[-1] for line in text.splitlines()
                if line.strip().startswith(word + " ")]

    def test_other_files_are_reported(self):
        args = self.pets()
        for name in ["train/cat/a.gif", "train/dog/b.GIF", "val/cat/c.gif", "train/dog/notes.txt", "train/readme"]:
            self.write("pets/" + name, b"GIF89a")
        self.write("pets/night/dog/1.png", png(8, 6))
        self.write("pets/valid/dog/1.png", png(8, 6))
        args.append("+datamodule.val_folders={night: pets/night}")
        want = {
            "samples": ["train 10, val 2, val/night 1, test 2"],
            "classes": ["2: cat, dog"],
            "a sample": ["image f32 [6, 8, 3], label i32"],
            "left out": ["pets/train/readme: not in the folder of a class",
                         "3 .gif files such as pets/train/cat/a.gif: only .png, .jpg, .jpeg and .webp",
                         "pets/train/dog/notes.txt: only .png, .jpg, .jpeg and .webp files are read",
                         "pets/valid: the folders of splits are train, val and test"],
        }
        for out in (self.run_kiln(*args, "kiln.run.dir=run")[0], self.run_kiln(*args, "--plan")[0]):
            for word, texts in want.items():
                lines = self.lines(out, word)  # of those that wrap the beginning
                self.assertTrue(len(lines) == len(texts) and all(map(str.startswith, lines, texts)), out)
        data = read_json(self.path("run/summary.json"))["data"]
        self.assertEqual(data["samples"], {"train": 10, "val": 2, "val/night": 1, "test": 2})
        self.assertEqual(data["classes"], ["cat", "dog"])
        self.assertEqual(data["features"]["image"], {"type": "f32", "shape": [6, 8, 3]})
        self.assertEqual([(each["count"], each["example"]) for each in data["left_out"]],
                         [(1, "pets/train/readme"), (3, "pets/train/cat/a.gif"), (1, "pets/train/dog/notes.txt"),
                          (1, "pets/valid")])
        self.assertIn("left out   3 .gif files", read(self.path("run/train.log"), "r"))
        _, err = self.run_kiln("eval", "ckpt_path=run", program="kiln")
        self.assertIn("warning: left out: 3 .gif files such as pets/train/cat/a.gif", err)
        _, err = self.run_kiln("predict", "ckpt_path=run", "input=pets/val", program="kiln")
        self.assertEqual(err.strip(), "warning: left out: pets/val/cat/c.gif: only .png, .jpg, .jpeg and .webp files are read")

    def test_nothing_is_said_of_nothing(self):
        out, _ = self.run_kiln(*self.pets(), "kiln.run.dir=run", "test=false")
        self.assertEqual(self.lines(out, "samples"), ["train 10, val 2"], "test is not looked at")
        self.assertNotIn("left out", out)
        self.assertEqual(read_json(self.path("run/summary.json"))["data"]["left_out"], [])

    def test_many_classes_are_abbreviated(self):
        for i in range(60):
            self.write(f"pets/train/class{i:02}/1.png", png(4, 4))
            self.write(f"pets/val/class{i:02}/1.png", png(4, 4))
        out, _ = self.run_kiln("datamodule=image_folder", "datamodule.root=pets", *MODEL, "--plan")
        self.assertEqual(self.lines(out, "classes"),
                         ["60: class00, class01, class02, class03, class04, class05, ..., class59"])

    def test_names_that_are_no_utf8(self):
        args = self.pets()
        with open(os.path.join(os.fsencode(self.path("pets/train/cat")), b"caf\xe9.gif"), "wb"):
            pass
        self.run_kiln(*args, "kiln.run.dir=run", errors="surrogateescape")
        left_out = read_json(self.path("run/summary.json"))["data"]["left_out"]
        self.assertEqual(left_out[0]["example"], "pets/train/cat/caf?.gif")

    def test_every_datamodule_reports(self):
        out, _ = self.run_kiln(*TINY, "--plan")
        self.assertEqual(self.lines(out, "samples"), ["train 256, val 64, test 64"])
        self.assertEqual(self.lines(out, "classes"), ["10: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"])
        out, _ = self.run_kiln("--plugin", build_plugin("poison", self.dir), "datamodule._target_=poison",
                               "datamodule.torn=3", *MODEL, "kiln.run.dir=run")
        self.assertEqual(self.lines(out, "samples"), ["train 256, val 0, test 0"])
        self.assertEqual(self.lines(out, "classes"), ["2: dark, bright"])
        self.assertEqual(self.lines(out, "left out"), ["3 torn images such as image 7: they have no edge"])
        self.assertEqual(read_json(self.path("run/summary.json"))["data"]["left_out"],
                         [{"count": 3, "what": "torn images", "example": "image 7", "reason": "they have no edge"}])


HUGE = ["datamodule.train_count=1000000000", "model=linear", "test=false", "trainer.threads=1"]


class Huge(Case):
    """Preparations that take long are shown, can be stopped, and do not begin without the memory for them."""

    def test_stopping_a_preparation(self):
        process = self.start("datamodule.train_count=200000000", *HUGE[1:], "datamodule.sampler=balanced",
                             env={**os.environ, "OMP_NUM_THREADS": "1"})
        line = process.stdout.readline()
        self.assertRegex(line, r"^reading labels: \d+ % of 200,000,000$")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out, err), (130, "", "train: error: interrupted while reading labels\n"))
        self.assertEqual(os.listdir(self.dir), [])

    def limited(self, *args):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))

        return self.refused(*HUGE, *args, says=["fewer training samples"], preexec_fn=limit)

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_memory_is_checked_before_it_is_taken(self):
        self.assertRegex(self.limited(), r"the order of samples 3\.73 GiB.*; try fewer training samples\n")
        for sampler in ["weighted", "balanced", "subset"]:
            self.assertRegex(self.limited(f"datamodule.sampler={sampler}"),
                             rf"sampler {sampler} needs [\d.]+ GiB of memory for 1,000,000,000 samples, and [\d.]+ \wiB "
                             "are available")


def black_png(side):
    """side × side pixels of one bit, a thousandth of that in bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(side // 8 + 1)) for _ in range(side)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)) +
            chunk(b"IDAT", rows) + chunk(b"IEND", b""))


class LargeImages(Case):
    SIDE = 12000  # 144 million pixels; as colour floats 1.6 GiB

    def setUp(self):
        super().setUp()
        for name in ["cat", "dog"]:
            for split in ["train", "val"]:
                self.write(f"pets/{split}/{name}/0.png", png(16, 16))
        self.write("pets/train/cat/big.png", black_png(self.SIDE))
        self.args = ["datamodule=image_folder", "datamodule.root=pets", "datamodule.batch_size=4", *MODEL, "test=false"]

    def test_too_many_pixels_are_refused(self):
        says = ["pets/train/cat/big.png: an image of 12000 x 12000 pixels; at most 89478485 in all are read "
                "(datamodule.max_pixels)"]
        self.refused(*self.args, says=says)
        _, err = self.run_kiln(*self.args, "datamodule.size=[8]", "kiln.run.dir=run", status=1)
        self.assertIn(says[0], err)
        out, _ = self.run_kiln(*self.args, "datamodule.size=[8]", "datamodule.on_error=skip", "kiln.run.dir=skips")
        self.assertIn("warning: sample left out: " + says[0], out)
        self.run_kiln(*TINY, "kiln.run.dir=digits")
        _, err = self.run_kiln("predict", "ckpt_path=digits", "input=pets/train/cat/big.png", program="kiln", status=1)
        self.assertIn("at most 89478485 in all are read", err)

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_rows_are_decoded_at_reduced_size(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        self.run_kiln(*self.args, "datamodule.size=[8]", "datamodule.max_pixels=200000000", "trainer.num_workers=0",
                      "kiln.run.dir=run", preexec_fn=limit)
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "finished")

    def test_decoding_is_in_the_forecast(self):
        def reading(*args):
            out, _ = self.run_kiln(*self.args, *args, "--plan")
            amount, unit = re.search(r"reading samples +([\d.]+) (\w+)", out).groups()
            return float(amount) * {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]

        os.remove(self.path("pets/train/cat/big.png"))
        self.write("pets/train/cat/big.png", png(1024, 1024))
        scaled = ["datamodule.size=[16]"]
        cropped = ["datamodule.transforms=[{_target_: crop, size: [16]}]"]
        inflated = 1024 * 1024 * 3  # at once, in an image of this size
        self.assertLess(reading(*scaled, "trainer.num_workers=1"), 2 * (inflated + (1 << 20)))
        whole = 2 * 1024 * 1024 * 3 * 4 + inflated  # the image, and another for the transform
        for workers in [1, 3]:
            self.assertAlmostEqual(reading(*cropped, f"trainer.num_workers={workers}") / (2 * workers * whole), 1, 1)


class CutShort(Braked):
    """Files that a run has open are cut short: it lives, and says so."""

    def test_the_live_page(self):
        self.hold(after=3)
        process = self.start(*TINY, *self.braked, "kiln.run.dir=run")
        self.wait_for(lambda: (at := live(self.path("run"))) and at.batch == 3, process)
        os.truncate(self.path("run/.kiln/live"), 0)
        self.let_go()
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertEqual(out.count("warning: run/.kiln/live was truncated by another program: kiln top can't show"), 1)
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "finished")

    def test_the_image_cache(self):
        for name in ["cat", "dog"]:
            for i in range(16):
                self.write(f"pets/train/{name}/{i}.png", png(40, 40))
        args = ["datamodule=image_folder", "datamodule.root=pets", "datamodule.size=[40]", "datamodule.cache=cache",
                "datamodule.batch_size=4", *MODEL, "trainer.max_epochs=3", "test=false"]
        self.hold(after=9)  # in the second epoch
        process = self.start(*args, *self.braked, "kiln.run.dir=run")
        self.wait_for(lambda: (at := live(self.path("run"))) and at.epoch == 1 and at.batch >= 1, process)
        for name in os.listdir(self.path("cache")):
            os.truncate(self.path("cache", name), 4096)
        self.let_go()
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertIn("was cut short while it was in use; what is missing is decoded again", out)
        self.run_kiln(*args, "kiln.run.dir=whole", "datamodule.cache=null")
        self.assertEqual(read(self.path("run/checkpoints/last/model.safetensors")),
                         read(self.path("whole/checkpoints/last/model.safetensors")))


class LoaderThread(Case):
    def test_a_crash_names_the_datamodule(self):
        plugin = build_plugin("poison", self.dir)
        for workers in [0, 2]:
            process = self.start("--plugin", plugin, "datamodule._target_=poison", "datamodule.bad=3",
                                 "datamodule.what=crash", *MODEL, f"trainer.num_workers={workers}",
                                 env={**os.environ, "ASAN_OPTIONS": "handle_segv=0"})
            _, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, -signal.SIGSEGV, err)
            self.assertIn("crashed with SIGSEGV (invalid memory access) in dataset.get of datamodule/poison", err)


if __name__ == "__main__":
    main()
