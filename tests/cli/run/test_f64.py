"""trainer.precision=64-true: runs in double precision."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import resource
import unittest

from kilntest import SHORT as SANITIZED, Case, main, read

SHORT = ["trainer.precision=64-true", "datamodule.train_count=96", "datamodule.val_count=32", "datamodule.test_count=32",
         "datamodule.batch_size=16", "trainer.max_epochs=2", "trainer.threads=2"]
CNN = ["model=cnn", "model.channels=[4,6]", "model.hidden=16"]


class DoublePrecision(Case):
    def header(self, path):
        data = read(self.path(path))
        return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])

    def curve(self, precision):
        self.run_kiln("model=cnn", "model.channels=[4,6]", "model.hidden=16", "datamodule.train_count=320", "datamodule.batch_size=16",
                      "trainer.max_epochs=1", "trainer.log_every_n_steps=1", "optimizer=adam", "lr=0.001", "test=false",
                      f"trainer.precision={precision}", f"kiln.run.dir={precision}")
        with open(self.path(precision, "metrics.csv"), newline="") as f:
            return [float(row["train/loss_step"]) for row in csv.DictReader(f) if row["train/loss_step"]]

    def test_the_curve_follows_32_true(self):
        narrow, wide = self.curve("32-true"), self.curve("64-true")
        self.assertEqual(len(wide), 20)
        for step, (want, got) in enumerate(zip(wide, narrow)):
            self.assertLessEqual(abs(got - want), 1e-4 * want, f"step {step}")
        self.assertNotEqual(narrow, wide)
        self.assertLess(min(wide[-5:]), wide[0])

    @unittest.skipIf(SANITIZED, "a sanitizer reserves all addresses")
    def test_a_limit_of_addresses(self):
        """OpenBLAS takes 128 MiB for each thread; where it gets none it would try for ever."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
        _, err = self.run_kiln(*SHORT, "kiln.run.dir=run", status=1, preexec_fn=limit)
        self.assertIn("OpenBLAS needs 256 MiB of addresses for 2 threads, which a limit does not leave (ulimit -v)", err)
        self.assertFalse(os.path.exists(self.path("run")))

    def test_resume_to_the_same_bytes(self):
        for callbacks in ["default", "ema"]:
            short = [*SHORT, *CNN, f"callbacks={callbacks}", "optimizer=adamw", "callbacks.model_checkpoint.every_n_train_steps=4",
                     "callbacks.model_checkpoint.save_top_k=-1", "callbacks.model_checkpoint.monitor=null"]
            self.run_kiln(*short, f"kiln.run.dir=whole-{callbacks}")
            folder = self.path(f"whole-{callbacks}", "checkpoints")
            saved = sorted(name for name in os.listdir(folder) if name.startswith("epoch="))
            self.run_kiln(*short, f"kiln.run.dir=again-{callbacks}", f"ckpt_path='{folder}/{saved[0]}'")
            for file in ["model.safetensors", "trainer.safetensors"]:
                self.assertEqual(read(self.path(f"whole-{callbacks}/checkpoints/last", file)),
                                 read(self.path(f"again-{callbacks}/checkpoints/last", file)), file)
                for name, entry in self.header(f"whole-{callbacks}/checkpoints/last/{file}").items():
                    if name != "__metadata__":
                        self.assertIn(entry["dtype"], ["F64", "I64"], name)

    def test_callbacks_that_change_weights(self):
        self.run_kiln(*SHORT, *CNN, "callbacks=[stochastic_weight_averaging,flight_recorder]", "trainer.max_epochs=3", "scheduler=constant",
                      "callbacks.stochastic_weight_averaging.swa_epoch_start=1", "trainer.accumulate_grad_batches=2",
                      "trainer.gradient_clip_val=1.0", "trainer.track_grad_norm=true", "trainer.detect_anomaly=true")
        self.run_kiln(*SHORT, *CNN, "callbacks=pruning")

    def test_models_of_texts(self):
        self.write("texts.csv", "text,label\n" + "a fine warm film,good\na dull film,bad\n" * 8)
        data = ["datamodule=labeled_text", "datamodule.files.train=[texts.csv]", "task=classification", "optimizer=adam",
                "trainer.max_epochs=1", "trainer.precision=64-true"]
        for model in ["text_cnn", "text_lstm"]:
            self.run_kiln(*data, f"model={model}", "model.dropout=0.1")
        self.run_kiln(*data, "model=text_cnn", "model.word_dropout=0.1")

    def test_evaluate_and_predict(self):
        self.run_kiln(*SHORT, *CNN, "kiln.run.dir=run")
        losses = {}
        for precision in ["64-true", "32-true"]:
            out, _ = self.run_kiln("eval", "ckpt_path=run", f"trainer.precision={precision}", f"kiln.run.dir=eval-{precision}",
                                   program="kiln")
            losses[precision] = json.loads(out)["metrics"]["test/loss"]
        self.assertNotEqual(losses["32-true"], losses["64-true"])
        self.assertAlmostEqual(losses["32-true"], losses["64-true"], delta=1e-5)
        self.run_kiln("predict", "ckpt_path=run", "split=test", "output=rows.csv", program="kiln")
        with open(self.path("rows.csv"), newline="") as f:
            self.assertEqual(len(list(csv.DictReader(f))), 32)

    def test_weights_go_between_precisions(self):
        self.run_kiln(*SHORT, *CNN, "trainer.precision=32-true", "kiln.run.dir=narrow")
        out, _ = self.run_kiln(*SHORT, *CNN, "kiln.run.dir=wide", "ckpt_path=narrow", "trainer.max_epochs=3")
        self.assertIn("weights and optimizer state were f32 in the checkpoint and are f64 now", out)
        self.run_kiln(*SHORT, *CNN, "trainer.precision=32-true", "kiln.run.dir=back", "ckpt_path=wide", "trainer.max_epochs=4")
        self.assertEqual(self.header("back/checkpoints/last/model.safetensors")["conv1.weight"]["dtype"], "F32")


if __name__ == "__main__":
    main()
