"""The plugins of examples/plugin, each built with the line of its README and used in a run."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import math
import os
import struct
import subprocess

from kilntest import ROOT, TINY, Case, build_plugin, main, read_json

SMALL = [arg for arg in TINY if not arg.startswith("model")]


class Examples(Case):
    def build(self, name):
        subprocess.run(["cc", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden",
                        "-DKILN_BUILD_PLUGIN", "-I", os.path.join(ROOT, "src"), "-o", self.path(f"{name}.so"),
                        os.path.join(ROOT, f"examples/plugin/{name}.c")], check=True)
        return ["--plugin", f"./{name}.so"]

    def losses(self, run, name="train/loss_epoch"):
        with open(self.path(run, "metrics.csv")) as f:
            return [float(row[name]) for row in csv.DictReader(f) if row.get(name)]

    def weights(self, run):
        with open(self.path(run, "checkpoints/last/model.safetensors"), "rb") as f:
            return f.read()

    def trains(self, *args, epochs=4):
        """A run, the same with another number of threads, and one of half the epochs that is resumed."""
        plugin, args = args[:2], [*SMALL, *args, "scheduler=constant", f"trainer.max_epochs={epochs}"]
        self.run_kiln(*args, "kiln.run.dir=run")
        losses = self.losses("run")
        self.assertLess(losses[-1], losses[0])
        self.run_kiln(*args, "kiln.run.dir=threads", "trainer.threads=2")
        self.assertEqual(self.losses("threads"), losses)
        self.run_kiln(*args, "kiln.run.dir=half", f"trainer.max_epochs={epochs // 2}")
        self.run_kiln(*plugin, "resume=half", f"trainer.max_epochs={epochs}")
        self.assertEqual(self.weights("half"), self.weights("run"))

    def test_model(self):
        self.trains(*self.build("resmlp"), "model=resmlp", "model.width=32")

    def test_loss(self):
        plugin = self.build("poly_loss")
        self.trains(*plugin, "model=mlp", "task.loss=poly", "task.loss.epsilon=2")
        self.refused(*plugin, *TINY, "task.loss=poly", "task.loss.epsilon=-2", says=["task.loss.epsilon"])

    def write_signals(self, split, n, classes=2, length=16):
        """Waves of as many periods as their class, from 1, by any phase."""
        text = b"SIG1" + struct.pack("<III", n, length, classes)
        for i in range(n):
            wave = [round(9000 * math.sin(i + t * (i % classes + 1) * 2 * math.pi / length)) for t in range(length)]
            text += struct.pack(f"<B{length}h", i % classes, *wave)
        os.makedirs(self.path("data"), exist_ok=True)
        pathlib.Path(self.path("data", split + ".sig")).write_bytes(text)

    def test_files_of_ones_own(self):
        """A datamodule that reads a binary format: trains, predicts, and refuses files that are cut or do not fit."""
        for split in "train", "val", "test":
            self.write_signals(split, 64)
        words = [*self.build("signals"), "datamodule=signals", "datamodule.root=data", "task=classification", "model=mlp",
                 "model.hidden=[16]", "lr=0.1", "trainer.max_epochs=20", "seed=1"]
        for run, shift in ("plain", 0), ("rotated", 15):
            self.run_kiln(*words, f"datamodule.shift={shift}", f"kiln.run.dir={run}")
            with open(self.path(run, "metrics.csv")) as f:
                accuracy = [float(row["val/accuracy"]) for row in csv.DictReader(f) if row.get("val/accuracy")]
            self.assertEqual(accuracy[-1], 1.0)
        self.assertNotEqual(self.weights("plain"), self.weights("rotated"))
        wave = [round(9000 * math.sin(1 + t * 2 * math.pi / 8)) for t in range(16)]
        self.write("one.jsonl", json.dumps({"signal": wave}) + "\n")
        out, _ = self.run_kiln("predict", "rotated", "one.jsonl", *words[:2], program="kiln")
        self.assertEqual(json.loads(out)["class"], "1")
        self.write_signals("val", 64, length=8)
        self.refused(*words, says=["argument 2 `datamodule.root=data`", "data/val.sig: signals of 8 values"])
        os.truncate(self.path("data/val.sig"), 100)
        self.refused(*words, says=["data/val.sig: its 100 bytes are not the 64 samples of 8 values"])
        os.unlink(self.path("data/val.sig"))
        self.refused(*words, says=["datamodule.root: data/val.sig: No such file"])

    def test_two_inputs_of_varying_length(self):
        """Also with batches by length: each list is padded on its own."""
        plugin = self.build("word_pairs")
        words = [*plugin, "datamodule=word_pairs", "task=longer_list", "model=two_encoders", "datamodule.count=512", "lr=0.02",
                 "trainer.max_epochs=20", "trainer.log_every_n_steps=1", "seed=1"]
        for name, *args in (["whole"], ["buckets", "datamodule.buckets=[4,8]"]):
            self.run_kiln(*words, *args, f"kiln.run.dir={name}")
            losses = self.losses(name, "train/loss")
            self.assertLess(losses[-1], 0.7 * losses[0])
            self.run_kiln("predict", *plugin, f"ckpt_path={name}", "split=val", f"output={name}.jsonl", program="kiln")
            with open(self.path(f"{name}.jsonl")) as f:
                rows = [json.loads(line) for line in f]
            self.assertEqual(len(rows), 128)
            self.assertGreater(sum(row["class"] == row["label"] for row in rows), 110)
        self.refused(*words, "model=mlp", says=["mlp"])
        # Without a test_step, the phases of validation and test log the same name.
        self.refused(*words, "callbacks.model_checkpoint.monitor=val/los", says=["it logs: train/loss, val/loss, lr\n"])

    def test_custom_operation(self):
        self.trains(*self.build("sparsemax"), "model=sparse_mixture", "lr=0.05")

    def test_optimizer(self):
        plugin = self.build("signum")
        self.trains(*plugin, "model=mlp", "optimizer=signum", "optimizer.lr=0.001")
        out, _ = self.run_kiln("show", "signum", *plugin, program="kiln")
        self.assertIn("momentum", out)
        self.refused(*plugin, *TINY, "optimizer=signum", "optimizer.momentum=1", says=["expected a number below 1"])

    def test_gradient_norms_of_its_update(self):
        """The trainer measures what the update does not: the same norms as for a built-in optimizer."""
        rows = {}
        for optimizer in "sgd", "signum":
            self.run_kiln(*SMALL, *self.build("signum"), "--plugin", build_plugin("norms", self.dir), "model=mlp", "optimizer.lr=0",
                          f"optimizer={optimizer}", "+callbacks.norms._target_=norms", "trainer.log_every_n_steps=1",
                          f"kiln.run.dir={optimizer}")
            with open(self.path(optimizer, "metrics.csv")) as f:
                rows[optimizer] = [(float(row["first_norm"]), float(row["last_norm"])) for row in csv.DictReader(f)
                                   if row["first_norm"]]
        self.assertEqual(len(rows["sgd"]), 16)
        for a, b in zip(rows["sgd"], rows["signum"], strict=True):
            self.assertGreater(min(a), 0)
            self.assertAlmostEqual(a[0] / b[0], 1, delta=1e-5)
            self.assertAlmostEqual(a[1] / b[1], 1, delta=1e-5)

    def test_direction_of_a_callback_s_value(self):
        """`mode: auto` follows what the callback declares before it logs."""
        stop = ["--plugin", build_plugin("norms", self.dir), *TINY, "+callbacks.norms._target_=norms",
                "+callbacks.early_stopping._target_=early_stopping"]
        self.run_kiln(*stop, "callbacks.early_stopping.monitor=first_norm", "kiln.run.dir=run")
        metrics = read_json(self.path("run", "summary.json"))["metrics"]
        self.assertEqual([metrics[f"{which}_norm"]["mode"] for which in ("first", "last")], ["min", None])
        self.refused(*stop, "callbacks.early_stopping.monitor=last_norm", says=["last_norm does not declare whether"])
        self.refused(*stop, "callbacks.early_stopping.monitor=first_nrom", says=["did you mean first_norm?"])


if __name__ == "__main__":
    main()
