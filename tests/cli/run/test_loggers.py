"""Files that loggers write into the run folder, also when the run is killed."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import struct
import unittest

from kilntest import TINY, Braked, live, read

RUN = TINY + ["logger=[csv,jsonl,tensorboard]", "callbacks=[default,histograms]", "callbacks.histograms.every_n_steps=5",
              "callbacks.model_checkpoint.every_n_train_steps=3", "trainer.log_every_n_steps=2", "trainer.max_epochs=6"]


def events(path):
    """The messages of an event file, without their wall times (field 1, in front)."""
    data, found = read(path), []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        message = data[12:12 + size]
        assert message[0] == 0x09 and len(message) == size
        found.append(message[9:])
        data = data[16 + size:]
    return found


class Loggers(Braked):
    def rows(self, run):
        with open(self.path(run, "metrics.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        for row in rows:
            self.assertGreater(float(row.pop("wall_time")), 1.6e9)
        return rows

    def lines(self, run):
        lines = [json.loads(line) for line in read(self.path(run, "metrics.jsonl"), "r").splitlines()]
        for line in lines:
            line.pop("wall_time", None)
        return lines

    def compare(self, run):
        self.assertEqual(self.rows(run), self.rows("whole"))
        self.assertEqual(self.lines(run), self.lines("whole"))
        a, b = (events(self.path(r, "tensorboard/events.out.tfevents.0.kiln")) for r in [run, "whole"])
        self.assertGreater(len(a), 100)
        # What begins and ends a session holds the time of day.
        self.assertEqual([m for m in a if b"_hparams_" not in m], [m for m in b if b"_hparams_" not in m])
        self.assertEqual(len(a), len(b))

    def test_killed_runs_leave_the_same_files(self):
        self.needs_tensorboard()
        args = RUN + self.braked
        self.run_kiln(*args, "kiln.run.dir=whole")
        rows = self.rows("whole")
        self.assertEqual([r["phase"] for r in rows[-2:]], ["fit", "test"])
        validated = [r for r in rows if r["val/loss"]]
        self.assertEqual([(r["phase"], r["epoch"], r["batch"]) for r in validated], [("fit", str(i), "8") for i in range(6)])
        self.assertTrue(all(r["train/accuracy"] for r in validated), "in the row of the epoch")
        self.assertEqual(len({tuple(r[k] for k in ["phase", "epoch", "step", "batch"]) for r in rows}), len(rows))
        self.assertEqual(rows[-2]["samples"], str(6 * 256))
        for i, wanted in enumerate([1, len(rows) // 3, 3 * len(rows) // 4]):
            run = f"killed{i}"
            path = self.path(run, "metrics.csv")
            self.brake(10)
            process = self.start(*args, f"kiln.run.dir={run}")
            self.wait_for(f"{run}/checkpoints/last", process)
            self.wait_for(lambda: read(path).count(b"\n") >= wanted, process)
            process.kill()
            process.communicate()
            self.let_go()
            self.run_kiln(*args, f"kiln.run.dir={run}", f"ckpt_path={self.path(run)}")
            with self.subTest(wanted=wanted):
                self.compare(run)

    def test_files_that_are_removed_while_a_run_writes(self):
        """metrics.csv comes back with all its rows; of others the screen says what is lost."""
        args = [*TINY, *self.braked, "logger=[csv,jsonl]", "trainer.log_every_n_steps=1"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        for turn in ["removed", "replaced"]:
            self.hold(after=12)
            process = self.start(*args, f"kiln.run.dir={turn}")
            self.wait_for(lambda: (at := live(self.path(turn))) and (at.epoch, at.batch) == (1, 4), process)
            for name in ["metrics.csv", "metrics.jsonl"]:
                os.remove(self.path(turn, name))
            if turn == "replaced":
                self.write(f"{turn}/metrics.csv", "mine\n")
            self.let_go()
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(self.rows(turn), self.rows("whole"))
            self.assertIn("metrics.jsonl was removed while the run was writing to it: its rows are lost", out)
            self.assertNotIn("metrics.csv was removed", out)

    def test_plots(self):
        out, _ = self.run_kiln(*TINY, "trainer.log_every_n_steps=2", "kiln.run.dir=run")
        if "no plots" in out:
            self.skipTest("built without cairo")
        curves = ["accuracy.png", "loss.png", "lr.png"]
        self.assertEqual(sorted(os.listdir(self.path("run/plots"))), sorted(curves + [f"{split}_{what}.png" for split in ["val", "test"]
                                         for what in ["confusion", "samples"]]))
        for name in curves:
            data = read(self.path("run/plots", name))
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(struct.unpack(">II", data[16:24]), (800, 500))

    def test_pictures_of_predictions(self):
        pairs = "+task.metrics.pairs=metric/confusion_matrix"
        out, _ = self.run_kiln(*TINY, pairs, "callbacks.prediction_plots.count=8", "kiln.run.dir=run")
        if "no plots" in out:
            self.skipTest("built without cairo")
        names = sorted(os.listdir(self.path("run/plots")))
        self.assertEqual([n for n in names if "pairs" in n or "confusion" in n],
                         ["test_confusion.png", "test_pairs.png", "train_pairs.png", "val_confusion.png", "val_pairs.png"])
        # Eight in a row, 112 pixels each and 12 between them: a row of right ones and one of wrong ones.
        size = struct.unpack(">II", read(self.path("run/plots/val_samples.png"))[16:24])
        self.assertEqual(size, (2 * 16 + 8 * (112 + 12) - 12, 2 * (16 + 26 + 112 + 18 + 12) + 14))
        before = read(self.path("run/plots/val_samples.png"))
        self.run_kiln("resume=run", "trainer.max_epochs=8")
        self.assertNotEqual(read(self.path("run/plots/val_samples.png")), before, "drawn anew")
        self.run_kiln(*TINY, pairs, "callbacks.prediction_plots.count=8", "trainer.max_epochs=8",
                      "kiln.run.dir=whole")
        for name in ["val_samples.png", "val_confusion.png", "test_samples.png"]:
            self.assertEqual(os.path.getsize(self.path("whole/plots", name)) > 1000, True)

    def test_cells_are_for_loggers(self):
        """A matrix is a picture; on the screen it would fill page after page."""
        out, _ = self.run_kiln(*TINY, "+task.metrics.confusion=metric/confusion_matrix", "kiln.run.dir=run")
        self.assertNotIn("confusion/", out)
        self.assertIn("val/accuracy", out)
        self.assertIn("val/confusion/9/9", self.rows("run")[0])
        self.assertIn("val/confusion/9/9", json.loads(read(self.path("run/summary.json")))["metrics"])

    def test_hyperparameters_of_a_job_are_those_of_a_run(self):
        args = [*TINY, "logger=[csv,jsonl]", "lr=0.3"]
        self.run_kiln(*args, "kiln.run.dir=run")
        self.run_kiln("-m", *args, "seed=1,2", "kiln.sweep.dir=sweep")
        want = self.lines("run")[0]["hparams"]
        self.assertEqual(want["model.hidden"], "[16]")
        self.assertNotIn("task.model", want)
        got = self.lines("sweep/1")[0]["hparams"]
        self.assertEqual({k: v for k, v in got.items() if k != "seed"}, want)

    def test_refusals(self):
        _, err = self.run_kiln(*TINY, "callbacks=[default,histograms]", "kiln.run.dir=run", status=1)
        self.assertIn("add logger=tensorboard", err)
        _, err = self.run_kiln(*TINY, "+logger.more=csv", "kiln.run.dir=run", status=1)
        self.assertIn("logger.csv and logger.more both write metrics.csv", err)
        self.assertFalse(os.path.exists(self.path("run")))


if __name__ == "__main__":
    unittest.main()
