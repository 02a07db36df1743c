"""Callbacks that monitor a run: throughput, device_stats, spike_detection."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import os
import shutil
import time

from kilntest import TINY, Braked, build_plugin, main, read, read_json

FAST = TINY + ["test=false", "logger=csv"]  # 8 batches of 32 an epoch
EACH = FAST + ["trainer.log_every_n_steps=1"]


class Instruments(Braked):
    def table(self, folder, name):
        return list(csv.DictReader(read(self.path(folder, name), "r").splitlines()))

    def test_throughput(self):
        self.brake(10)
        start = time.time()
        self.run_kiln(*EACH, *self.braked, "callbacks=[default,throughput]", "callbacks.throughput.window_size=4",
                      "kiln.run.dir=run")
        elapsed = time.time() - start
        rows = self.table("run", "measured.csv")
        self.assertEqual([int(row["step"]) for row in rows], list(range(2, 17)), "from the second batch on")
        for row in rows:
            samples, batches = float(row["throughput/samples_per_s"]), float(row["throughput/batches_per_s"])
            self.assertAlmostEqual(samples / batches, 32, places=6)
            self.assertTrue(32 / elapsed < samples < 32 / 0.01, row)
            self.assertTrue(0 < float(row["throughput/peak_share"]) < 1, row)
        # forward, gradients of the weights, and of the hidden layer's values: 2 FLOPs each
        flops = 2 * 32 * (784 * 16 * 2 + 16 * 10 * 3)
        ratio = float(rows[-1]["throughput/flops_per_s"]) / float(rows[-1]["throughput/batches_per_s"])
        self.assertTrue(0.9 * flops < ratio < 1.3 * flops, (ratio, flops))
        self.assertNotIn("throughput", read(self.path("run/metrics.csv"), "r"))
        self.assertNotIn("throughput", read(self.path("run/checkpoints/last/state.json"), "r"))
        metrics = read_json(self.path("run/summary.json"))["metrics"]
        self.assertEqual({name for name in metrics if metrics[name]["measured"]},
                         {name for name in metrics if name.startswith("throughput/")})

    def test_device_stats(self):
        self.run_kiln(*FAST, "trainer.log_every_n_steps=8", "callbacks=[default,device_stats]", "kiln.run.dir=run")
        rows = self.table("run", "measured.csv")
        self.assertEqual([int(row["step"]) for row in rows], [8, 16])
        for row in rows:
            self.assertTrue(0 <= float(row["device/cpu_percent"]) <= 100, row)
            self.assertTrue(0 < float(row["device/memory_percent"]) <= 100, row)
            self.assertTrue(1e6 < float(row["device/memory_bytes"]) < 1e10, row)

    def test_a_resumed_run_logs_the_same(self):
        """Measuring changes nothing of what a run gives."""
        measured = EACH + ["callbacks=[default,throughput,device_stats,spike_detection,flight_recorder]"]
        self.run_kiln(*EACH, "callbacks=default", "kiln.run.dir=bare")
        self.run_kiln(*measured, "kiln.run.dir=whole")
        self.run_kiln(*measured, "trainer.max_epochs=1", "scheduler=constant", "kiln.run.dir=other")
        self.run_kiln(*measured, "kiln.run.dir=part", "+trainer.max_time=0.0001s")
        self.run_kiln(*measured, "kiln.run.dir=part", "ckpt_path=part")
        for name in ["model.safetensors", "trainer.safetensors"]:
            want = read(self.path("bare/checkpoints/last", name))
            self.assertEqual(read(self.path("whole/checkpoints/last", name)), want)

    def poisoned(self, *args, run="run", **options):
        """8 batches of 32 in order, sample 101 (batch 3) may be bad; a checkpoint each step."""
        plugin = build_plugin("poison", self.dir)
        return self.run_kiln("--plugin", plugin, "datamodule._target_=datamodule/poison", "datamodule.sampler=sequential",
                             "model=mlp", "model.hidden=[8]", "trainer.threads=1", "trainer.max_epochs=2",
                             "test=false", "datamodule.bad=101", "callbacks=spike_detection",
                             "+callbacks.model_checkpoint={_target_: callback/model_checkpoint, monitor: null, "
                             "every_n_train_steps: 2, save_top_k: -1}",
                             "trainer.log_every_n_steps=1", f"kiln.run.dir={run}", *args, **options)

    def test_a_spike_ends_the_run_and_is_skipped(self):
        for what in ["large", "not_a_number"]:
            self.write("run/x", "")
            shutil.rmtree(self.path("run"))
            _, err = self.poisoned(f"datamodule.what={what}", status=3)
            self.assertIn("the loss jumped to" if what == "large" else "the loss is NaN", err)
            self.assertEqual(read_json(self.path("run/skip_batches.json")),
                             [{"epoch": 0, "batch": 2}, {"epoch": 0, "batch": 3}])
            last = os.readlink(self.path("run/checkpoints/last"))
            self.assertEqual(last, "epoch=000-step=2")
            # It goes on from there without these two; in the next epoch the sample is bad again.
            _, err = self.poisoned(f"datamodule.what={what}", "ckpt_path=run", status=3)
            self.assertEqual([(item["epoch"], item["batch"]) for item in read_json(self.path("run/skip_batches.json"))],
                             [(0, 2), (0, 3), (1, 2), (1, 3)])
            self.poisoned(f"datamodule.what={what}", "ckpt_path=run")
            steps = [(int(row["epoch"]), int(row["batch"]), int(row["step"])) for row in self.table("run", "metrics.csv")
                     if row["train/loss_step"]]
            self.assertEqual(steps, [(0, 1, 1), (0, 2, 2), (0, 5, 3), (0, 6, 4), (0, 7, 5), (0, 8, 6),
                                     (1, 1, 7), (1, 2, 8), (1, 5, 9), (1, 6, 10), (1, 7, 11), (1, 8, 12)])

    def test_no_spike(self):
        out, _ = self.poisoned("datamodule.what=none")
        self.assertFalse(os.path.exists(self.path("run/skip_batches.json")))
        out, _ = self.poisoned("datamodule.what=large", "callbacks.spike_detection.atol=1e9", run="far")
        self.assertFalse(os.path.exists(self.path("far/skip_batches.json")))
        _, err = self.poisoned("datamodule.what=large", "callbacks.spike_detection.action=stop", run="stop", status=3)
        self.assertFalse(os.path.exists(self.path("stop/skip_batches.json")))
        self.write("list.json", '[{"epoch": 0}]')
        _, err = self.poisoned("callbacks.spike_detection.exclude_batches_path=list.json", run="list", status=1)
        self.assertIn("list.json: entry 0 lacks an epoch or a batch", err)


if __name__ == "__main__":
    main()
