"""How long a run trains, validates and logs: the trainer's options on the drawn digits."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import os

from kilntest import TINY, Case, main, png, read, read_json

FAST = TINY + ["test=false", "logger=csv"]  # 8 batches of training an epoch, 2 of validation


class Loop(Case):
    def rows(self, folder):
        return list(csv.DictReader(read(self.path(os.path.join(folder, "metrics.csv")), "r").splitlines()))

    def summary(self, folder):
        return read_json(self.path(os.path.join(folder, "summary.json")))

    def steps_of(self, folder, metric):
        return [int(row["step"]) for row in self.rows(folder) if row.get(metric)]

    def test_validation_within_an_epoch(self):
        self.run_kiln(*FAST, "trainer.val_check_interval=0.5", "kiln.run.dir=half")
        self.assertEqual(self.steps_of("half", "val/loss"), [4, 8, 12, 16])
        self.run_kiln(*FAST, "trainer.val_check_interval=3", "trainer.check_val_every_n_epoch=null",
                      "kiln.run.dir=count")
        self.assertEqual(self.steps_of("count", "val/loss"), [3, 6, 9, 12, 15])
        self.run_kiln(*FAST, "trainer.val_check_interval=1us", "trainer.max_epochs=1", "kiln.run.dir=time")
        self.assertEqual(self.steps_of("time", "val/loss"), [1, 2, 3, 4, 5, 6, 7, 8])
        for none in ["0", "0.0", "0s"]:
            self.refused(*FAST, f"trainer.val_check_interval={none}", says=["limit_val_batches=0"])

    def test_accumulation(self):
        self.run_kiln(*FAST, "trainer.accumulate_grad_batches=3", "trainer.log_every_n_steps=1", "kiln.run.dir=run")
        self.assertEqual(self.summary("run")["steps"], 6)  # 3 + 3 + 2 batches, twice

    def test_resume_between_the_batches_of_a_step(self):
        """8 batches in groups of 3: an undisturbed run, and one that was saved and ended in each epoch's middle."""
        group = FAST + ["trainer.accumulate_grad_batches=3", "model.dropout=0.2", "scheduler=constant"]
        self.run_kiln(*group, "kiln.run.dir=whole")
        self.run_kiln(*group, "trainer.max_steps=4", "kiln.run.dir=part")
        self.run_kiln(*group, "ckpt_path=part", "kiln.run.dir=part")
        self.assertEqual(read(self.path("whole/checkpoints/last/model.safetensors")),
                         read(self.path("part/checkpoints/last/model.safetensors")))

    def test_accumulation_that_changes(self):
        """8 batches: groups of 4, then of 3 with a rest, then single ones."""
        schedule = "+callbacks.acc={_target_: gradient_accumulation_scheduler, scheduling: {0: 4, 1: 3, 2: 1}}"
        words = FAST + [schedule, "trainer.max_epochs=3", "trainer.log_every_n_steps=1", "scheduler=cosine", "lr=1.0"]
        self.run_kiln(*words, "kiln.run.dir=run")
        self.assertEqual(self.summary("run")["steps"], 2 + 3 + 8)
        rates = [float(row["lr"]) for row in self.rows("run") if row.get("lr")]
        self.assertAlmostEqual(rates[0], 1.0)
        self.assertLess(rates[-1], 0.02)  # half a cosine of 13 steps is over
        self.refused(*words, "trainer.accumulate_grad_batches=2", says=["callbacks.acc", "accumulate_grad_batches"])
        self.refused(*FAST, "+callbacks.acc={_target_: gradient_accumulation_scheduler, scheduling: {first: 4}}",
                     says=["callbacks.acc.scheduling", "first"])

    def test_several_validation_sets(self):
        sets = ["+datamodule.val_sets={noisy: {noise: 0.9, count: 64}, plain: {distortion: 0, noise: 0, count: 40}}",
                "+datamodule.test_sets={noisy: {noise: 0.9, count: 64}}"]
        self.run_kiln(*TINY, *sets, "logger=csv", "kiln.run.dir=run",
                      "callbacks.model_checkpoint.monitor=val/accuracy/plain")
        metrics = {name: each["last"]["value"] for name, each in self.summary("run")["metrics"].items()}
        self.assertGreater(metrics["val/loss/noisy"], metrics["val/loss/plain"])
        self.assertIn("test/accuracy/noisy", metrics)
        self.assertEqual(len(self.steps_of("run", "val/loss/plain")), 2)
        out, _ = self.run_kiln("eval", "ckpt_path=run", program="kiln")
        self.assertIn('"test/loss/noisy"', out)
        self.refused(*TINY, *sets, "callbacks.model_checkpoint.monitor=val/accuracy/nosy",
                     says=["did you mean val/accuracy/noisy"])

    def test_reload(self):
        """Files that come while a run trains are in its later epochs; data that does not change is not loaded anew."""
        for i, name in enumerate(["cat", "dog"]):
            for k in range(4):
                self.write(f"data/train/{name}/{k}.png", png(8, 8, (90 * i, 20 * k, 9)))
                self.write(f"data/val/{name}/{k}.png", png(8, 8, (90 * i, 20 * k, 9)))
        words = ["datamodule=image_folder", "datamodule.root=data", "model=mlp", "model.hidden=[8]", "batch_size=2",
                 "trainer.max_epochs=4", "trainer.threads=1", "test=false", "logger=csv"]
        self.run_kiln(*words, "trainer.max_epochs=2", "kiln.run.dir=run")
        self.assertEqual(self.summary("run")["steps"], 8)
        self.write("data/train/cat/new.png", png(8, 8))
        self.write("data/train/dog/new.png", png(8, 8))
        reload = "trainer.reload_dataloaders_every_n_epochs=1"
        self.run_kiln(*words, reload, "ckpt_path=run", "kiln.run.dir=run")
        self.assertEqual(self.summary("run")["steps"], 8 + 2 * 5)
        self.refused(*TINY, reload, says=["datamodule digits", "reload_dataloaders_every_n_epochs=1"])

    def test_default_root_dir(self):
        self.run_kiln(*TINY, "trainer.default_root_dir=here/runs", "test=false")
        day = os.listdir(self.path("here/runs"))[0]
        self.assertTrue(os.path.exists(self.path("here/runs", day, os.listdir(self.path("here/runs", day))[0],
                                                 "summary.json")))
        self.assertFalse(os.path.exists(self.path("outputs")))
        self.run_kiln(*TINY, "trainer.default_root_dir=here/runs", "test=false", "ckpt_path=last",
                      "trainer.max_epochs=3")
        self.run_kiln("eval", "ckpt_path=last", "trainer.default_root_dir=here/runs", program="kiln")

    def test_limits_are_shares_or_counts(self):
        self.run_kiln(*FAST, "trainer.limit_train_batches=0.5", "kiln.run.dir=half")
        self.assertEqual(self.summary("half")["steps"], 8)
        self.run_kiln(*FAST, "trainer.limit_train_batches=1", "kiln.run.dir=one")
        self.assertEqual(self.summary("one")["steps"], 2)
        self.refused(*FAST, "trainer.limit_train_batches=0.1",
                     says=["trainer.limit_train_batches=0.1 of 8 batches is less than one: write at least 0.125"])
        self.refused(*FAST, "trainer.limit_train_batches=-1", says=["a count (3) or a fraction from 0.0 to 1.0"])
        self.refused(*FAST, "trainer.limit_val_batches=1.5", says=["a fraction from 0.0 to 1.0"])
        self.refused(*FAST, "trainer.val_check_interval=9", says=["more than the 8 batches of an epoch"])
        self.refused(*FAST, "trainer.val_check_interval=0.5", "trainer.check_val_every_n_epoch=null",
                     says=["write a number of batches"])

    def test_overfit_batches(self):
        self.run_kiln(*FAST, "trainer.overfit_batches=2", "kiln.run.dir=run")
        self.assertEqual(self.summary("run")["steps"], 4)

    def test_fast_dev_run(self):
        self.run_kiln(*TINY, "callbacks=early_stopping", "trainer.fast_dev_run=true", "kiln.run.dir=run")
        summary = self.summary("run")
        self.assertEqual((summary["steps"], summary["status"]), (1, "finished"))
        self.assertIn("test/accuracy", summary["metrics"])
        self.assertFalse(os.path.exists(self.path("run/metrics.csv")))
        self.assertEqual(os.listdir(self.path("run/checkpoints")), [])
        self.run_kiln(*TINY, "trainer.fast_dev_run=3", "kiln.run.dir=three")
        self.assertEqual(self.summary("three")["steps"], 3)
        self.run_kiln(*TINY, "trainer.fast_dev_run=20", "trainer.check_val_every_n_epoch=null", "kiln.run.dir=short")
        self.assertEqual(self.summary("short")["steps"], 8)  # an epoch has no more
        self.assertIn("val/loss", self.summary("short")["metrics"])
        self.run_kiln(*TINY, "trainer.fast_dev_run=3", "trainer.overfit_batches=1", "kiln.run.dir=over")
        self.assertEqual(self.summary("over")["steps"], 1)

    def test_without_checkpoints_bar_and_summary(self):
        out, err = self.run_kiln(*FAST, "trainer.enable_checkpointing=false", "trainer.enable_progress_bar=false",
                                 "trainer.enable_model_summary=false", "kiln.run.dir=run")
        self.assertEqual(os.listdir(self.path("run/checkpoints")), [])
        self.assertNotIn("epoch 0", out + err)

    def test_barebones(self):
        self.run_kiln(*FAST, "trainer.barebones=true", "kiln.run.dir=run")
        self.assertEqual(self.summary("run")["metrics"], {})
        self.assertEqual(self.summary("run")["steps"], 16)
        self.refused(*FAST, "trainer.barebones=true", "trainer.detect_anomaly=true", says=["trainer.detect_anomaly"])

    def test_max_time_and_min_steps(self):
        self.run_kiln(*FAST, "trainer.max_time=0s", "kiln.run.dir=run")
        summary = self.summary("run")
        self.assertEqual((summary["steps"], summary["status"]), (1, "stopped"))
        self.assertIn("max_time", summary["reason"])
        self.run_kiln(*FAST, "trainer.max_time=0s", "trainer.min_steps=3", "kiln.run.dir=min")
        self.assertEqual(self.summary("min")["steps"], 8)

    def test_deterministic_is_not_a_choice(self):
        self.refused(*FAST, "trainer.deterministic=false", says=["trainer.deterministic"])


if __name__ == "__main__":
    main()
