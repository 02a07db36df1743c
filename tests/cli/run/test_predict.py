#!/usr/bin/env python3
"""kiln predict: the files it writes and the columns of a row."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import re
import shlex
import struct
import subprocess
import unittest

from kilntest import BUILD, ROOT, SHORT, TINY, Case, main, png, read


class Output(Case):
    def setUp(self):
        super().setUp()
        for name, colour in (("cat", (250, 250, 250)), ("dog", (5, 5, 5))):
            for i in range(6):
                self.write(f"pets/train/{name}/{i}.png", png(8, 8, colour))
            for i in range(2):
                self.write(f"pets/test/{name}/{i}.png", png(8, 8, colour))
        self.screen, _ = self.run_kiln("datamodule=image_folder", "datamodule.root=pets", "model=linear",
                                       "datamodule.batch_size=3", "trainer.max_epochs=20", "lr=0.1",
                                       "trainer.threads=1", "kiln.run.dir=run")

    def predict(self, *args, status=0):
        return self.run_kiln("predict", "ckpt_path=run", *args, program="kiln", status=status)

    def test_unknown_endings_are_refused(self):
        for name in ["x.xlsx", "x", "a.csv/x", ".x", "x.csv.gz"]:
            err = self.refused("predict", "ckpt_path=run", "split=test", f"output={name}", program="kiln",
                               says=[".jsonl, .csv or .safetensors", "callbacks.prediction_writer.format"])
            self.assertIn("unknown ending ." + name.rsplit(".", 1)[1] if name in ("x.xlsx", ".x", "x.csv.gz")
                          else "no ending", err)
        self.predict("split=test", "output=x.txt", "callbacks.prediction_writer.format=csv")
        self.predict("split=test", "output=y.CSV")
        self.assertEqual(read(self.path("x.txt")), read(self.path("y.CSV")))

    def test_rows_say_index_file_class_and_label(self):
        files = [f"pets/test/{name}/{i}.png" for name in ("cat", "dog") for i in range(2)]
        lines = [json.loads(line) for line in self.predict("split=test")[0].splitlines()]
        self.assertEqual([list(line) for line in lines], [["index", "file", "label", "class", "probabilities"]] * 4)
        self.assertEqual([(line["index"], line["file"], line["label"], line["class"]) for line in lines],
                         [(i, file, file[10:13], file[10:13]) for i, file in enumerate(files)])
        self.predict("split=test", "output=all.csv")
        with open(self.path("all.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["index", "file", "error", "label", "class", "probabilities/cat",
                                         "probabilities/dog"])
        self.assertEqual([(row["index"], row["file"], row["label"], row["class"]) for row in rows],
                         [(str(i), file, file[10:13], file[10:13]) for i, file in enumerate(files)])
        self.predict("split=test", "output=all.safetensors")
        data = read(self.path("all.safetensors"))
        size = struct.unpack("<Q", data[:8])[0]
        head = json.loads(data[8:8 + size])
        self.assertEqual(json.loads(head["__metadata__"]["classes"]), ["cat", "dog"])
        self.assertEqual(head["probabilities"]["shape"], [4, 2], "one file holds all batches")
        for name, want in (("index", (0, 1, 2, 3)), ("label", (0, 0, 1, 1))):
            begin, end = head[name]["data_offsets"]
            self.assertEqual(struct.unpack("<4q", data[8 + size + begin:8 + size + end]), want)
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name.startswith("all")),
                         ["all.csv", "all.safetensors"])

    def test_the_label_of_an_input_is_not_known(self):
        lines = [json.loads(line) for line in self.predict("input=pets/test")[0].splitlines()]
        self.assertEqual([list(line) for line in lines], [["index", "file", "class", "probabilities"]] * 4)
        self.predict("input=pets/test", "output=all.csv")
        with open(self.path("all.csv"), newline="") as file:
            self.assertEqual({row["label"] for row in csv.DictReader(file)}, {""})

    def test_samples_without_files(self):
        self.run_kiln(*TINY, "kiln.run.dir=digits")
        out, _ = self.run_kiln("predict", "ckpt_path=digits", "split=val", program="kiln")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([list(line) for line in lines], [["index", "label", "class", "probabilities"]] * 64)
        self.assertEqual([line["index"] for line in lines], list(range(64)))
        self.assertEqual(sorted({line["label"] for line in lines}), [str(i) for i in range(10)])

    @unittest.skipIf(SHORT, "the sanitizers' library needs a program that they build")
    def test_a_program_gets_the_same_bytes(self):
        """examples/embed/predict.c predicts arrays in memory in two threads, four each; here they are in a file."""
        self.run_kiln(*TINY, "kiln.run.dir=digits")
        numbers = struct.pack("<6272f", *(i % 9 / 8.0 for i in range(8 * 784)))
        head = json.dumps({"image": {"dtype": "F32", "shape": [8, 28, 28, 1], "data_offsets": [0, len(numbers)]}}).encode()
        self.write("arrays.safetensors", struct.pack("<Q", len(head)) + head + numbers)
        out, _ = self.run_kiln("predict", "digits", "arrays.safetensors", "batch_size=4", program="kiln")
        want = [json.loads(line)["probabilities"][0] for line in out.splitlines()]
        os.symlink(os.path.join(BUILD, "libkiln.so"), self.path("libkiln.so.0"))
        subprocess.run(["cc", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-I", os.path.join(ROOT, "src"), "-o", self.path("predict"),
                        os.path.join(ROOT, "examples/embed/predict.c"), self.path("libkiln.so.0"), "-pthread"], check=True)
        out = subprocess.run([self.path("predict"), "digits"], cwd=self.dir, check=True, capture_output=True, text=True,
                             env=dict(os.environ, LD_LIBRARY_PATH=self.dir)).stdout
        self.assertEqual([float(line.split()[1]) for line in sorted(out.splitlines())], want)

    def test_the_end_of_a_run_suggests_it(self):
        command = shlex.split(re.search(r"^predict +(kiln predict .*)$", self.screen, re.M)[1])
        out, _ = self.run_kiln(*command[1:], program="kiln")
        self.assertEqual(len(out.splitlines()), 4)


if __name__ == "__main__":
    main()
