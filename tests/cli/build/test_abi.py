"""Plugins of older days: their sources, compiled with the headers of that day (tests/abi/), do their work in today's program.
And what a compiled plugin depends on is the same in today's headers."""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

import unittest

from abi_layout import Layout, changes, growing
from kilntest import ROOT, TINY, Case, png, read, read_json

HEADERS = pathlib.Path(ROOT, "src")
LATER = "-17-kinds"  # the archive of the day from which plugins are found by themselves and checked: three kinds more
RINGS = ["datamodule=rings", "task=hinge", "trainer.threads=1"]
LEARNS = [*RINGS, "model=softsign", "optimizer=heavy_ball", "optimizer.lr=0.1", "optimizer.weight_decay=0", "task.scheduler=null",
          "datamodule.count=256", "seed=1", "logger=csv", "trainer.max_epochs=2"]
DIGITS = [*(arg for arg in TINY if not arg.startswith("model")), "test=false", "seed=1", "logger=csv", "trainer.max_epochs=1"]


def abi():
    return int(re.search(r"#define KILN_ABI (\d+)u", (HEADERS / "kiln/plugin.h").read_text()).group(1))


class Abi(Case):
    day = ""  # what follows the ABI's number in the archive's name

    @classmethod
    def setUpClass(cls):
        cls._old = tempfile.TemporaryDirectory(prefix="kiln-abi-")
        cls.old = pathlib.Path(cls._old.name)
        with tarfile.open(os.path.join(ROOT, f"tests/abi/kiln-{abi()}{cls.day}.tar.gz")) as archive:
            archive.extractall(cls.old)

    @classmethod
    def tearDownClass(cls):
        cls._old.cleanup()

    def compare(self, new):
        with tempfile.TemporaryDirectory() as folder:
            return changes(Layout(str(self.old / "src"), folder), Layout(str(new), folder), growing(str(HEADERS)))


