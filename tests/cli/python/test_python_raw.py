"""`kiln predict` on a user's files with datamodules that are classes of Python: what `preprocess` takes, that its features are
those of the splits, and what is wrong with it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import json
import os
import random
import shutil

from kilntest import main, read, read_json
from pythontest import SHORT_RUN, TABLE, PythonCase, needs_numpy

# A type of file that only this class reads.
SENSORS = '''
import pathlib
from typing import Annotated, Literal


class Sensors:
    classes = ["calm", "wild"]

    def __init__(self, root: str, split: Literal["train", "val", "test", "predict"], scale: float = 1.0):
        self.split, self.scale = split, scale
        self.files = sorted(pathlib.Path(root, split).glob("*.pts")) if split != "predict" else []

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return {**self.read(self.files[i]), "label": int("wild" in self.files[i].name)}

    def read(self, path):
        magic, *lines = path.read_text().splitlines()
        if magic != "PTS1":
            raise ValueError(f"{path.name} is no .pts file")
        return {"vector": [float(line) * self.scale for line in lines]}

    def preprocess(self, path: Annotated[pathlib.Path, ".pts"]):
        """
        path: what a sensor wrote
        """
        assert self.split == "predict"
        return self.read(path)
'''

# What it knows of words comes from the training file alone.
WORDS = '''
import pathlib
from typing import Literal


class Words:
    classes = ["no", "yes"]

    def __init__(self, root: str, split: Literal["train", "val", "predict"]):
        self.rows, self.features = [], {"tokens": {"length": 4, "ids": 40}}
        if split != "predict":
            self.rows = [line.split() for line in pathlib.Path(root, split + ".txt").read_text().splitlines()]
        self.ids = {}
        if split == "train":
            for row in self.rows:
                for word in row[1:]:
                    self.ids.setdefault(word, len(self.ids) + 1)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {**self.preprocess(" ".join(self.rows[i][1:])), "label": int(self.rows[i][0])}

    def preprocess(self, text: str):
        return {"tokens": [self.ids.get(word, 0) for word in text.split()]}

    def state_dict(self):
        return {"ids": self.ids}

    def load_state_dict(self, state):
        self.ids = state["ids"]
'''

# The same numbers in each form that a value can have.
FORMS = '''
class Base:
    classes = 2
    def __len__(self): return 60
    def numbers(self, i): return [i % 7 - 3.0, i % 2 + 0.5]
    def __getitem__(self, i): return {"vector": self.numbers(i), "label": i % 2}


class Numbers(Base):
    def preprocess(self, a: float, b: float, shift: int = 0): return {"vector": [a + shift, b + shift]}


class Texts(Base):
    def preprocess(self, line: str): return {"vector": [float(x) for x in line.split()]}


class Bytes(Base):
    def preprocess(self, content: bytes): return {"vector": [float(x) for x in content.split()]}


class Lists(Base):
    @staticmethod
    def preprocess(xs: list[float]): return xs
'''

ARRAYS = '''
import numpy as np
from forms import Base


class Arrays(Base):
    @classmethod
    def preprocess(cls, xs: np.ndarray): return xs, 1


class Images(Base):
    """As torch has them."""
    def image(self, i): return np.full((3, 4, 5), 10 * (i % 20), np.uint8) + np.arange(5, dtype=np.uint8)
    def __getitem__(self, i): return self.image(i), i % 2
    def preprocess(self, number: int): return self.image(number)
'''


class Files(PythonCase):
    def setUp(self):
        super().setUp()
        self.write("sensors.py", SENSORS)
        rng = random.Random(1)
        for split, n in ("train", 64), ("val", 16), ("test", 16):
            for i in range(n):
                self.pts(f"data/{split}/{i:03}-{'wild' if i % 2 else 'calm'}.pts", [rng.gauss(0, 1 + 3 * (i % 2)) for _ in range(6)])
        self.fit("run", "datamodule=python:sensors.Sensors", "datamodule.root=data", "datamodule.scale=0.5", "lr=0.01")

    def pts(self, name, numbers):
        self.write(name, "PTS1\n" + "\n".join(map(repr, numbers)))

    def predict(self, *args, **options):
        out, err = self.run_kiln("predict", "run", *args, program="kiln", **options)
        return [json.loads(line) for line in out.splitlines()], err

    def test_a_folder_of_files_as_the_test_split(self):
        split, _ = self.predict("split=test")
        files, _ = self.predict("data/test")
        self.assertEqual(len(files), 16)
        self.assertEqual([row["probabilities"] for row in files], [row["probabilities"] for row in split])
        self.assertEqual(files[3]["file"], "data/test/003-wild.pts")
        self.assertGreater(len({str(row["probabilities"]) for row in files}), 10)

    def test_a_new_file_without_the_data_of_training(self):
        before, _ = self.predict("data/test/004-calm.pts")
        shutil.copy(self.path("data/test/004-calm.pts"), self.path("new.pts"))
        shutil.rmtree(self.path("data"))
        after, _ = self.predict("input=new.pts")
        self.assertEqual((after[0]["class"], after[0]["probabilities"]), (before[0]["class"], before[0]["probabilities"]))

    def test_files_that_are_not_such(self):
        """Each has its own error; a folder's other files are left out, with what the class takes."""
        self.write("mixed/a.pts", "PTS2\n1\n")
        self.pts("mixed/b.pts", [1.0] * 6)
        self.pts("mixed/c.pts", [1.0] * 5)
        self.write("mixed/d.txt", "")
        rows, err = self.predict("mixed", status=1)
        self.assertEqual([("error" in row, os.path.basename(row["file"])) for row in rows],
                         [(True, "a.pts"), (False, "b.pts"), (True, "c.pts")])
        self.assertRegex(rows[0]["error"], r"ValueError: a\.pts is no \.pts file \(.*/sensors\.py:22, in read\)")
        self.assertIn('"vector" is [5]; expected [6]', rows[2]["error"])
        self.write("empty/d.txt", "")
        _, err = self.predict("empty", status=1)
        self.assertIn("empty: no PTS file in this folder or below it", err)


