"""Past runs and sweeps: what their folders say."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import unittest
from unittest import mock

from experiment import Patience, TopTwo
from pythontest import ROOT, TINY, Case

import kiln


class Runs(Case):
    def test_run(self):
        self.train(*TINY, "lr=0.07", "kiln.run.dir=run")
        run = kiln.Run("run")
        self.assertEqual((run.dir, run.status), (self.dir / "run", "finished"))
        self.assertEqual(run.config["lr"], 0.07)
        self.assertEqual(run.config["model.hidden"], [16])
        self.assertRegex(run.explain("lr"), r"set to +0.07 +argument 9 `lr=0.07`")
        self.assertIn("epoch 1/1", run.log)
        rows = run.rows()
        self.assertEqual(rows["phase"], ["fit", "fit", "test"])
        self.assertEqual((rows["step"], rows["val/loss"][2]), ([8, 16, 16], None))
        last = run.checkpoint("last")
        self.assertEqual((last.step, last.epoch), (16, 1))
        self.assertIn("last", last.links)
        self.assertEqual(run.checkpoint("best").path.parent, run.dir / "checkpoints")
        with self.assertRaisesRegex(KeyError, "epoch=001-step=16"):
            run.checkpoint("first")
        if run.plots:  # built with cairo
            self.assertIn("loss.png", [path.name for path in run.plots])
        self.assertAlmostEqual(run.evaluate()["test/accuracy"], run.rows()["test/accuracy"][2])
        self.assertAlmostEqual(kiln.evaluate("run", split="val")["val/loss"], run.rows()["val/loss"][1], places=6)

    def test_table(self):
        run = kiln.fit(*TINY, progress=False)
        with mock.patch.dict(sys.modules, {"pandas": None}):
            self.assertEqual(run.metrics, run.rows())
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        self.assertIsInstance(run.metrics, pandas.DataFrame)
        self.assertEqual(list(run.metrics["step"]), [8, 16, 16])
        self.assertTrue(run.metrics["val/loss"].isna()[2])

    def test_newest(self):
        first = kiln.fit(*TINY, progress=False)
        self.assertEqual(kiln.Run().dir, first.dir)
        self.assertEqual(kiln.load().checkpoint, str(first.checkpoint("last").path))
        with self.assertRaisesRegex(FileNotFoundError, "no run folder"):
            kiln.Run("nothing")


class Sweeps(Case):
    def sweep(self, *words, **options):
        return kiln.sweep(*TINY[:-1], "trainer.threads=1", "trainer.max_epochs=1", "test=false", *words, progress=False, **options)

    def test_grid(self):
        sweep = self.sweep("model.hidden=[8],[16]", "lr=0.1,0.01", "seed=1")
        self.assertEqual([(row["lr"], row["status"]) for row in sweep.rows()],
                         [("0.1", "ok"), ("0.01", "ok"), ("0.1", "ok"), ("0.01", "ok")])
        self.assertEqual([run.config["lr"] for run in sweep.runs], [0.1, 0.01, 0.1, 0.01])
        self.train(*TINY[:1], *TINY[2:-1], "trainer.threads=1", "trainer.max_epochs=1", "test=false", "lr=0.1", "model.hidden=[8]", "seed=1",
                   "kiln.run.dir=alone")
        self.assert_same_files(sweep.runs[0].dir / "checkpoints/last", "alone/checkpoints/last", ("model.safetensors",))

    def test_components(self):
        """Options of components in Python are swept like others."""
        sweep = self.sweep("callbacks.patience.factor=1,2", callbacks=[Patience(epochs=5)], metrics=[TopTwo()])
        self.assertEqual([run.config["callbacks.patience.factor"] for run in sweep.runs], [1.0, 2.0])
        self.assertEqual([run.config["callbacks.patience.epochs"] for run in sweep.runs], [5, 5])
        self.assertEqual([run.rows()["seen"][0] for run in sweep.runs], [1, 1])
        self.assertIn("val/top_two", sweep.runs[0].rows())

    def test_components_by_name(self):
        """As kiln.fit, a sweep knows the components that the program has defined or imported."""
        sweep = kiln.sweep("task=classification", "model=mlp", "datamodule=rings", "datamodule.count=64,96", "trainer.max_epochs=1",
                           "test=false", progress=False)
        self.assertEqual([run.config["datamodule.count"] for run in sweep.runs], [64, 96])

    def test_search_and_pruning(self):
        sweep = self.sweep("kiln/sweeper=random", "kiln.sweeper.n_trials=3", "lr=tag(log,interval(0.001,0.1))")
        self.assertEqual(len(sweep.rows()), 3)
        self.assertEqual(len({row["lr"] for row in sweep.rows()}), 3)

    def test_measured_number_of_jobs(self):
        sweep = self.sweep("lr=0.1,0.05", "kiln.launcher.n_jobs=0", "kiln.sweep.dir=sweep", callbacks=[Patience()])
        self.assertEqual([row["status"] for row in sweep.rows()], ["ok", "ok"])
        records = [json.loads(line) for line in pathlib.Path("sweep/journal.jsonl").read_text().splitlines()]
        (measured,) = [record for record in records if record["event"] == "measured"]
        self.assertIn(measured["n_jobs"], (1, 2))
        self.assertNotIn("failed", str(measured))

    def test_ctrl_c(self):
        """Jobs save and end; the sweep can be resumed."""
        words = [*TINY[:-2], "trainer.threads=1", "trainer.max_epochs=20000", "test=false", "lr=0.1,0.05", "kiln.sweep.dir=sweep"]
        script = "import kiln, sys; print([row['status'] for row in kiln.sweep(*sys.argv[1:], progress=False).rows()])"
        process = subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        end = time.monotonic() + 60
        while not list(pathlib.Path("sweep").glob("*/checkpoints/last")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=60)[0]
        self.assertIn("interrupted", out)
        self.assertNotIn("failed", out)
        run = kiln.Sweep("sweep").runs[0]
        self.assertEqual(run.status, "interrupted")
        self.assertGreater(run.checkpoint("last").step, 0)

    def test_errors(self):
        with self.assertRaisesRegex(kiln.KilnError, "lr"):
            self.sweep("lr=0.1,fast")
        self.assertFalse(pathlib.Path("multirun").exists())
        with self.assertRaises(FileNotFoundError):
            kiln.Sweep(".")
        script = textwrap.dedent("""
            import kiln
            class Mine(kiln.Callback):
                pass
            kiln.sweep("model=mlp", "lr=0.1,0.2", callbacks=[Mine()])
        """)
        by_name = script.replace("callbacks=[Mine()]", "'+callbacks.my._target_=callback/mine'")
        for script in script, by_name:
            done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                                  capture_output=True, text=True)
            self.assertIn("Mine is defined in this script or notebook", done.stderr)


if __name__ == "__main__":
    unittest.main()