class Plugins(Abi):
    """Of the day when the ABI was fixed. A component of each kind: the test of its kind shows that it did its work."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for page in [cls.old / "docs/components.md", *(cls.old / "docs/components").glob("*.md")]:
            for code, name in re.findall(r"^```c\n(/\* (\w+\.c): .*?)^```$", page.read_text(), re.M | re.S):
                (cls.old / name).write_text(code)
        cls.plugins = []
        for source in [*cls.old.glob("*.c"), *cls.old.glob("examples/plugin/*.c")]:
            path = cls.old / (source.stem + ".so")
            subprocess.run(["cc", "-std=c17", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN", "-D_POSIX_C_SOURCE=200809L", "-I",
                            str(cls.old / "src"), "-o", str(path), str(source), "-lm"], check=True)
            cls.plugins += ["--plugin", str(path)]

    def run_old(self, *args, **options):
        """`kiln` with all plugins, its output."""
        return self.run_kiln(args[0], *self.plugins, *args[1:], program="kiln", **options)[0]

    def train(self, run, *args):
        """Train in the folder `run`; what it logged in each row, without times."""
        self.run_old("train", *args, f"kiln.run.dir={run}")
        with open(self.path(run, "metrics.csv")) as file:
            return [{name: value for name, value in row.items() if value and name != "wall_time"} for row in csv.DictReader(file)]

    def changes_training(self, args, with_it, without_effect):
        """Options that use a component change what is trained, the same in each run; others, where it does nothing, don't."""
        plain = self.train("plain", *args)
        changed = self.train("changed", *args, with_it)
        self.assertNotEqual(changed, plain)
        self.assertEqual(self.train("again", *args, with_it), changed)
        if without_effect:
            self.assertEqual(self.train("idle", *args, without_effect), plain)

    def test_all_kinds(self):
        kinds = set(re.findall(r'^    X\(\w+, "(\w+)"\)', (self.old / "src/kiln/field.h").read_text(), re.M))
        self.assertGreater(len(kinds), 10)
        self.assertEqual({kind for kind in kinds if not hasattr(self, f"test_{kind}")}, set())

    def test_datamodule(self):
        rows = self.train("run", *LEARNS)
        self.assertEqual([row["samples"] for row in rows if row["phase"] == "fit"], ["256", "512"])

    def test_module(self):
        """The loss of two classes that a disc and a ring around it part falls to nothing."""
        rows = self.train("run", *LEARNS, "trainer.max_epochs=30", "+task.metrics.margin=metric/margin")
        self.assertGreater(float(rows[0]["val/loss"]), 0.5)
        self.assertLess(float(rows[-1]["test/loss"]), 0.05)

    def test_model(self):
        """One linear layer can't part them; a hidden one with the plugin's own operation can."""
        last = {model: float(self.train(model, *LEARNS, f"model={model}", "trainer.max_epochs=30")[-1]["test/loss"])
                for model in ("perceptron", "softsign")}
        self.assertGreater(last["perceptron"], 0.5)
        self.assertLess(last["softsign"], 0.05)
        rows = self.train("sparse", *DIGITS, "model=sparse_mixture", "lr=0.01", "trainer.max_epochs=5")
        losses = [float(row["train/loss_epoch"]) for row in rows if "train/loss_epoch" in row]
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_loss(self):
        """At first each digit has a probability of 0.1: squared distances of 0.81 and nine times 0.01."""
        for loss, low, high in (("brier", 0.8, 1.0), ("poly", 2.8, 3.6)):
            rows = self.train(loss, *DIGITS, "model=resmlp", f"task.loss={loss}", "lr=1e-9")
            self.assertGreater(float(rows[-1]["val/loss"]), low)
            self.assertLess(float(rows[-1]["val/loss"]), high)

    def test_optimizer(self):
        """The same update as the built-in sgd's, and another one in a pass of its own."""
        self.assertEqual(self.train("old", *LEARNS),
                         self.train("new", *LEARNS, "optimizer=sgd", "optimizer.momentum=0.9"))
        self.assertIn(b"velocity", read(self.path("old/checkpoints/last/trainer.safetensors")))
        rows = self.train("signum", *LEARNS, "optimizer=signum", "optimizer.lr=0.003", "trainer.max_epochs=30")
        self.assertLess(float(rows[-1]["test/loss"]), 0.5 * float(rows[0]["val/loss"]))

    def test_scheduler(self):
        """16 steps: a warmup of 2, and a fall over the last 4."""
        rows = self.train("run", *LEARNS, "task.scheduler=${scheduler}", "scheduler=cooldown", "scheduler.warmup_steps=2",
                          "scheduler.share=0.25", "trainer.log_every_n_steps=1")
        rates = [float(row["lr"]) for row in rows if "lr" in row]
        self.assertEqual(len(rates), 16)
        self.assertLess(rates[0], 0.1)
        for rate, factor in zip(rates[2:], [1] * 11 + [0.75, 0.5, 0.25]):
            self.assertAlmostEqual(rate, 0.1 * factor, places=9)

    def test_callback(self):
        self.train("run", *LEARNS, "trainer.max_epochs=50", "+callbacks.target._target_=target", "callbacks.target.value=0.4")
        summary = read_json(self.path("run/summary.json"))
        self.assertLess(float(re.fullmatch(r"val/loss is (.+)", summary["reason"]).group(1)), 0.4)
        self.assertLess(summary["steps"], 50 * 8)

    def test_logger(self):
        """The same values as in the built-in one's file."""
        rows = self.train("run", *LEARNS, "+logger.tsv=tsv")
        lines = [line.split("\t") for line in read(self.path("run/metrics.tsv"), "r").splitlines()]
        self.assertEqual([(step, f"{float(value):.6g}") for step, name, value in lines if name == "val/loss"],
                         [(row["step"], f"{float(row['val/loss']):.6g}") for row in rows if "val/loss" in row])

    def test_metric(self):
        """The mean margin is above 1 where the hinge loss is nothing, and 1 - loss while no margin is above 1."""
        rows = self.train("drawn", *LEARNS, "optimizer.lr=1e-9", "+task.metrics.margin=metric/margin")
        self.assertAlmostEqual(float(rows[0]["val/margin"]), 1 - float(rows[0]["val/loss"]), places=5)
        rows = self.train("trained", *LEARNS, "trainer.max_epochs=30", "+task.metrics.margin=metric/margin")
        self.assertGreater(float(rows[-1]["test/margin"]), 1.0)

    def test_transform(self):
        for i, split in enumerate(["train", "val"] * 2):
            self.write(f"images/{split}/{'ab'[i // 2]}/x.png", png(8, 8, (40 * i, 90, 200)))
        self.changes_training(["datamodule=image_folder", "datamodule.root=images", "model=linear", "seed=1", "logger=csv",
                               "trainer.threads=1", "trainer.max_epochs=1", "test=false"],
                              "datamodule.transforms=[{_target_: invert, p: 1}]",
                              "datamodule.transforms=[{_target_: invert, p: 0}]")

    def test_sampler(self):
        self.changes_training(LEARNS, "datamodule.sampler=bootstrap", None)

    def test_batch_transform(self):
        self.changes_training(LEARNS, "datamodule.batch_transforms=[{_target_: jitter, sigma: 0.5}]",
                              "datamodule.batch_transforms=[{_target_: jitter, sigma: 0}]")

    def sweep(self, *args, sweeper="racing", trials="trials"):
        """Four jobs of four epochs: what the sweep printed, and its rows of results."""
        out = self.run_old("train", "-m", *RINGS, "model=softsign", "datamodule.count=64", "lr=interval(0.001,1)", "seed=1",
                           f"kiln/sweeper={sweeper}", f"kiln.sweeper.{trials}=4", "trainer.max_epochs=4", "kiln.sweep.dir=sweep",
                           *args)
        with open(self.path("sweep/results.csv")) as file:
            return out, list(csv.DictReader(file))

    def test_sweeper(self):
        _, jobs = self.sweep("kiln.launcher.n_jobs=1")
        self.assertEqual(len({job["lr"] for job in jobs}), 4)
        self.assertTrue(all(0.001 < float(job["lr"]) < 1 for job in jobs))
        self.assertEqual(jobs[0]["status"], "ok")
        self.assertIn("was better after epoch", " ".join(job["reason"] for job in jobs if job["status"] == "stopped"))

    def test_launcher(self):
        """The processes of its jobs end, and it passes on what the sweeper answers."""
        out, jobs = self.sweep("kiln/launcher=queue")
        self.assertEqual(len(jobs), 4)
        self.assertLessEqual({job["status"] for job in jobs}, {"ok", "stopped"})
        self.assertIn("was better after epoch", out)

    def test_resume(self):
        args = [*RINGS, "model=perceptron", "optimizer=heavy_ball", "task.scheduler=null", "datamodule.count=64", "+logger.tsv=tsv"]
        self.run_old("train", *args, "trainer.max_epochs=1", "kiln.run.dir=run", "seed=1")
        self.run_old("train", "resume=run", "trainer.max_epochs=2")
        self.run_old("train", *args, "trainer.max_epochs=2", "kiln.run.dir=whole", "seed=1")
        self.assertEqual(*(read(self.path(run, "metrics.tsv")) for run in ("run", "whole")))

    def test_two_inputs(self):
        """Of varying lengths, with a datamodule, a model and a task for them."""
        self.run_old("train", "datamodule=word_pairs", "task=longer_list", "model=two_encoders", "trainer.max_steps=2")

    def test_show(self):
        for name in ("datamodule/rings", "model/perceptron", "optimizer/heavy_ball", "sweeper/racing", "transform/invert"):
            self.assertIn(name.split("/")[1], self.run_old("show", name))