class Values(PythonCase):
    """Files that kiln reads itself: rows and lines, whose values are the parameters."""

    def predict(self, name, file, content, *args):
        """Probabilities that a class of `name`, MODULE.CLASS, gives for a file."""
        self.write("forms.py", FORMS)
        self.write("arrays.py", ARRAYS)
        if not os.path.exists(self.path(name)):
            self.fit(name, f"datamodule=python:{name}", "datamodule.val_fraction=0.5", "trainer.max_epochs=1", *args)
        self.write(file, content)
        out, _ = self.run_kiln("predict", name, file, program="kiln")
        return [json.loads(line)["probabilities"] for line in out.splitlines()]

    def test_all_forms_give_the_same(self):
        rows = self.predict("forms.Numbers", "rows.csv", "a,b\n-2,1.5\n3,0.5\n")
        self.assertNotEqual(*rows)
        self.assertEqual(self.predict("forms.Numbers", "rows.csv", "b,a,shift\n0.5,-3,1\n0.5,3,\n")[1], rows[1])
        self.assertEqual(self.predict("forms.Texts", "lines.txt", "-2 1.5\n3 0.5\n"), rows)
        self.assertEqual(self.predict("forms.Lists", "rows.jsonl", '{"xs": [-2, 1.5]}\n{"xs": [3, 0.5]}\n'), rows)
        self.assertEqual(self.predict("forms.Bytes", "one.dat", b"-2 1.5")[0][0], rows[0][0])

    @needs_numpy
    def test_arrays(self):
        lines = '{"xs": [-2, 1.5]}\n{"xs": [3, 0.5]}\n'
        self.assertEqual(self.predict("arrays.Arrays", "rows.jsonl", lines), self.predict("forms.Lists", "rows.jsonl", lines))

    @needs_numpy
    def test_images_with_channels_first(self):
        rows = self.predict("arrays.Images", "numbers.csv", "number\n3\n19\n", "task=vision")
        out = "".join(self.run_kiln("predict", "arrays.Images", f"split={split}", program="kiln")[0] for split in ("train", "val"))
        of_split = [json.loads(line)["probabilities"] for line in out.splitlines()]
        self.assertNotEqual(*rows)
        for row in rows:
            self.assertTrue(any(max(abs(a - b) for a, b in zip(row, other)) < 1e-5 for other in of_split), (row, of_split))


