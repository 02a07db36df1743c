"""Callbacks, transforms, metrics and loggers that are classes of Python."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import json
import os
import signal

from kilntest import TINY, grey_png, main, read, read_json
from pythontest import PythonCase, needs_numpy

CALLBACKS = '''
import json
import os
import signal


class Trace:
    """Writes which hooks were called."""
    logs = ["trace/epochs"]
    def __init__(self, file: str, stop_after: int = -1):
        self.file, self.stop_after, self.epochs = file, stop_after, []
    def note(self, *what):
        with open(self.file, "a") as f: print(*what, file=f)
    def setup(self, t): self.note("setup", t.phase)
    def on_train_start(self, t): self.note("on_train_start", t.epoch, t.max_epochs)
    def on_train_epoch_end(self, t):
        self.epochs.append(t.epoch)
        t.log("trace/epochs", len(self.epochs))
        t.print("epoch", t.epoch, "is over, after", len(self.epochs))
        if t.epoch == self.stop_after: t.stop("Trace had enough")
    def on_validation_end(self, t): self.note("on_validation_end", t.epoch, "val/loss" in t.metrics)
    def on_exception(self, t): self.note("on_exception", t.error)
    def teardown(self, t): self.note("teardown")
    def state_dict(self): return {"epochs": self.epochs, "exact": 0.1 + 0.2, "big": 2**70}
    def load_state_dict(self, state):
        assert state["exact"] == 0.1 + 0.2 and state["big"] == 2**70
        self.epochs = state["epochs"]
        self.note("loaded", json.dumps(state["epochs"]))


class Better(Trace):
    """Says which values are better."""
    logs = {"trace/epochs": "min"}


class Wrong(Trace):
    """Says it in a word that there is not."""
    logs = {"trace/epochs": "least"}


class Others:
    def on_sanity_check_end(self, t): print("sanity check")
    def on_validation_batch_start(self, t): print("before batch", t.batch)
    def on_predict_batch_end(self, t): print("predicted", t.phase, t.samples)


class Never:
    def on_train_end(self, t): pass
    def on_before_optimizer_step(self, t): pass


class Misspelled:
    def on_train_end(self, t): pass
    def on_validaton_end(self, t): pass


class Killer:
    def __init__(self, at: int): self.at = at
    def on_train_batch_start(self, t):
        if t.global_step == self.at and os.path.exists("kill"):
            os.remove("kill")
            os.kill(os.getppid(), signal.SIGKILL)


class Raises:
    def on_train_epoch_end(self, t): raise RuntimeError("the disk is full")


class BadState:
    def on_train_start(self, t): pass
    def state_dict(self): return {"f": print}
    def load_state_dict(self, state): pass


class Outputs:
    """Counts correct rows by itself, of every validation batch."""
    def __init__(self): self.right = self.rows = 0
    def on_validation_epoch_start(self, t): self.right = self.rows = 0
    def on_validation_batch_end(self, t):
        scores, labels = t.outputs["logits"], t.feature("label")
        assert t.feature("nothing") is None
        self.right += int((scores.argmax(1) == labels).sum())
        self.rows += len(labels)
    def on_validation_epoch_end(self, t): t.log("own", self.right / self.rows)
'''
OTHERS = '''
import json
import numpy as np


class Accuracy:
    """Share of the rows whose highest score is their label."""
    higher_is_better = True
    def __init__(self, per_class: bool = False): self.right, self.rows, self.per_class = 0, 0, per_class
    def update(self, scores, labels):
        assert scores.dtype == np.float32 and labels.dtype == np.int32
        self.right, self.rows = self.right + (scores.argmax(1) == labels).sum(), self.rows + len(labels)
    def compute(self):
        value = self.right / self.rows
        return {"": value, "twice": 2 * value} if self.per_class else value


class Error:
    higher_is_better = False
    def update(self, predictions, targets): self.value = np.abs(predictions.astype(float) - targets).mean()
    def compute(self): return self.value


class Invert:
    """Swaps black and white."""
    def __init__(self, training_only: bool = False): self.training_only = training_only
    def __call__(self, image, training):
        assert image.dtype == np.float32 and image.ndim == 3 and 0 <= image.min() and image.max() <= 1
        return 1 - image if training or not self.training_only else image


class Half:
    """Every second pixel."""
    def __call__(self, image): return image[::2, ::2]
    def size(self, height, width, channels): return (height + 1) // 2, (width + 1) // 2, channels


class Unsized:
    def __call__(self, image): return image[::2, ::2]


class Noise:
    def __call__(self, image, rng): return (image + rng.normal(0, 0.01, image.shape)).astype(np.float32)


class Lines:
    """A line of JSON for each row."""
    def __init__(self, name: str = "lines.jsonl"): self.name = name
    def open(self, run):
        kept = []
        path = run["dir"] + "/" + self.name
        if run["resumed"]:
            kept = [line for line in open(path) if json.loads(line)["step"] <= run["step"]]
        self.file = open(path, "w")
        self.file.writelines(kept)
    def log(self, values, step, epoch): print(json.dumps({"step": step, "epoch": epoch, **values}), file=self.file)
    def flush(self): self.file.flush()
    def close(self, status): print(json.dumps({"step": -1, "status": status}), file=self.file)
'''


class Callbacks(PythonCase):
    def setUp(self):
        super().setUp()
        self.write("hooks.py", CALLBACKS)

    def trace(self, *extra):
        return ["+callbacks.trace={_target_: 'python:hooks.Trace', file: trace.txt" + "".join(", " + e for e in extra) + "}"]

    def test_hooks_log_print_and_stop(self):
        out, _ = self.run_kiln(*TINY, *self.trace("stop_after: 1"), "trainer.max_epochs=5", "kiln.run.dir=run", "logger=jsonl")
        self.assertIn("epoch 1 is over, after 2", out)
        self.assertIn("epoch 1 is over, after 2", read(self.path("run/train.log"), "r"))
        summary = read_json(self.path("run/summary.json"))
        self.assertEqual((summary["status"], summary["reason"]), ("stopped", "Trace had enough"))
        rows = [json.loads(line) for line in read(self.path("run/metrics.jsonl"), "r").splitlines()]
        self.assertEqual([r["metrics"]["trace/epochs"] for r in rows if "trace/epochs" in r.get("metrics", {})], [1, 2])
        self.assertEqual(read(self.path("trace.txt"), "r").splitlines(), [
            "setup fit", "on_validation_end 0 False", "on_train_start 0 5", "on_validation_end 0 True",
            "on_validation_end 1 True", "teardown"])

    def test_other_hooks(self):
        out, _ = self.run_kiln(*TINY, "+callbacks.others=python:hooks.Others", "kiln.run.dir=run")
        for line in "sanity check", "before batch 0", "before batch 1":
            self.assertIn(f"[hooks.Others] {line}\n", out)
        _, err = self.run_kiln("predict", "ckpt_path=run/checkpoints/last", "split=test", "output=out.csv", program="kiln")
        self.assertIn("[hooks.Others] predicted predict", err)

    def test_methods_that_are_no_hooks(self):
        self.refused(*TINY, "+callbacks.never=python:hooks.Never",
                     says=["on_before_optimizer_step is no hook of a callback in Python; these are: setup, on_fit_start"])
        self.refused(*TINY, "+callbacks.never=python:hooks.Misspelled",
                     says=["on_validaton_end is no hook of a callback in Python; did you mean on_validation_end?"])

    def test_what_it_logs_can_be_monitored(self):
        self.run_kiln(*TINY, *self.trace(), "+callbacks.early_stopping={_target_: early_stopping, monitor: trace/epochs, mode: min, patience: 1}",
                      "trainer.max_epochs=5", "kiln.run.dir=run")
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "stopped")

    def test_what_it_logs_has_a_direction(self):
        def trace(name):
            return [*TINY, "+callbacks.trace={_target_: 'python:hooks.%s', file: '%s'}" % (name, self.path("trace.txt")),
                    "+callbacks.early_stopping={_target_: early_stopping, monitor: trace/epochs, patience: 1}"]

        self.run_kiln(*trace("Better"), "trainer.max_epochs=5", "kiln.run.dir=run")
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "stopped")
        self.refused(*trace("Trace"), says=["trace/epochs does not declare whether"])
        self.refused(*trace("Wrong"), says=["its logs give trace/epochs the mode 'least': expected"])

    def test_its_state_is_in_the_checkpoint_of_a_killed_run(self):
        args = [*TINY, *self.trace(), "+callbacks.killer={_target_: 'python:hooks.Killer', at: 20}", "trainer.max_epochs=4"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        self.write("kill", "")
        self.run_kiln(*args, "kiln.run.dir=killed", status=-signal.SIGKILL)
        self.run_kiln("resume=killed")
        self.assertEqual(self.weights("killed"), self.weights("whole"))
        self.assertEqual(read_json(self.path("killed/checkpoints/last/state.json"))["callbacks"],
                         read_json(self.path("whole/checkpoints/last/state.json"))["callbacks"])
        self.assertIn("loaded [0", read(self.path("trace.txt"), "r"))

    def test_an_exception_ends_the_run_with_its_place(self):
        args = [*TINY, *self.trace(), "+callbacks.raises={_target_: 'python:hooks.Raises'}", "kiln.run.dir=run"]
        _, err = self.run_kiln(*args, status=1)
        line = next(i for i, text in enumerate(CALLBACKS.splitlines(), 1) if "the disk is full" in text)
        self.assertIn(f"python:hooks.Raises: RuntimeError: the disk is full ({os.path.realpath(self.path('hooks.py'))}:{line}, in "
                      "on_train_epoch_end)", err)
        self.assertNotIn("Traceback", err)
        self.assertIn("[hooks.Raises] Traceback (most recent call last):", read(self.path("run/train.log"), "r"))
        self.assertIn("on_exception", read(self.path("trace.txt"), "r"))
        self.assertEqual(self.hosts(), [])

    def test_a_state_that_no_file_can_hold(self):
        _, err = self.run_kiln(*TINY, "+callbacks.bad={_target_: 'python:hooks.BadState'}", status=1)
        self.assertIn("python:hooks.BadState: TypeError: state_dict: a value of the type builtin_function_or_method", err)

    @needs_numpy
    def test_outputs_and_features_of_batches(self):
        self.run_kiln(*TINY, "+callbacks.own={_target_: 'python:hooks.Outputs'}", "kiln.run.dir=run")
        metrics = read_json(self.path("run/summary.json"))["metrics"]
        self.assertEqual(metrics["own"]["last"]["value"], metrics["val/accuracy"]["last"]["value"])


@needs_numpy
class Others(PythonCase):
    def setUp(self):
        super().setUp()
        self.write("others.py", OTHERS)

    def values(self, run):
        return {name: m["last"]["value"] for name, m in read_json(self.path(run, "summary.json"))["metrics"].items()}

    def test_a_metric_has_the_value_of_the_built_in_one(self):
        self.run_kiln(*TINY, "+task.metrics.own={_target_: 'python:others.Accuracy', per_class: true}", "kiln.run.dir=run",
                      "+callbacks.early_stopping={_target_: early_stopping, monitor: val/own, patience: 9}")
        values = self.values("run")
        for split in "train", "val":
            self.assertEqual(values[f"{split}/own"], values[f"{split}/accuracy"])
            self.assertEqual(values[f"{split}/own/twice"], 2 * values[f"{split}/accuracy"])

    def test_a_metric_of_numbers(self):
        self.write("prices.py", "class Prices:\n    def __len__(self): return 80\n"
                   "    def __getitem__(self, i): return {'vector': [i / 80, 1.0], 'label': i / 40 + 1}\n")
        self.fit("run", "task=regression", "datamodule=python:prices.Prices", "+task.metrics.own=python:others.Error",
                 "+task.metrics.built_in=mae")
        values = self.values("run")
        self.assertAlmostEqual(values["val/own"], values["val/built_in"], 12)

    def test_a_run_killed_in_mid_epoch_keeps_the_rows_of_a_metric(self):
        self.write("hooks.py", CALLBACKS)
        args = [*TINY, "+task.metrics.own=python:others.Accuracy", "callbacks.model_checkpoint.every_n_train_steps=3",
                "callbacks.model_checkpoint.save_last=true", "+callbacks.killer={_target_: 'python:hooks.Killer', at: 13}"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        self.write("kill", "")
        self.run_kiln(*args, "kiln.run.dir=killed", status=-signal.SIGKILL)
        self.run_kiln("resume=killed")
        self.assertEqual(self.values("killed")["train/own"], self.values("whole")["train/own"])

    def images(self):
        for split, n in ("train", 12), ("val", 6):
            for label in "ab":
                for i in range(n):
                    grey = 30 + 10 * i + (100 if label == "b" else 0)
                    self.write(f"images/{split}/{label}/{i}.png", grey_png(8, 8, [bytes([grey] * 8)] * 8))
        return ["task=vision", "model=mlp", "model.hidden=[8]", "datamodule=image_folder", "datamodule.root=images",
                "datamodule.channels=1", "trainer.threads=1", "trainer.max_epochs=2", "batch_size=4", "test=false"]

    def test_transforms_of_images(self):
        data = self.images()
        def run(name, *transforms, workers=0):
            out, _ = self.run_kiln(*data, f"datamodule.transforms=[{','.join(transforms)}]", f"kiln.run.dir={name}",
                                   f"trainer.num_workers={workers}")
            return self.weights(name), out
        plain, _ = run("plain")
        inverted, _ = run("inverted", "python:others.Invert")
        self.assertNotEqual(inverted, plain)
        half, _ = run("training", "{_target_: 'python:others.Invert', training_only: true}")
        self.assertEqual(half, inverted)  # the same training images, but validation has others
        self.assertNotEqual(self.values("training")["val/loss"], self.values("inverted")["val/loss"])
        self.assertIn("image f32 [4, 4, 1]", run("half", "python:others.Half")[1])
        self.assertEqual(run("noise", "python:others.Noise")[0], run("noise2", "python:others.Noise", workers=2)[0])
        _, err = self.run_kiln(*data, "datamodule.transforms=['python:others.Unsized']", status=1)
        self.assertIn("python:others.Unsized: __call__ made an image of [4, 4, 1] from one of [8, 8, 1]: give the class a "
                      "method size(self, height, width, channels)", err)

    def test_a_logger_of_a_killed_run_has_no_line_twice(self):
        self.write("hooks.py", CALLBACKS)
        args = [*TINY, "+logger.lines=python:others.Lines", "+callbacks.killer={_target_: 'python:hooks.Killer', at: 12}",
                "trainer.log_every_n_steps=2"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        self.write("kill", "")
        self.run_kiln(*args, "kiln.run.dir=killed", status=-signal.SIGKILL)
        self.run_kiln("resume=killed")
        rows = read(self.path("whole/lines.jsonl"), "r")
        self.assertEqual(json.loads(rows.splitlines()[-1]), {"step": -1, "status": "finished"})
        self.assertGreater(rows.count("train/loss"), 5)
        self.assertEqual(read(self.path("killed/lines.jsonl"), "r"), rows)


if __name__ == "__main__":
    main()