class LaterPlugins(Plugins):
    day = LATER

    def test_pruner(self):
        _, jobs = self.sweep("kiln/pruner=threshold", "kiln.pruner.value=1e-9", sweeper="random", trials="n_trials")
        self.assertEqual({job["reason"] for job in jobs}, {"did not reach 1e-09 in 1 epochs"})

    def test_strategy(self):
        """Two processes leave the bytes of one that accumulates two batches."""
        shared = [*LEARNS, "trainer.strategy=shared_file", "trainer.strategy.path=meet", "kiln.run.dir=ranks"]
        ranks = [self.start("train", *self.plugins, *shared, program="kiln",
                            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}) for rank in range(2)]
        for process in ranks:
            out = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, out)
        self.train("one", *LEARNS, "trainer.accumulate_grad_batches=2")
        self.assertEqual(*(read(self.path(run, "checkpoints/last/model.safetensors")) for run in ("ranks", "one")))

    def test_tokenizer(self):
        self.write("colours.txt", "red;green\ngreen;blue\n")
        self.run_old("tokenizer", "train", "tokenizer=fields", "files=colours.txt", "output=fields.json")
        with open(self.path("colours.txt")) as lines:
            out = self.run_old("tokenizer", "encode", "fields.json", stdin=lines)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line["tokens"] for line in lines], [["red", "green"], ["green", "blue"]])
        self.assertEqual([line["ids"] for line in lines], [[3, 1], [1, 2]])

    def test_raw_samples(self):
        """The datamodule prepares a user's texts with the vocabulary that it has kept."""
        self.run_old("train", "datamodule=word_pairs", "task=longer_list", "model=two_encoders", "datamodule.count=512", "lr=0.02",
                     "trainer.max_epochs=15", "seed=1", "kiln.run.dir=run")
        texts = [("ash", "fig oak elm fig ash oak elm"), ("fig oak elm fig ash oak elm", "ash")]
        self.write("pairs.jsonl", "".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in texts))
        self.run_old("predict", "run", "pairs.jsonl", "output=out.jsonl")
        rows = [json.loads(line) for line in read(self.path("out.jsonl"), "r").splitlines()]
        self.assertEqual([row["class"] for row in rows], ["target", "source"])


