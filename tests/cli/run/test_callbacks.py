"""Callbacks that save checkpoints, stop runs, average weights and write files."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import math
import os
import struct
import time

from kilntest import SHORT, TINY, Case, main, png, read, read_json


def safetensors(path):
    """{name: (dtype, shape, bytes)} of a file."""
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: (entry["dtype"], entry["shape"], data[8 + size:][slice(*entry["data_offsets"])])
            for name, entry in head.items() if name != "__metadata__"}


def floats(entry):
    return struct.unpack(f"<{len(entry[2]) // 4}f", entry[2])


class Keeping(Case):
    def checkpoints(self, run="run"):
        return sorted(name for name in os.listdir(self.path(run, "checkpoints"))
                      if not os.path.islink(self.path(run, "checkpoints", name)))

    def metrics(self, run="run"):
        with open(self.path(run, "metrics.csv"), newline="") as file:
            return list(csv.DictReader(file))

    def log(self, run="run"):
        """train.log without its times."""
        return "".join(line[20:] for line in read(self.path(run, "train.log"), "r").splitlines(True))

    def test_names_hold_metrics(self):
        out, _ = self.run_kiln(*TINY, 'callbacks.model_checkpoint.filename="{epoch:02d}-{val/loss:.3f}-{monitor:.2f}"',
                               "callbacks.model_checkpoint.save_top_k=-1", "callbacks.model_checkpoint.verbose=true",
                               "kiln.run.dir=run")
        rows = [row for row in self.metrics() if row["val/loss"]]
        self.assertEqual(self.checkpoints(),
                         [f"epoch={int(row['epoch']):02d}-val_loss={float(row['val/loss']):.3f}"
                          f"-val_accuracy={float(row['val/accuracy']):.2f}" for row in rows])
        log = self.log()
        for name in self.checkpoints():
            self.assertIn(f"saved {name}, one of all", log)
        # it is found by its name, too
        self.run_kiln("eval", f"ckpt_path=run/checkpoints/{self.checkpoints()[0]}", program="kiln")

    def test_wrong_names_are_refused(self):
        for name, says in [("{epoch}-{val/acuracy}", ["val/accuracy"]), ("{epok}", ["neither epoch, step nor monitor"]),
                           ("{step", ["each { begins a value"]), ("{val/loss:d}", ["whole numbers"]),
                           ("last", ["which are links"]), (".x", ["begin with a dot"])]:
            self.refused(*TINY, f'callbacks.model_checkpoint.filename="{name}"', says=["callbacks.model_checkpoint", *says])
        self.refused(*TINY, 'callbacks.model_checkpoint.filename="{monitor}"', "callbacks.model_checkpoint.monitor=null",
                     says=["{monitor} needs the option monitor"])
        self.refused(*TINY, "callbacks.model_checkpoint.monitor=val/acuracy", says=["val/accuracy"])

    def test_weights_only(self):
        self.run_kiln(*TINY, "callbacks.model_checkpoint.save_weights_only=true", "callbacks.model_checkpoint.save_top_k=2",
                      "kiln.run.dir=run")
        first = "run/checkpoints/epoch=000-step=8"
        self.assertFalse(os.path.exists(self.path(first, "trainer.safetensors")))
        self.run_kiln("eval", f"ckpt_path={first}", program="kiln")
        self.refused(*TINY, f"ckpt_path={first}", "kiln.run.dir=more", says=["weights"])
        self.assertFalse(os.path.exists(self.path("run/checkpoints/last/trainer.safetensors")))
        self.refused(*TINY, "ckpt_path=run", "trainer.max_epochs=3", says=["weights"])

    def test_by_time(self):
        self.run_kiln(*TINY, "+callbacks.often={_target_: callback/model_checkpoint, train_time_interval: 0s, save_top_k: -1, "
                      'filename: "often-{step}"}', "kiln.run.dir=run")
        self.assertTrue({f"often-step={step}" for step in range(1, 16)} <= set(self.checkpoints()))

    def test_two_savers_and_a_resume(self):
        options = [*TINY, "scheduler=constant", "callbacks.model_checkpoint.save_top_k=2",
                   "+callbacks.steps={_target_: callback/model_checkpoint, every_n_train_steps: 3, save_top_k: 2, "
                   'monitor: train/loss, filename: "s{step}", auto_insert_metric_name: false}']
        self.run_kiln(*options, "trainer.max_epochs=4", "kiln.run.dir=whole")
        self.run_kiln(*options, "trainer.max_epochs=4", "trainer.max_steps=13", "kiln.run.dir=cut")
        self.run_kiln(*options, "trainer.max_epochs=4", "ckpt_path=cut", "kiln.run.dir=cut")
        whole = read_json(self.path("whole/checkpoints/last/state.json"))["callbacks"]
        cut = read_json(self.path("cut/checkpoints/last/state.json"))["callbacks"]
        self.assertEqual(whole["callbacks.steps"], cut["callbacks.steps"])
        self.assertEqual(self.checkpoints("whole"), self.checkpoints("cut"))

    def test_two_savers_of_one_name(self):
        """Neither loses what it keeps to the other; at one step they have one folder."""
        self.run_kiln(*TINY, "scheduler=constant", "callbacks.model_checkpoint.filename=same", "trainer.max_epochs=3",
                      "callbacks.model_checkpoint.monitor=lr", "callbacks.model_checkpoint.mode=max",
                      "+callbacks.steps={_target_: callback/model_checkpoint, every_n_train_steps: 5, save_top_k: -1, "
                      "filename: same}", "kiln.run.dir=run")
        steps = {read_json(self.path("run/checkpoints", name, "state.json"))["step"] for name in self.checkpoints()}
        self.assertEqual(steps, {5, 8, 10, 15, 20, 24})
        self.assertIn("same", self.checkpoints())

    def test_each_task_names_its_monitor(self):
        for task, metric in [("vision", "val/accuracy"), ("classification", "val/accuracy"), ("multilabel_classification", "val/micro_f1"),
                             ("detection", "val/map"), ("gan", "val/distance"), ("language_model", "val/loss"),
                             ("regression", "val/rmse"), ("retrieval", "val/mrr"), ("segmentation", "val/iou"),
                             ("tagging", "val/slot_f1"), ("text_recognition", "val/cer"), ("translation", "val/loss"), ("trees", "null")]:
            for key in "model_checkpoint", "early_stopping":
                out, _ = self.run_kiln(f"task={task}", "callbacks=early_stopping", "--explain", f"callbacks.{key}.monitor")
                self.assertIn(f"callbacks.{key}.monitor: {metric}\n", out)
        self.run_kiln(*TINY, "task.monitor=val/loss", "kiln.run.dir=run")
        self.assertTrue(os.path.samefile(self.path("run/checkpoints/best"), self.path("run/checkpoints/last")))
        self.refused(*TINY, "task.monitor=val/los",
                     says=["`task.monitor=val/los`: task.monitor=val/los: this run logs no such metric; did you mean val/loss?",
                           "through ${oc.select:task.monitor,val/loss} in ", "try task.monitor=val/loss\n"])

    def test_a_monitor_that_does_not_fit(self):
        self.refused(*TINY, "task=gan", "task.monitor=val/accuracy", says=["try task.monitor=val/distance\n"])

    def test_the_metric_declares_its_direction(self):
        """monitor= alone keeps the best checkpoint, whichever way the metric gets better."""
        save_all = ["callbacks.model_checkpoint.save_top_k=-1", "trainer.max_epochs=3", "lr=0.5"]
        for metric, best in [("val/loss", min), ("val/accuracy", max)]:
            run = metric.replace("/", "-")
            self.run_kiln(*TINY, *save_all, f"callbacks.model_checkpoint.monitor={metric}", f"kiln.run.dir={run}")
            rows = [row for row in self.metrics(run) if row[metric]]
            value = best(float(row[metric]) for row in rows)
            first = next(row for row in rows if float(row[metric]) == value)
            self.assertEqual(os.readlink(self.path(run, "checkpoints/best")),
                             f"epoch={int(first['epoch']):03d}-step={first['step']}")
            summary = read_json(self.path(run, "summary.json"))["metrics"]
            self.assertEqual([summary["val/loss"]["mode"], summary["val/accuracy"]["mode"], summary["lr"]["mode"],
                              summary["lr"]["best"]], ["min", "max", None, None])

    def test_a_mode_that_contradicts_the_metric(self):
        """Refused before anything runs, by whatever monitors it."""
        early = "+callbacks.early={_target_: early_stopping, monitor: val/accuracy, mode: min}"
        for arguments, where in [(["callbacks.model_checkpoint.monitor=val/loss", "callbacks.model_checkpoint.mode=max"],
                                  "callbacks.model_checkpoint: monitor=val/loss mode=max: val/loss gets better as it "
                                  "falls; write callbacks.model_checkpoint.mode=min, or leave mode out"),
                                 ([early], "callbacks.early: monitor=val/accuracy mode=min: val/accuracy gets better "
                                           "as it rises; write callbacks.early.mode=max"),
                                 (["scheduler=plateau", "scheduler.mode=max"],
                                  "task.scheduler: monitor=val/loss mode=max: val/loss gets better as it falls; "
                                  "write task.scheduler.mode=min")]:
            self.refused(*TINY, *arguments, says=[where])
            self.refused(*TINY, *arguments, "--plan", says=[where])
        self.assertFalse(os.path.exists(self.path("outputs")))

    def test_a_metric_that_declares_no_direction(self):
        """It needs a mode; then it is monitored like others."""
        gan = ["task=gan", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
               "trainer.max_epochs=1", "trainer.threads=1", "callbacks.model_checkpoint.monitor=val/taken_for_real"]
        self.refused(*gan, says=["val/taken_for_real does not declare whether a larger or a smaller value is better; "
                                 "write callbacks.model_checkpoint.mode=max or callbacks.model_checkpoint.mode=min"])
        self.run_kiln(*gan, "callbacks.model_checkpoint.mode=max", "kiln.run.dir=run")
        self.assertTrue(os.path.islink(self.path("run/checkpoints/best")))

    def test_epochs_that_never_come(self):
        swa = "callbacks.stochastic_weight_averaging.swa_epoch_start="
        out, err = self.run_kiln(*TINY, "callbacks=stochastic_weight_averaging", swa + "9", "kiln.run.dir=swa")
        self.assertIn("swa_epoch_start=9 is after the last of the 2 epochs", out + err)
        self.run_kiln(*TINY, "callbacks.learning_rate_monitor=null", "kiln.run.dir=plain")
        self.assertEqual(*[read(self.path(run, "checkpoints/last/model.safetensors")) for run in ["swa", "plain"]])
        self.refused(*TINY, "callbacks=stochastic_weight_averaging", swa + "0", says=["epochs count from 1"])
        out, err = self.run_kiln(*TINY, "callbacks=pruning", "callbacks.pruning.epochs=[7]")
        self.assertIn("there is no epoch 7", out + err)
        self.refused(*TINY, "callbacks.early_stopping.patience=3", says=["select it with callbacks=early_stopping"])
        self.refused(*TINY, "trainer.inference_mode=true", says=["`kiln show trainer` lists its options"])

    def test_kills_leave_no_trace(self):
        out, _ = self.run_kiln(
            "verify-resume", "-n", "2" if SHORT else "8", *TINY, "datamodule.batch_size=16", "trainer.max_epochs=4",
            "trainer.accumulate_grad_batches=3", "trainer.val_check_interval=5", "callbacks.model_checkpoint.save_top_k=2",
            "callbacks.model_checkpoint.every_n_train_steps=4",
            'callbacks.model_checkpoint.filename="{epoch}-{step}-{monitor:.2f}"',
            "+callbacks.ema={_target_: callback/ema, decay: 0.9, update_every_n_steps: 3, update_starting_at_step: 5}",
            "+callbacks.early={_target_: callback/early_stopping, patience: 6}",
            "+callbacks.steps={_target_: callback/model_checkpoint, every_n_train_steps: 3, save_top_k: 2, "
            'monitor: train/loss, filename: "s-{step}"}', program="kiln")
        self.assertIn("ends with the same bytes", out)

    def test_stopping(self):
        out, err = self.run_kiln(*TINY, "callbacks=early_stopping", "callbacks.early_stopping.stopping_threshold=0.05",
                                 "callbacks.early_stopping.verbose=true", "kiln.run.dir=run")
        summary = read_json(self.path("run/summary.json"))
        self.assertEqual(summary["status"], "stopped")
        self.assertIn("better than stopping_threshold=0.05", summary["reason"])
        self.assertIn("the best so far", self.log())
        self.refused(*TINY, "callbacks=early_stopping", "callbacks.early_stopping.monitor=val/los", says=["val/loss"])
        self.refused(*TINY, "callbacks=early_stopping", "callbacks.early_stopping.monitor=null",
                     says=["callbacks.early_stopping.monitor=null: expected a metric; it logs: train/loss, "])
        self.run_kiln(*TINY, "callbacks=early_stopping", "callbacks.early_stopping.monitor=val/los",
                      "callbacks.early_stopping.strict=false", "kiln.run.dir=loose")
        self.assertIn("this run logs no val/los", self.log("loose"))

    def test_time_is_over_and_comes_again(self):
        timed = [*TINY, "callbacks=timer", "trainer.max_epochs=100000", "kiln.run.dir=run", "test=false"]
        start = time.time()
        self.run_kiln(*timed, "callbacks.timer.duration=1s")
        self.assertLess(time.time() - start, 60)
        first = read_json(self.path("run/summary.json"))
        self.assertEqual(first["status"], "stopped")
        self.assertIn("duration is 1 s", first["reason"])
        self.run_kiln(*timed, "callbacks.timer.duration=1s", "ckpt_path=run")
        self.assertEqual(read_json(self.path("run/summary.json"))["steps"], first["steps"], "the time was used up")
        self.run_kiln(*timed, "callbacks.timer.duration=3s", "ckpt_path=run")
        more = read_json(self.path("run/summary.json"))
        self.assertGreater(more["steps"], first["steps"])
        # the limit of a session is that session's
        self.run_kiln(*TINY, "trainer.max_epochs=100000", "kiln.run.dir=run", "test=false", "trainer.max_time=1s",
                      "ckpt_path=run")
        self.assertGreater(read_json(self.path("run/summary.json"))["steps"], more["steps"])

    def test_rates_of_groups(self):
        self.run_kiln(*TINY, "optimizer=adamw", "+optimizer.groups.biases={params: ['*.bias'], lr_scale: 0.5, weight_decay: 0.0}",
                      "optimizer.weight_decay=0.01", "callbacks.learning_rate_monitor.log_momentum=true",
                      "callbacks.learning_rate_monitor.log_weight_decay=true", "trainer.log_every_n_steps=1",
                      "kiln.run.dir=run")
        row = next(row for row in self.metrics() if row["lr"])
        self.assertAlmostEqual(float(row["lr/biases"]), 0.5 * float(row["lr"]))
        self.assertEqual([float(row[name]) for name in ["lr-momentum", "lr/biases-momentum", "lr-weight_decay",
                                                        "lr/biases-weight_decay"]], [0.9, 0.9, 0.01, 0.0])

    def test_rates_of_optimizers(self):
        self.run_kiln("experiment=gan/digits", "datamodule.train_count=128", "datamodule.val_count=64", "datamodule.size=12",
                      "task.generator.hidden=[16]", "task.discriminator.hidden=[16]", "trainer.max_epochs=1", "trainer.threads=1",
                      "task.generator_optimizer.lr=0.003", "callbacks.learning_rate_monitor.log_momentum=true",
                      "trainer.log_every_n_steps=1", "test=false", "kiln.run.dir=run")
        row = next(row for row in self.metrics() if row["lr-generator"])
        self.assertEqual([float(row[name]) for name in ["lr-generator", "lr-discriminator", "lr-generator-momentum"]],
                         [0.003, 0.0005, 0.5])

    def test_a_schedule_of_epochs_is_logged_with_epochs(self):
        self.run_kiln(*TINY, "scheduler=step", "scheduler.step_size=1", "trainer.log_every_n_steps=1", "kiln.run.dir=run")
        self.assertEqual([(row["epoch"], math.isclose(float(row["lr"]), 0.05 * 0.1**int(row["epoch"])))
                          for row in self.metrics() if row["lr"]], [("0", True), ("1", True)])

    def test_buffers_of_an_average(self):
        for use in (True, False):
            run = f"run{use}"
            self.run_kiln(*TINY, "model=cnn", "~model.hidden", "callbacks=ema", "callbacks.ema.decay=0.5",
                          f"callbacks.ema.use_buffers={str(use).lower()}", f"kiln.run.dir={run}", "test=false")
            model = safetensors(self.path(run, "checkpoints/last/model.safetensors"))
            weights = safetensors(self.path(run, "checkpoints/last/trainer.safetensors"))
            means = [name for name in model if name.endswith("running_mean")]
            self.assertTrue(means)
            for name in means:
                self.assertEqual(floats(model[name]) == floats(weights["weights." + name]), not use, name)

    def test_summary_by_depth(self):
        layers = {}
        for depth in (0, 1, -1):
            self.run_kiln(*TINY, "trainer.max_epochs=0", f"callbacks.model_summary.max_depth={depth}",
                          f"kiln.run.dir=run{depth}", "test=false")
            log = self.log(f"run{depth}")
            self.assertIn("12,730 parameters, 0.05 MB", log)
            layers[depth] = [line.split()[0] for line in log.splitlines() if line.startswith("layers")]
        self.assertEqual(layers, {0: [], 1: ["layers"], -1: ["layers.0", "layers.1"]})
        self.run_kiln(*TINY, "trainer.max_epochs=0", "trainer.precision=bf16-true", "kiln.run.dir=half", "test=false")
        self.assertIn("12,730 parameters, 0.03 MB", self.log("half"))
        out, _ = self.run_kiln(*TINY, "trainer.max_epochs=0", "+optimizer.groups.first={params: [layers.0.*], lr_scale: 0}",
                               "kiln.run.dir=frozen", "test=false")
        log = self.log("frozen")
        self.assertRegex(log, r"(?m)^layer +operation +output +parameters +trained +FLOPs a step$")
        self.assertRegex(log, r"(?m)^layers\.0 +linear +\[32, 16\] +12,560 +0 ")
        self.assertIn("of them 12,560 frozen", log)
        # parameters that are of no layer of the table count, too: 17 positions and a class token
        self.run_kiln(*TINY[2:], "trainer.max_epochs=0", "model=vit", "model.width=16", "model.layers=1", "model.heads=2",
                      "model.mlp_dim=16", "model.embed.patch_size=7", "kiln.run.dir=vit", "test=false",
                      "+optimizer.groups.first={params: ['*pos_embedding', '*class_token'], lr_scale: 0}")
        self.assertIn("2,986 parameters, 0.01 MB, of them 288 frozen", self.log("vit"))


class Predicting(Case):
    def setUp(self):
        super().setUp()
        self.run_kiln(*TINY, "kiln.run.dir=run")
        self.write("images/a.png", png(28, 28))
        self.write("images/b, c.png", png(28, 28, (9, 90, 200)))
        self.write("images/d.png", png(40, 30))

    def predict(self, *args, status=0):
        return self.run_kiln("predict", "ckpt_path=run", "input=images", *args, program="kiln", status=status)[0]

    def test_formats_agree(self):
        lines = [json.loads(line) for line in self.predict().splitlines()]
        self.assertEqual([line["file"] for line in lines], ["images/a.png", "images/b, c.png", "images/d.png"])
        self.assertEqual(self.predict("output=all.csv"), "")
        self.predict("output=all.jsonl")
        self.predict("output=all.safetensors")
        self.assertEqual([json.loads(line) for line in read(self.path("all.jsonl"), "r").splitlines()], lines)
        with open(self.path("all.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["file"], row["class"], row["error"]) for row in rows],
                         [(line["file"], line["class"], "") for line in lines])
        tensors = safetensors(self.path("all.safetensors"))
        self.assertEqual(tensors["probabilities"][:2], ("F32", [3, 10]))
        self.assertEqual(struct.unpack("<3q", tensors["index"][2]), (0, 1, 2))
        self.assertNotIn("label", tensors)
        values = floats(tensors["probabilities"])
        for i, (row, line) in enumerate(zip(rows, lines)):
            for j in range(10):
                self.assertAlmostEqual(float(row[f"probabilities/{j}"]), line["probabilities"][j], places=8)
                self.assertAlmostEqual(values[10 * i + j], line["probabilities"][j], places=8)

    def test_a_file_for_each_batch(self):
        self.predict("output=part.safetensors", "datamodule.batch_size=2", "callbacks.prediction_writer.interval=batch")
        sizes = [safetensors(self.path(f"part-{i:06d}.safetensors"))["probabilities"][1] for i in (1, 2)]
        self.assertEqual(sizes, [[2, 10], [1, 10]])
        self.assertFalse(os.path.exists(self.path("part.safetensors")))

    def test_what_cannot_be_read(self):
        self.write("images/bad.png", "nope")
        lines = [json.loads(line) for line in self.predict(status=1).splitlines()]
        self.assertIn("not an image", lines[2 if lines[2]["file"].endswith("bad.png") else 1]["error"])
        self.assertEqual(len(lines), 4)
        self.predict("output=all.csv", status=1)
        with open(self.path("all.csv"), newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual({len(row) for row in rows}, {15})
        self.assertEqual(sum(bool(row[2]) for row in rows[1:]), 1)

    def test_sets_of_a_split(self):
        """Each in a file of its own, or with its name in the line; the first one's is that of the file."""
        sets = ["+datamodule.test_sets={night: {noise: 0.9, count: 5}, plain: {count: 3}}", "datamodule.test_count=4"]
        predict = ["predict", "ckpt_path=run", *sets, "datamodule.batch_size=2"]
        lines = [json.loads(line) for line in self.run_kiln(*predict, "split=test", program="kiln")[0].splitlines()]
        self.assertEqual([(line.get("set"), line["index"]) for line in lines],
                         [(None, i) for i in range(4)] + [("night", i) for i in range(5)] +
                         [("plain", i) for i in range(3)])
        self.run_kiln(*predict, "split=test", "output=to/all.jsonl", program="kiln", status=1)
        os.mkdir(self.path("to"))
        self.run_kiln(*predict, "split=test", "output=to/all.csv", program="kiln")
        self.run_kiln(*predict, "split=test", "output=to/all.safetensors", program="kiln")
        self.assertEqual(sorted(os.listdir(self.path("to"))),
                         [f"all{name}.{end}" for name in ("-night", "-plain", "") for end in ("csv", "safetensors")])
        at = 0
        for name, count in [("", 4), ("-night", 5), ("-plain", 3)]:
            with open(self.path(f"to/all{name}.csv"), newline="") as file:
                rows = list(csv.DictReader(file))
            values = floats(safetensors(self.path(f"to/all{name}.safetensors"))["probabilities"])
            self.assertEqual(len(rows), count)
            for i, row in enumerate(rows):
                for j in range(10):
                    self.assertAlmostEqual(float(row[f"probabilities/{j}"]), lines[at]["probabilities"][j], places=8)
                    self.assertAlmostEqual(values[10 * i + j], lines[at]["probabilities"][j], places=8)
                at += 1
        self.run_kiln(*predict, "split=test", "output=part.safetensors", "callbacks.prediction_writer.interval=batch",
                      program="kiln")
        self.assertEqual(sorted(name for name in os.listdir(self.path(".")) if name.startswith("part")),
                         ["part-000001.safetensors", "part-000002.safetensors"] +
                         [f"part-{name}-{i:06d}.safetensors" for name, n in (("night", 3), ("plain", 2))
                          for i in range(1, n + 1)])
        limited, _ = self.run_kiln(*predict, "split=test", "trainer.limit_predict_batches=1", program="kiln")
        self.assertEqual(len(limited.splitlines()), 6)  # of each set
        self.refused(*predict, "split=test", "callbacks.prediction_writer.format=csv", program="kiln",
                     says=["one table, and there are 3 sets", "format=jsonl"])

    def test_refusals(self):
        self.refused("predict", "ckpt_path=run", program="kiln", says=["input or split is missing"], status=2)
        self.refused("predict", "ckpt_path=run", "input=images", "split=test", program="kiln",
                     says=["both input and split are given"], status=2)
        self.refused("predict", "ckpt_path=run", "split=tests", program="kiln", says=["train, val or test"], status=2)
        self.refused("predict", "ckpt_path=run", "split=val", "datamodule.val_count=0", program="kiln",
                     says=["no val samples (or limit_predict_batches=0)"])
        self.refused("predict", "ckpt_path=run", "input=images", "callbacks.prediction_writer.format=safetensors",
                     program="kiln", says=["safetensors need a file"])
        self.refused("predict", "ckpt_path=run", "input=images", "output=no/where/x.csv", program="kiln",
                     says=["no/where/x.csv"])


if __name__ == "__main__":
    main()
