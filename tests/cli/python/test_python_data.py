"""Datamodules that are classes of Python: training, bytes, resuming, splits, contents, sweeps, what they print."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import os
import re
import signal

from kilntest import main, read, read_json
from pythontest import SHORT_RUN, PythonCase, needs_numpy

# As a Hugging Face dataset: rows as dicts of lists, features with the names of classes.
HUGGING_FACE = '''
class ClassLabel:
    def __init__(self, names): self.names = names


class Dataset:
    """A stand-in for datasets.Dataset."""
    def __init__(self, rows):
        self.rows, self.features = rows, {"text": object(), "label": ClassLabel(["neg", "pos"])}
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]


class Reviews:
    """Token ids of reviews, as a tokenizer makes them."""
    def __init__(self, longest: int = 12):
        words = [["bad", "film"], ["good", "film"], ["a", "good", "good", "film"], ["bad", "bad"]]
        self.data = Dataset([{"text": " ".join(words[i % 4]), "label": int("good" in words[i % 4])} for i in range(200)])
        ids = {"bad": 1, "film": 2, "good": 3, "a": 4}
        self.ids = lambda text: [ids[w] for w in text.split()]
        self.lengths = [len(words[i % 4]) for i in range(200)]
        self.features = {"tokens": {"length": longest, "ids": 5}, "label": self.data.features["label"]}

    def __len__(self): return len(self.data)

    def __getitem__(self, i):
        row = self.data[i]
        return {"tokens": self.ids(row["text"]), "label": row["label"], "text": row["text"]}
'''

IMAGES = '''
import random
import numpy as np


class Images:
    """Grey images as u8, channels last."""
    classes = 2
    def __init__(self, first: bool = False, size: int = 6): self.first, self.size = first, size
    def __len__(self): return 80
    def __getitem__(self, i):
        image = np.full((self.size, self.size, 3), 40 + 150 * (i % 2), np.uint8)
        image[..., 1] = i
        return (np.moveaxis(image, 2, 0) if self.first else image), i % 2


class Noisy(Images):
    def __getitem__(self, i, rng):
        image, label = super().__getitem__(i)
        return image + rng.normal(0, 9, image.shape).astype(np.float32), label


class Plain:
    """Random numbers without numpy."""
    classes = 2
    def __len__(self): return 80
    def __getitem__(self, i, rng: random.Random):
        return {"vector": [rng.random(), float(i % 2)], "label": i % 2}


class Targets(Plain):
    """Every label is known without reading a sample, so samplers of classes work."""
    def __init__(self): self.targets = [int(i % 10 == 0) for i in range(80)]
    def __getitem__(self, i): return {"vector": [float(i), 1.0], "label": self.targets[i]}


class Prices:
    def __len__(self): return 80
    def __getitem__(self, i): return {"vector": [i / 80, 1.0], "label": i / 40 + 1}


class Skips(Plain):
    def __getitem__(self, i):
        return None if i % 8 == 3 else {"vector": [float(i % 2), 0.0], "label": i % 2}
'''


class Training(PythonCase):
    def test_the_bytes_of_the_built_in_datamodule(self):
        self.fit("python", *self.table, "batch_size=32")
        self.fit("table", "datamodule=table", "datamodule.files.train=[train.csv]", "datamodule.files.val=[val.csv]",
                 "datamodule.target=label", "datamodule.scaling=none", "batch_size=32")
        self.assertEqual(self.weights("python"), self.weights("table"))
        self.assertEqual(read_json(self.path("python/summary.json"))["metrics"],
                         read_json(self.path("table/summary.json"))["metrics"])

    def test_any_number_of_workers_gives_the_same_bytes(self):
        self.write("images.py", IMAGES)
        data = ["datamodule=python:images.Plain"]
        for run, workers in ("none", 0), ("two", 2), ("again", 2):
            self.fit(run, *data, f"trainer.num_workers={workers}")
        self.assertEqual(self.weights("none"), self.weights("two"))
        self.assertEqual(self.weights("two"), self.weights("again"))
        self.fit("other", *data, "seed=2")
        self.assertNotEqual(self.weights("other"), self.weights("two"))

    def test_a_killed_run_resumes_to_the_same_bytes(self):
        self.write("images.py", IMAGES + '''
import os, signal


class Killer(Plain):
    """Kills kiln in the middle of the third epoch."""
    seen = 0
    def __getitem__(self, i, rng: random.Random):
        Killer.seen += 1
        if os.path.exists("kill") and Killer.seen == 260:
            os.remove("kill")
            os.kill(os.getppid(), signal.SIGKILL)
        return super().__getitem__(i, rng)
''')
        args = ["datamodule=python:images.Killer", "batch_size=8", "trainer.max_epochs=4", "trainer.num_workers=0"]
        self.fit("whole", *args)
        self.write("kill", "")
        self.fit("killed", *args, status=-signal.SIGKILL)
        self.assertTrue(os.path.isdir(self.path("killed/checkpoints/last")))
        self.run_kiln("resume=killed")
        self.assertEqual(self.weights("killed"), self.weights("whole"))

    def test_a_config_file_sweeps_over_options_and_jobs_have_their_own_process(self):
        self.write("conf/config.yaml", "defaults:\n  - task: classification\n  - model: mlp\n  - optimizer: sgd\n"
                   "  - scheduler: constant\n  - _self_\nlr: 0.1\n"
                   "datamodule:\n  _target_: python:mydata.Table\n  train: train.csv\n  val: val.csv\n"
                   "trainer: {max_epochs: 1, threads: 1}\nmodel: {hidden: [8]}\n")
        self.write("mydata.py", read(self.path("mydata.py"), "r") + "\nimport os\nprint('pid', os.getpid())\n")
        self.run_kiln("-m", "datamodule.scale=0.5,1.0,2.0", "kiln.sweep.dir=sweep")
        pids, losses = set(), set()
        for job in "012":
            pids |= set(re.findall(r"\[mydata.Table\] pid (\d+)", read(self.path("sweep", job, "train.log"), "r")))
            losses.add(read_json(self.path("sweep", job, "summary.json"))["metrics"]["val/loss"]["last"]["value"])
        self.assertEqual((len(pids), len(losses)), (3, 3))
        self.assertEqual(self.hosts(), [])

    def test_what_it_prints_is_on_the_screen_and_in_the_log(self):
        self.write("mydata.py", read(self.path("mydata.py"), "r").replace(
            "        self.scale = scale\n", "        self.scale = scale\n        import sys\n"
            "        print('read', len(self.rows), 'rows')\n        print('a warning', file=sys.stderr)\n"))
        out = self.fit("run", *self.table)
        for line in "[mydata.Table] read 400 rows", "[mydata.Table] a warning":
            self.assertIn(line, out)
            self.assertIn(line, read(self.path("run/train.log"), "r"))

    def test_eval_and_a_test_split(self):
        self.write("mydata.py", read(self.path("mydata.py"), "r").replace('Literal["train", "val"]', "str"))
        out = self.fit("run", *self.table, "test=true")
        self.assertIn("samples    train 400, val 200, test 200", out)
        self.run_kiln("eval", "run", program="kiln")

    def test_a_part_of_the_samples_is_held_out_of_a_class_without_splits(self):
        self.write("images.py", IMAGES)
        self.assertIn("samples    train 60, val 20, test 0",
                      self.fit("run", "datamodule=python:images.Plain", "datamodule.val_fraction=0.25"))


class Contents(PythonCase):
    def setUp(self):
        super().setUp()
        self.write("images.py", IMAGES)
        self.write("reviews.py", HUGGING_FACE)

    def test_tokens_of_varying_length_from_a_hugging_face_dataset(self):
        out, _ = self.run_kiln("task=classification", "model=text_cnn", "kiln.run.dir=run", "datamodule=python:reviews.Reviews",
                               "datamodule.buckets=[2,4,12]", "trainer.max_epochs=8", "trainer.threads=1", "lr=0.05")
        self.assertIn("classes    2: neg, pos", out)
        self.assertIn("tokens i32 [12]", out)
        self.assertGreater(read_json(self.path("run/summary.json"))["metrics"]["val/accuracy"]["last"]["value"], 0.9)

    def test_numbers_to_predict(self):
        out = self.fit("run", "task=regression", "model=mlp", "datamodule=python:images.Prices", "trainer.max_epochs=1")
        self.assertIn("target f32", out)

    def test_samples_that_are_none_are_left_out(self):
        out = self.fit("run", "datamodule=python:images.Skips")
        self.assertRegex(out, r"__getitem__\(\d+\) returned None")

    def test_labels_known_without_reading_serve_samplers(self):
        self.fit("run", "datamodule=python:images.Targets", "datamodule.sampler=balanced")
        self.refused(*SHORT_RUN, "datamodule=python:images.Plain", "datamodule.sampler=balanced", says=["sampler balanced needs the class of each sample"])

    @needs_numpy
    def test_images_in_both_orders_of_axes(self):
        for run, first in ("last", "false"), ("first", "true"):
            self.fit(run, "task=vision", "datamodule=python:images.Images", f"datamodule.first={first}")
        self.assertEqual(self.weights("last"), self.weights("first"))

    @needs_numpy
    def test_random_numbers_of_numpy_are_the_samples_own(self):
        for run, workers in ("a", 0), ("b", 2):
            self.fit(run, "task=vision", "datamodule=python:images.Noisy", f"trainer.num_workers={workers}")
        self.assertEqual(self.weights("a"), self.weights("b"))


if __name__ == "__main__":
    main()