class Fitted(PythonCase):
    """state_dict and load_state_dict: what the training object fitted belongs to the checkpoint."""

    def setUp(self):
        super().setUp()
        self.write("words.py", WORDS)
        rng = random.Random(1)
        names = {0: ["oak", "elm", "fir"], 1: ["cat", "dog", "hen"]}
        for split, n in ("train", 60), ("val", 20):
            self.write(f"data/{split}.txt", "".join(f"{i % 2} " + " ".join(rng.choices(names[i % 2], k=1 + i % 4)) + "\n"
                                                    for i in range(n)))
        self.args = ["task=classification", "model=text_cnn", "datamodule=python:words.Words", "datamodule.root=data",
                     "trainer.threads=1", "lr=0.02", "scheduler=constant", "seed=1"]
        self.run_kiln(*self.args, "trainer.max_epochs=6", "kiln.run.dir=run")

    def predict(self, run="run"):
        self.write("texts.txt", "oak elm\ndog hen cat\n")
        out, _ = self.run_kiln("predict", run, "texts.txt", program="kiln")
        return [(row["class"], row["probabilities"]) for row in map(json.loads, out.splitlines())]

    def test_the_other_objects_and_a_users_texts(self):
        """Of validation, too, which has no words of its own."""
        self.assertGreater(read_json(self.path("run/summary.json"))["metrics"]["val/accuracy"]["last"]["value"], 0.9)
        ids = read_json(self.path("run/checkpoints/last/preprocessing/python.json"))["ids"]
        self.assertEqual(sorted(ids), ["cat", "dog", "elm", "fir", "hen", "oak"])
        before = self.predict()
        self.assertEqual([name for name, _ in before], ["no", "yes"])
        out, _ = self.run_kiln("eval", "run", "split=val", program="kiln")
        self.assertIn("val/accuracy", out)
        shutil.rmtree(self.path("data"))
        self.assertEqual(self.predict(), before)

    def test_other_data_change_nothing(self):
        """A run that resumes, or reads another file, keeps the ids of the checkpoint."""
        self.run_kiln(*self.args, "trainer.max_epochs=3", "kiln.run.dir=half")
        self.run_kiln("resume=half", "trainer.max_epochs=6")
        self.assertEqual(self.weights("half"), self.weights("run"))
        before = self.predict()
        lines = read(self.path("data/train.txt"), "r").splitlines(keepends=True)
        self.write("data/train.txt", "".join(reversed(lines)))
        self.assertEqual(self.predict(), before)
        out, _ = self.run_kiln("eval", "run", "split=val", program="kiln")
        self.assertGreater(json.loads(out)["metrics"]["val/accuracy"], 0.9)

    def test_a_state_that_is_no_json(self):
        self.write("words.py", WORDS.replace('{"ids": self.ids}', '{"ids": object()}'))
        self.refused(*self.args, says=["state_dict: ", "expected dicts, lists, numbers, texts and arrays"])


class Mistakes(PythonCase):
    def describe(self, method):
        """What `kiln show` says of a class with this method."""
        self.write("mydata.py", TABLE + "\n" + method)
        return self.run_kiln("show", "python:mydata.Table", program="kiln", status=1)[1]

    def test_a_class_without_it(self):
        self.fit("run", *self.table)
        self.write("row.csv", "x,y\n1,2\n")
        _, err = self.run_kiln("predict", "run", "row.csv", program="kiln", status=1)
        self.assertIn("datamodule python:mydata.Table can't read a user's input: it has no `preprocess`", err)
        self.assertIn("split=test", err)

    def test_annotations(self):
        for method, says in (
                ("    def preprocess(self, x): return x\n", "the parameter x of its preprocess has no annotation: write one of"),
                ("    def preprocess(self, x: dict): return x\n", "the parameter x of its preprocess has an annotation that kiln"),
                ("    def preprocess(self): return 1\n", "its preprocess takes nothing: give it a parameter"),
                ("    def preprocess(self, x: 'Nowhere'): return x\n", "names something that does not exist: name 'Nowhere'")):
            self.assertIn(says, self.describe(method))

    def test_what_it_returns(self):
        self.write("mydata.py", TABLE + "\n    def preprocess(self, x: float): return {'rows': [x, x]} if x > 0 else None\n")
        self.fit("run", *self.table)
        self.write("rows.csv", "x\n1\n-1\n")
        out, _ = self.run_kiln("predict", "run", "rows.csv", program="kiln", status=1)
        errors = [json.loads(line)["error"] for line in out.splitlines()]
        self.assertIn('preprocess returned no "x": it returned rows; expected what __getitem__ returns, without a label', errors[0])
        self.assertIn("preprocess returned None", errors[1])

    def test_an_object_as_of_a_split_where_the_class_knows_no_other(self):
        self.write("mydata.py", TABLE + "\n    def preprocess(self, row: int): return {'x': [*self.rows[row][:2]]}\n")
        self.fit("run", *self.table)
        self.write("rows.csv", "row\n0\n1\n2\n")
        out, _ = self.run_kiln("predict", "run", "rows.csv", program="kiln")
        of_val, _ = self.run_kiln("predict", "run", "split=val", program="kiln")
        for ours, other in zip(out.splitlines(), of_val.splitlines()):
            for a, b in zip(json.loads(ours)["probabilities"], json.loads(other)["probabilities"]):
                self.assertAlmostEqual(a, b, places=5)


if __name__ == "__main__":
    main()
