#!/usr/bin/env python3
"""Raw samples of a user: files of texts and arrays, and what a datamodule fitted, saved with checkpoints."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import struct
import subprocess

from kilntest import ROOT, Case, main, png, read


def safetensors(arrays):
    """A file of arrays: name -> (type, shape, bytes)."""
    head, data = {}, b""
    for name, (kind, shape, content) in arrays.items():
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


class Texts(Case):
    """The plugin word_pairs, whose vocabulary comes from the training texts."""

    def setUp(self):
        super().setUp()
        subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-O2", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN",
                        "-I", os.path.join(ROOT, "src"), "-o", self.path("word_pairs.so"),
                        os.path.join(ROOT, "examples/plugin/word_pairs.c")], check=True)
        self.plugin = ["--plugin", "./word_pairs.so"]
        self.words = [*self.plugin, "datamodule=word_pairs", "task=longer_list", "model=two_encoders",
                      "datamodule.count=64", "trainer.threads=1", "seed=1"]
        self.run_kiln(*self.words, "trainer.max_epochs=2", "kiln.run.dir=run")
        self.vocabulary = self.path("run/checkpoints/last/preprocessing/vocabulary.txt")

    def predict(self, *args, status=0):
        out, err = self.run_kiln("predict", *self.plugin, "ckpt_path=run", *args, program="kiln", status=status)
        return [json.loads(line) for line in out.splitlines()], err

    def test_lines_of_json(self):
        lines = ['{"source": "oak fig", "target": "elm"}', "", '{"target": "elm", "other": 1, "source": "oak fig"}',
                 '{"source": 1, "target": "elm"}', "{bad", '{"source": "a", "source": "b"}', "[1, 2]",
                 '{"source": "a", "target": {}}', '{"source": "a", "target": null}', '{"source": "a", "target": NaN}',
                 '{"source": "a", "target": ""}', '{"source": "a", "target": [1e999]}', '{"source": "a", "targ']
        self.write("pairs.jsonl", "\n".join(lines))
        rows, err = self.predict("input=pairs.jsonl", status=1)
        self.assertEqual([row["file"] for row in rows], [f"pairs.jsonl:{i + 1}" for i, line in enumerate(lines) if line])
        self.assertEqual(rows[0]["probabilities"], rows[1]["probabilities"])
        self.assertIn("10 of 12 inputs could not be read; the first: pairs.jsonl:4: source: the value is a number; "
                      "expected source (text: 1 to 12 words), target (text: 1 to 9 words)", err)
        says = ["not JSON: ", "duplicate object key", "not a JSON object; expected {\"source\": ...}",
                "target: a JSON object; expected text", "target is missing", "not JSON: ",
                "target has 0 words; expected 1 to 9 words", "real number overflow", "not JSON: "]
        for row, text in zip(rows[3:], says):
            self.assertTrue(row["error"].startswith(row["file"] + ": "), row)
            self.assertIn(text, row["error"])

    def test_what_is_no_input(self):
        os.mkdir(self.path("folder"))
        self.write("empty.jsonl", "\n \n")
        self.write("x.txt", "oak\n")
        takes = "expected a .jsonl or .json file (a JSON object per line, or a list of them), a .csv, .tsv or .parquet file (the header has the names) with source (text: 1 to 12 words), target (text"
        for name, says in (("folder", takes), ("x.txt", takes), ("empty.jsonl", "has no line that is not blank"),
                           ("none.jsonl", "No such file")):
            _, err = self.predict(f"input={name}", status=1)
            self.assertIn(says, err)

    def test_a_checkpoint_has_the_vocabulary(self):
        """Other training data change nothing; a run that resumes writes the same bytes."""
        self.write("pairs.jsonl", '{"source": "oak fig", "target": "elm"}\n{"source": "birch", "target": "ash pear"}\n')
        rows, _ = self.predict("input=pairs.jsonl")
        others, _ = self.predict("input=pairs.jsonl", "datamodule.draw=7")
        self.assertEqual(others, rows)
        self.run_kiln(*self.words, "trainer.max_epochs=1", "kiln.run.dir=other", "datamodule.draw=7")
        self.assertNotEqual(read(self.path("other/checkpoints/last/preprocessing/vocabulary.txt")), read(self.vocabulary))
        self.run_kiln(*self.words, "trainer.max_epochs=1", "kiln.run.dir=half")
        self.run_kiln(*self.plugin, "resume=half", "trainer.max_epochs=2")
        for name in ("model.safetensors", "preprocessing/vocabulary.txt"):
            self.assertEqual(read(self.path("half/checkpoints/last", name)), read(self.path("run/checkpoints/last", name)))
        self.run_kiln(*self.words, "trainer.max_epochs=2", "kiln.run.dir=weights",
                      "callbacks.model_checkpoint.save_weights_only=true")
        self.assertEqual(read(self.path("weights/checkpoints/best/preprocessing/vocabulary.txt")), read(self.vocabulary))

    def test_a_damaged_vocabulary(self):
        self.write("pairs.jsonl", '{"source": "oak", "target": "elm"}\n')
        whole = read(self.vocabulary)
        self.run_kiln("ckpt", "verify", "run", program="kiln")
        for data, says in ((whole + b"x", "is too long"), (whole[:-1] + b"x", "is damaged"), (None, "is missing")):
            os.remove(self.vocabulary)
            if data is not None:
                self.write(self.vocabulary, data)
            _, err = self.predict("input=pairs.jsonl", status=1)
            self.assertIn("preprocessing/vocabulary.txt: " + says, err)
            self.assertIn("use another checkpoint", err)
            _, err = self.run_kiln("ckpt", "verify", "run", program="kiln", status=1)
            self.assertIn("preprocessing/vocabulary.txt: " + says, err)
            self.write(self.vocabulary, whole)


class Images(Case):
    def setUp(self):
        super().setUp()
        for name, colour in (("cat", (250, 250, 250)), ("dog", (5, 5, 5))):
            for i in range(4):
                self.write(f"pets/train/{name}/{i}.png", png(8, 8, colour))
        self.run_kiln("datamodule=image_folder", "datamodule.root=pets", "model=linear", "datamodule.batch_size=3",
                      "trainer.max_epochs=2", "trainer.threads=1", "kiln.run.dir=run")

    def predict(self, name, status=0):
        out, err = self.run_kiln("predict", "ckpt_path=run", f"input={name}", program="kiln", status=status)
        return [json.loads(line) for line in out.splitlines()], err

    def test_the_same_image_as_file_path_and_array(self):
        files, _ = self.predict("pets/train")
        self.assertEqual(len(files), 8)
        self.write("pets/list.jsonl", "".join(json.dumps({"image": os.path.relpath(row["file"], "pets")}) + "\n"
                                              for row in files))
        lines, _ = self.predict("pets/list.jsonl")
        self.assertEqual([row["probabilities"] for row in lines], [row["probabilities"] for row in files])
        pixels = b"".join(bytes([250 if "cat" in row["file"] else 5]) * 192 for row in files)
        self.write("pixels.safetensors", safetensors({"image": ("U8", [8, 8, 8, 3], pixels)}))
        arrays, _ = self.predict("pixels.safetensors")
        self.assertEqual([row["probabilities"] for row in arrays], [row["probabilities"] for row in files])
        self.assertEqual(arrays[7]["file"], "row 7")

    def test_arrays_that_are_no_images(self):
        nan = struct.pack("<f", float("nan")) * 192
        for arrays, says in (({"image": ("F32", [1, 8, 8, 3], nan)}, "not a finite number"),
                             ({"image": ("I32", [1, 8, 8, 3], bytes(768))}, "is no image; expected [height, width"),
                             ({"image": ("U8", [1, 8, 8, 5], bytes(320))}, "is no image"),
                             ({"a": ("U8", [1], b"x"), "b": ("U8", [1], b"x")}, "has no array \"image\", only a, b"),
                             ({"image": ("U8", [0, 8, 8, 3], b"")}, "samples")):
            self.write("x.safetensors", safetensors(arrays))
            _, err = self.predict("x.safetensors", status=1)
            self.assertIn(says, err)
        self.write("x.safetensors", b"short")
        self.predict("x.safetensors", status=1)


if __name__ == "__main__":
    main()
