"""Runs on a backend whose memory nothing but its own kernels and copies can touch (tests/plugins/protected.c): any other
access crashes. Its runs leave the same bytes as those of the CPU backend."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import signal
import tempfile

from kilntest import ROOT, SHORT, Case, build_plugin, main, read

TRAIN = ["datamodule.train_count=96", "datamodule.val_count=32", "datamodule.test_count=32", "datamodule.batch_size=16",
         "trainer.threads=2", "trainer.max_epochs=2"]
RESNET = ["model=resnet", "model.depth=18", "model.stem=small"]
# Callbacks that fit any network; ema and stochastic_weight_averaging exclude each other.
CALLBACKS = ["batch_size_finder", "device_stats", "early_stopping", "flight_recorder", "gradient_accumulation_scheduler",
             "histograms", "lr_finder", "pruning", "spike_detection", "throughput", "timer"]
SHORTENED = ["callbacks.histograms.every_n_steps=1", "callbacks.throughput.window_size=2", "trainer.log_every_n_steps=1",
             "callbacks.gradient_accumulation_scheduler.scheduling.0=2", "callbacks.lr_finder.num_training_steps=12",
             "callbacks.batch_size_finder.max_trials=2"]


class Protected(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._plugins = tempfile.TemporaryDirectory(prefix="kiln-plugins-")
        cls._protected = build_plugin("protected", cls._plugins.name)
        cls._gpt = build_plugin("gpt", cls._plugins.name, "-I", ROOT, os.path.join(ROOT, "tests/nets/gpt.c"))

    @classmethod
    def tearDownClass(cls):
        cls._plugins.cleanup()
        super().tearDownClass()

    def run_on(self, accelerator, *args, **options):
        return self.run_kiln("--plugin", self._protected, "--plugin", self._gpt, *args, f"trainer.accelerator={accelerator}",
                             **options)

    def checkpoints(self, run):
        root = self.path(run, "checkpoints")
        return {os.path.join(name, file): read(os.path.join(root, name, file)) for name in sorted(os.listdir(root))
                if not os.path.islink(os.path.join(root, name)) for file in os.listdir(os.path.join(root, name))
                if file.endswith(".safetensors")}

    def check_same(self, name, *args):
        """The same checkpoints on both backends."""
        for accelerator in ["cpu", "protected"]:
            self.run_on(accelerator, *args, f"kiln.run.dir={name}-{accelerator}")
        want, got = self.checkpoints(f"{name}-cpu"), self.checkpoints(f"{name}-protected")
        self.assertTrue(want)
        self.assertEqual(sorted(got), sorted(want))
        for file in want:
            self.assertEqual(got[file], want[file], file)

    def test_a_read_crashes(self):
        process = self.start("--plugin", self._protected, *TRAIN, "model=mlp", "+callbacks.peek._target_=callback/peek",
                             "trainer.accelerator=protected")
        _, err = process.communicate(timeout=120)
        if "AddressSanitizer" not in err:  # which reports it, too, and ends as it likes
            self.assertEqual(process.returncode, -signal.SIGSEGV)
        self.assertIn("SIGSEGV", err)
        self.assertIn("callbacks.peek", err)

    def test_kinds_of_runs(self):
        tiny = [*TRAIN, "test=false"]
        kinds = {
                "mixed": ["trainer.precision=bf16-mixed"],
                "true": ["trainer.precision=bf16-true", "callbacks=ema", "callbacks.ema.decay=0.9"],
                "value": ["model=mlp", "trainer.gradient_clip_val=0.01", "trainer.gradient_clip_algorithm=value", "optimizer=lamb"],
                "accumulate": ["trainer.accumulate_grad_batches=4", "trainer.gradient_clip_val=0.1", "optimizer=adamw",
                               "callbacks.model_checkpoint.every_n_train_steps=1", "callbacks.model_checkpoint.save_top_k=-1"],
                "statistics": ["model=resnet", "model.depth=18", "model.stem=small", "datamodule.train_count=32",
                               "callbacks=stochastic_weight_averaging", "trainer.max_epochs=3",
                               "callbacks.stochastic_weight_averaging.swa_epoch_start=1"],
                "manual": ["experiment=gan/digits", "datamodule.train_count=64", "trainer.max_epochs=1"],
                "checked": ["trainer.detect_anomaly=true", "trainer.track_grad_norm=true"],
                "profiled": ["model=mlp", "trainer.profiler=simple"]}
        for name in ["true", "accumulate", "manual"] if SHORT else kinds:
            with self.subTest(name):
                self.check_same(name, *tiny, *kinds[name])

    def every_callback(self, average, *more):
        names = ["default", *CALLBACKS, *more, average]
        return [f"callbacks=[{','.join(names)}]", *SHORTENED, "callbacks.early_stopping.monitor=val/loss",
                "logger=[csv,jsonl,tensorboard]"]

    def test_resnet_with_every_callback(self):
        self.needs_tensorboard()
        self.check_same("resnet", *TRAIN, *RESNET, "datamodule.train_count=32", *self.every_callback("ema", "finetuning", "sample_images"),
                        "callbacks.finetuning.phases.backbone.unfreeze_at_epoch=1")

    def test_lstm_with_every_callback(self):
        self.needs_tensorboard()
        self.check_same("lstm", *TRAIN, "model=lstm", *self.every_callback("stochastic_weight_averaging", "sample_images"),
                        "callbacks.stochastic_weight_averaging.swa_epoch_start=1")

    def test_gpt_with_every_callback(self):
        self.needs_tensorboard()
        self.check_same("gpt", "datamodule._target_=counting", "task._target_=gpt", "+task.optimizer=${optimizer}",
                        "optimizer=adamw", "trainer.threads=2", "trainer.max_epochs=2",
                        *self.every_callback("ema"), "~callbacks.prediction_plots", "callbacks.model_checkpoint.monitor=val/loss",
                        "test=false")

    def test_resume_evaluate_and_predict(self):
        tables = []
        for accelerator in ["cpu", "protected"]:
            run = f"run-{accelerator}"
            self.run_on(accelerator, *TRAIN, "callbacks=ema", "optimizer=adam", f"kiln.run.dir={run}", "test=false")
            self.run_on(accelerator, *TRAIN, "callbacks=ema", "optimizer=adam", f"kiln.run.dir={run}", "ckpt_path=last",
                        "trainer.max_epochs=3")
            out, _ = self.run_kiln("eval", "--plugin", self._protected, f"ckpt_path={run}/checkpoints/last", program="kiln")
            self.assertIn("accuracy", out)
            self.run_kiln("predict", "--plugin", self._protected, f"ckpt_path={run}/checkpoints/last", "split=test",
                          f"output={run}.csv", program="kiln")
            tables.append(read(self.path(f"{run}.csv")))
        self.assertEqual(*tables)
        self.assertEqual(self.checkpoints("run-cpu"), self.checkpoints("run-protected"))


if __name__ == "__main__":
    main()
