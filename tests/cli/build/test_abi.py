"""Plugins of the day when the ABI was fixed: their sources, compiled with the headers of that day (tests/abi/), run in
today's program. And what a compiled plugin depends on is the same in today's headers."""
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
from kilntest import ROOT, TINY, Case

HEADERS = pathlib.Path(ROOT, "src")
RINGS = ["datamodule=rings", "task=hinge", "trainer.threads=1"]


def abi():
    return int(re.search(r"#define KILN_ABI (\d+)u", (HEADERS / "kiln/plugin.h").read_text()).group(1))


class Abi(Case):
    @classmethod
    def setUpClass(cls):
        cls._old = tempfile.TemporaryDirectory(prefix="kiln-abi-")
        cls.old = pathlib.Path(cls._old.name)
        with tarfile.open(os.path.join(ROOT, f"tests/abi/kiln-{abi()}.tar.gz")) as archive:
            archive.extractall(cls.old)

    @classmethod
    def tearDownClass(cls):
        cls._old.cleanup()


class Plugins(Abi):
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

    def run_old(self, *args):
        """`kiln` with all plugins, its output."""
        return self.run_kiln(args[0], *self.plugins, *args[1:], program="kiln")[0]

    def test_training(self):
        """Datamodule, sampler, batch transform, module, model with an operation, metric, optimizer, scheduler, callback and
        logger."""
        self.run_old("train", *RINGS, "model=softsign", "optimizer=heavy_ball", "scheduler=cooldown", "scheduler.warmup_steps=2",
                     "datamodule.sampler=bootstrap", "datamodule.batch_transforms=[jitter]", "datamodule.count=64",
                     "+task.metrics.margin=metric/margin", "+callbacks.target._target_=target", "callbacks.target.value=1e9",
                     "+logger.tsv=tsv", "trainer.max_epochs=3", "kiln.run.dir=run")
        logged = pathlib.Path(self.path("run/metrics.tsv")).read_text()
        self.assertIn("\tval/margin\t", logged)
        self.assertIn("val/loss is ", pathlib.Path(self.path("run/summary.json")).read_text())

    def test_resume(self):
        args = [*RINGS, "model=perceptron", "optimizer=heavy_ball", "task.scheduler=null", "datamodule.count=64", "+logger.tsv=tsv"]
        self.run_old("train", *args, "trainer.max_epochs=1", "kiln.run.dir=run", "seed=1")
        self.run_old("train", "resume=run", "trainer.max_epochs=2")
        self.run_old("train", *args, "trainer.max_epochs=2", "kiln.run.dir=whole", "seed=1")
        tables = [pathlib.Path(self.path(run, "metrics.tsv")).read_bytes() for run in ("run", "whole")]
        self.assertEqual(*tables)

    def test_examples(self):
        """Two inputs of varying lengths, an operation with a gradient, an optimizer's own update, a loss."""
        self.run_old("train", "datamodule=word_pairs", "task=longer_list", "model=two_encoders", "trainer.max_steps=2")
        short = [arg for arg in TINY if not arg.startswith("model")] + ["trainer.max_steps=2", "test=false"]
        self.run_old("train", *short, "model=sparse_mixture", "optimizer=signum", "task.loss=poly")
        self.run_old("train", *short, "model=resmlp", "task.loss=brier")

    def test_sweep(self):
        out = self.run_old("train", "-m", *RINGS, "model=perceptron", "lr=interval(0.001,1)", "kiln/sweeper=racing",
                           "kiln/launcher=queue", "kiln.sweeper.trials=4", "trainer.max_epochs=4", "datamodule.count=64")
        self.assertIn("was better after epoch", out)

    def test_show(self):
        for name in ("datamodule/rings", "model/perceptron", "optimizer/heavy_ball", "sweeper/racing", "transform/invert"):
            self.assertIn(name.split("/")[1], self.run_old("show", name))


class Headers(Abi):
    def compare(self, new):
        with tempfile.TemporaryDirectory() as folder:
            return changes(Layout(str(self.old / "src"), folder), Layout(str(new), folder), growing(str(HEADERS)))

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

    def test_today(self):
        self.assertEqual(self.compare(HEADERS), [], "plugins cannot follow this change (see kiln/plugin.h): do it in another "
                         "way, or raise KILN_ABI")

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
