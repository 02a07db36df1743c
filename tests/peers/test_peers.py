"""The programs of others read what a run leaves: TensorBoard, pandas, safetensors with PyTorch.
make check-peers PEER=python-that-has-them"""
import csv
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from kilntest import Case, TINY  # noqa: E402

import pandas  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from tensorboard.backend.event_processing import plugin_event_accumulator as accumulator  # noqa: E402
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader  # noqa: E402
from tensorboard.plugins.hparams import plugin_data_pb2  # noqa: E402
from tensorboard.util.tensor_util import make_ndarray  # noqa: E402

RUN = ["callbacks=[default,histograms,sample_images]", "logger=[csv,jsonl,tensorboard]",
       "callbacks.histograms.every_n_steps=4", "trainer.log_every_n_steps=2", "kiln.run.dir=run"]


def events(folder):
    found = accumulator.EventAccumulator(folder, size_guidance={accumulator.TENSORS: 0})
    found.Reload()
    return found


class Peers(Case):
    def setUp(self):
        super().setUp()
        self.run_kiln(*TINY, *RUN)
        with open(self.path("run/metrics.csv"), newline="") as f:
            self.rows = list(csv.DictReader(f))

    def test_pandas_reads_both_tables(self):
        table = pandas.read_csv(self.path("run/metrics.csv"))
        self.assertEqual(list(table["phase"].unique()), ["fit", "test"])
        self.assertEqual(table["samples"].iloc[-1], 2 * 256)
        self.assertEqual(len(table["train/loss_step"].dropna()), 8)
        self.assertEqual(table["val/loss"].dtype, "float64")
        lines = pandas.read_json(self.path("run/metrics.jsonl"), lines=True, precise_float=True)
        self.assertEqual(lines["hparams"].dropna().iloc[0]["model"], "model/mlp")
        self.assertEqual(lines["status"].dropna().iloc[0], "finished")
        losses = [m["train/loss_step"] for m in lines["metrics"].dropna() if "train/loss_step" in m]
        self.assertEqual(losses, list(table["train/loss_step"].dropna()))

    def test_tensorboard_reads_scalars(self):
        found = events(self.path("run/tensorboard"))
        for name in ["train/loss_step", "train/loss_epoch", "val/loss", "val/accuracy", "test/loss", "lr"]:
            # TensorBoard turns scalars into tensors as it reads.
            got = [(e.step, round(float(make_ndarray(e.tensor_proto)), 4)) for e in found.Tensors(name)]
            want = [(int(row["step"]), round(float(row[name]), 4)) for row in self.rows if row[name]]
            self.assertEqual([step for step, _ in got], [step for step, _ in want], name)
            for (_, a), (_, b) in zip(got, want, strict=True):
                self.assertAlmostEqual(a, b, delta=2e-4, msg=name)

    def test_tensorboard_reads_histograms_images_texts(self):
        found = events(self.path("run/tensorboard"))
        tags = found.Tags()["tensors"]
        weights = load_file(self.path("run/checkpoints/last/model.safetensors"))
        for name in weights:
            self.assertIn(f"parameters/{name}", tags)
            self.assertIn(f"gradients/{name}", tags)
            last = found.Tensors(f"parameters/{name}")[-1]
            self.assertEqual(last.step, 16)
            bins = make_ndarray(last.tensor_proto)  # left edge, right edge, count
            self.assertEqual(bins[:, 2].sum(), weights[name].numel())
            self.assertAlmostEqual(bins[0, 0], weights[name].min().item(), delta=1e-6)
            self.assertAlmostEqual(bins[-1, 1], weights[name].max().item(), delta=1e-6)
        grid = found.Tensors("val/samples")
        self.assertEqual([e.step for e in grid], [8, 16])
        width, height, png = grid[0].tensor_proto.string_val[:3]
        self.assertEqual((int(width), int(height)), (4 * 29 - 1, 4 * 29 - 1))
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        text = found.Tensors("config")[0].tensor_proto.string_val[0].decode()
        self.assertIn("_target_: model/mlp", text)

    def test_tensorboard_reads_hparams(self):
        folder = self.path("run/tensorboard")
        (name,) = os.listdir(folder)
        found = {}
        for event in EventFileLoader(os.path.join(folder, name)).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "hparams":
                    found[value.tag] = plugin_data_pb2.HParamsPluginData.FromString(
                        value.metadata.plugin_data.content)
        session = found["_hparams_/session_start_info"].session_start_info.hparams
        self.assertEqual(session["model"].string_value, "model/mlp")
        self.assertEqual(session["datamodule.train_count"].number_value, 256)
        self.assertEqual(session["trainer.max_epochs"].number_value, 2)
        infos = {i.name for i in found["_hparams_/experiment"].experiment.hparam_infos}
        self.assertEqual(infos, set(session))
        tags = {m.name.tag for m in found["_hparams_/experiment"].experiment.metric_infos}
        self.assertIn("val/accuracy", tags)
        self.assertEqual(found["_hparams_/session_end_info"].session_end_info.status, 1)

    def test_pytorch_reads_weights(self):
        weights = load_file(self.path("run/checkpoints/last/model.safetensors"))
        self.assertEqual(sorted(tuple(w.shape) for w in weights.values()), [(10,), (10, 16), (16,), (16, 784)])
        self.assertTrue(all(bool(w.isfinite().all()) for w in weights.values()))


if __name__ == "__main__":
    unittest.main()