class Headers(Abi):
    def test_today(self):
        self.assertEqual(self.compare(HEADERS), [], "plugins cannot follow this change (see kiln/plugin.h): do it in another "
                         "way, or raise KILN_ABI")


class LaterHeaders(Headers):
    day = LATER


class Changes(Abi):
    """What the comparison lets pass and what it finds."""

    def edited(self, *edits):
        """Changes in a copy of the headers of that day."""
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "src")
            shutil.copytree(self.old / "src", copy)
            for name, before, after in edits:
                text = (copy / "kiln" / name).read_text()
                self.assertEqual(text.count(before), 1, before)
                (copy / "kiln" / name).write_text(text.replace(before, after))
            return self.compare(copy)

    def test_growth(self):
        """A hook, a kind, a type of option, a member of a struct that kiln makes, a status, a function."""
        self.assertEqual(self.edited(
            ("loss.h", "KilnTensor *output, KilnTensor *target);\n};",
             "KilnTensor *output, KilnTensor *target);\n    void (*after)(KilnInstance *self);\n};"),
            ("field.h", 'X(LAUNCHER, "launcher")', 'X(LAUNCHER, "launcher") X(STRATEGY, "strategy")'),
            ("field.h", "or only its name */\n} KilnType;", "or only its name */, KILN_TYPE_DATE\n} KilnType;"),
            ("sweep.h", "} KilnTrial;", "    double seconds;\n} KilnTrial;"),
            ("base.h", "X(E_INTERNAL, -15,", 'X(E_BUSY, -16, "busy") X(E_INTERNAL, -15,'),
            ("rng.h", "KILN_API uint32_t kiln_rng_u32(KilnRng *rng);",
             "KILN_API uint32_t kiln_rng_u32(KilnRng *rng);\nKILN_API uint64_t kiln_rng_u64(KilnRng *rng);")), [])

    def test_changes_are_found(self):
        for name, before, after, says in (
                ("module.h", "    size_t (*slots)(", "    void (*first)(void);\n    size_t (*slots)(", "KilnOptimizerOps.slots was"),
                ("sweep.h", "    KilnJobStatus status;\n    const KilnTrialReport", "    const KilnTrialReport", "KilnTrial had"),
                ("data.h", "} KilnFeature;", "    int more;\n} KilnFeature;", "KilnFeature had"),
                ("module.h", "double (*factor)(const KilnInstance *self,", "double (*factor)(KilnInstance *self,",
                 "KilnSchedulerOps.factor was"),
                ("rng.h", "kiln_rng_below(KilnRng *rng, uint32_t n)", "kiln_rng_below(KilnRng *rng, uint64_t n)",
                 "kiln_rng_below was"),
                ("field.h", "    KILN_TYPE_F64,\n", "    KILN_TYPE_DATE, KILN_TYPE_F64,\n", "KILN_TYPE_F64 was 3, now 4"),
                ("tensor.h", "#define KILN_SHAPE_TEXT 128", "#define KILN_SHAPE_TEXT 64", "KILN_SHAPE_TEXT was 128, now 64")):
            self.assertIn(says, " ".join(self.edited((name, before, after))))


if __name__ == "__main__":
    unittest.main()
