"""resume=RUN, kiln ckpt and kiln verify-resume, as users call them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import filecmp
import json
import os
import shutil

from kilntest import SHORT, TINY, Braked, Live, live, main, read, read_json

LONG = [*TINY, "trainer.max_epochs=40", "callbacks.model_checkpoint.every_n_train_steps=2"]


class Runs(Braked):
    def facts(self, run):
        return [json.loads(line) for line in read(self.path(run, ".kiln/journal.jsonl"), "r").splitlines()]

    def rows(self, run):
        rows = list(csv.reader(read(self.path(run, "metrics.csv"), "r").splitlines()))
        at = rows[0].index("wall_time")
        return [row[:at] + row[at + 1:] for row in rows]

    def kill_when(self, run, path, *args):
        self.brake(10)
        process = self.start(*args, f"kiln.run.dir={run}")
        self.wait_for(f"{run}/{path}", process)
        process.kill()
        process.communicate()
        self.let_go()

    def assert_same(self, a, b):
        self.assertEqual(sorted(os.listdir(self.path(a, "checkpoints"))), sorted(os.listdir(self.path(b, "checkpoints"))))
        for link in ["best", "last"]:
            self.assertEqual(os.readlink(self.path(a, "checkpoints", link)), os.readlink(self.path(b, "checkpoints", link)))
        for name in os.listdir(self.path(a, "checkpoints/last/")):
            self.assertTrue(filecmp.cmp(self.path(a, "checkpoints/last", name), self.path(b, "checkpoints/last", name),
                                        shallow=False), name)
        self.assertEqual(self.rows(a), self.rows(b))


class Resume(Runs):
    def test_a_killed_run_goes_on_in_its_folder(self):
        args = LONG + self.braked
        self.run_kiln(*args, "kiln.run.dir=whole")
        for path in [".kiln/config.yaml", "checkpoints/last", "metrics.csv"]:
            self.kill_when("run", path, *args)
            begun = os.path.exists(self.path("run/.kiln/journal.jsonl")) and self.facts("run") != []
            out, _ = self.run_kiln("--plugin", self._brake, "resume=run")
            self.assertIn("run folder run\n", out)
            self.assert_same("whole", "run")
            events = [fact["event"] for fact in self.facts("run")]
            self.assertEqual([events[0], events.count("resumed"), events[-1]], ["started", begun, "ended"])
            shutil.rmtree(self.path("run"))

    def test_killed_in_the_validation_that_max_steps_leaves_to_do(self):
        args = [*TINY, *self.braked, "trainer.max_steps=5", "test=false", "trainer.num_sanity_val_steps=0", "~callbacks.plots",
                "callbacks.model_checkpoint.every_n_train_steps=1", "callbacks.model_checkpoint.save_top_k=-1",
                "callbacks.model_checkpoint.monitor=null"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        self.hold(after=5)
        process = self.start(*args, "kiln.run.dir=run")
        self.wait_for("run/checkpoints/epoch=000-step=5", process)
        process.kill()
        process.communicate()
        self.let_go()
        self.run_kiln("resume=run")
        self.assert_same("whole", "run")
        before = self.rows("run")
        self.run_kiln("resume=run")
        self.assertEqual(self.rows("run"), before)

    def test_killed_after_the_last_validation(self):
        """The picture of it is there when the checkpoint is that knows of it."""
        args = [*TINY, "model.hidden=[8]", "datamodule.test_count=200000", "kiln.run.dir=run"]
        process = self.start(*args)
        self.wait_for(lambda: (at := live(self.path("run"))) and at.phase == Live.TEST, process)
        self.wait_for("run/checkpoints/epoch=001-step=16", process)
        process.kill()
        process.communicate()
        self.run_kiln("resume=run", "datamodule.test_count=64")
        self.run_kiln(*args, "kiln.run.dir=whole", "datamodule.test_count=64")
        self.assertEqual(*[sorted(os.listdir(self.path(run, "plots"))) for run in ["run", "whole"]])
        self.assertEqual(*[read(self.path(run, "plots/val_samples.png")) for run in ["run", "whole"]])

    def test_a_finished_run_has_nothing_left_to_do(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        before = read(self.path("run/checkpoints/last/state.json"))
        self.run_kiln("resume=run")
        self.assertEqual(read(self.path("run/checkpoints/last/state.json")), before)

    def test_plugins_are_remembered(self):
        self.run_kiln(*TINY, *self.braked, "kiln.run.dir=run")
        self.assertEqual([plugin["path"] for plugin in self.facts("run")[0]["plugins"]], [os.path.realpath(self._brake)])
        self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertEqual(read_json(self.path("run/summary.json"))["epochs"], 3)
        for command in ["eval", "predict"]:
            self.run_kiln(command, "ckpt_path=run", *(["split=test"] if command == "predict" else []), program="kiln")

    def test_overrides_on_top_are_recorded(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        self.run_kiln("resume=run/checkpoints/last", "trainer.max_epochs=3")
        self.assertEqual(read_json(self.path("run/summary.json"))["epochs"], 3)
        self.assertEqual(self.facts("run")[-4]["overrides"], ["trainer.max_epochs=3"])
        self.assertIn("max_epochs: 3", read(self.path("run/.kiln/config.yaml"), "r"))
        self.assertIn("trainer.max_epochs=3", self.run_kiln("explain", "run", "trainer.max_epochs", program="kiln")[0])
        self.run_kiln("resume=run", "trainer.max_epochs=4")  # the newest run's own, and more
        self.assertEqual(read_json(self.path("run/summary.json"))["epochs"], 4)

    def test_refusals(self):
        _, err = self.run_kiln("resume=none", status=1)
        self.assertIn("no such folder", err)
        self.run_kiln(*TINY, "kiln.run.dir=run")
        _, err = self.run_kiln("-m", "resume=run", status=2)
        self.assertIn("--resume", err)
        for word, text in [("ckpt_path=last", "resume=RUN/checkpoints/NAME"), ("weights=last", "it has its weights"),
                           ("kiln.run.dir=other", "it stays in its folder")]:
            self.assertIn(text, self.run_kiln("resume=run", word, status=2)[1])

    def test_an_override_reaches_all_that_refers_to_it(self):
        """Also when the run went on before: what refers to what is kept."""
        self.run_kiln(*TINY, "kiln.run.dir=run", "scheduler=constant", "trainer.log_every_n_steps=1")
        for epochs, word in [(3, "lr=0.5"), (4, "lr=0.25"), (5, "optimizer.lr=0.125")]:
            self.run_kiln("resume=run", word, f"trainer.max_epochs={epochs}")
            header, *rows = csv.reader(read(self.path("run/metrics.csv"), "r").splitlines())
            rates = [row[header.index("lr")] for row in rows if row[header.index("lr")]]
            self.assertEqual(float(rates[-1]), float(word.split("=")[1]))
            config = read(self.path("run/checkpoints/last/config.yaml"), "r")
            self.assertEqual(config.count(f"lr: {word.split('=')[1]}\n"), 3 if epochs < 5 else 2)
        _, err = self.run_kiln("resume=run", "model.hidden=[8]", "trainer.max_epochs=6", status=1)
        self.assertIn("does not fit the model", err)

    def test_a_link_that_had_its_first_name_only(self):
        options = [*TINY, "callbacks.model_checkpoint.monitor=null"]
        self.run_kiln(*options, "kiln.run.dir=run")
        self.run_kiln(*options, "callbacks.model_checkpoint.save_top_k=2", "kiln.run.dir=more")
        before = sorted(os.listdir(self.path("run/checkpoints")))
        shutil.copytree(self.path("more/checkpoints/epoch=000-step=8"), self.path("run/checkpoints/epoch=000-step=8"))
        os.symlink("epoch=000-step=8", self.path("run/checkpoints/last.4711.tmp"))
        self.run_kiln("resume=run")
        self.assertEqual(sorted(os.listdir(self.path("run/checkpoints"))), before)

    def test_files_of_a_killed_process_are_removed(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        before = sorted(os.listdir(self.path("run")))
        for name in ["summary.json.4711.tmp", ".kiln/job.yaml.4711.tmp", "plots/loss.png.4711.tmp"]:
            self.write(f"run/{name}", "half")
        self.write("run/plots/mine.tmp", "")
        self.run_kiln("resume=run")
        self.assertEqual(sorted(os.listdir(self.path("run"))), before)
        left = os.listdir(self.path("run/.kiln")) + os.listdir(self.path("run/plots"))
        self.assertEqual([name for name in left if name.endswith(".tmp")], ["mine.tmp"])

    def test_damaged_origins_do_not_block(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        for text in ["", "a: [", "- 1", "trainer: 3"]:
            self.write("run/.kiln/origins.yaml", text)
            self.assertIn("the origins of this run's values are lost", self.run_kiln("resume=run")[0])
            self.assertEqual(read(self.path("run/.kiln/origins.yaml"), "r"), text)
            self.assertIn("are lost", self.run_kiln("resume=run", "trainer.max_epochs=2")[0])
            self.assertNotIn("are lost", self.run_kiln("resume=run")[0])
            self.assertIn("trainer.max_epochs=2", self.run_kiln("explain", "run", "trainer.max_epochs", program="kiln")[0])
        os.remove(self.path("run/.kiln/origins.yaml"))
        self.run_kiln("resume=run")

    def test_a_run_that_begins_anew_logs_the_same(self):
        """Hyperparameters, too, which come from the run's own config then."""
        self.run_kiln(*TINY, "logger=tensorboard", "kiln.run.dir=whole")
        shutil.copytree(self.path("whole"), self.path("run"), symlinks=True)
        shutil.rmtree(self.path("run/checkpoints"))
        self.run_kiln("resume=run")
        self.assertEqual(*[read_json(self.path(run, "checkpoints/last/state.json"))["loggers"] for run in ["whole", "run"]])

    def test_the_number_of_threads_stays(self):
        self.run_kiln(*TINY[:-1], "trainer.threads=2", "kiln.run.dir=run")
        self.run_kiln("resume=run", "trainer.threads=0", "trainer.max_epochs=3")
        self.assertEqual(read_json(self.path("run/checkpoints/last/state.json"))["threads"], 2)


class Looking(Runs):
    def kiln(self, *args, status=0):
        return self.run_kiln("ckpt", *args, program="kiln", status=status)

    def test_ls_show_verify_diff(self):
        self.run_kiln(*TINY, "kiln.run.dir=outputs/run", "callbacks.model_checkpoint.save_top_k=2")
        out, _ = self.kiln("ls")
        self.assertIn("epoch=000-step=8", out)
        self.assertRegex(out, r"epoch=001-step=16 +1 +16 .* last")
        out, _ = self.kiln("show", "outputs/run")
        for text in ["model/mlp", "layers.0.weight", "12,730 values", "optimizer.momentum_buffer.layers.0.weight"]:
            self.assertIn(text, out)
        self.assertIn("whole", self.kiln("verify", "last", "best")[0])
        a, b = (f"outputs/run/checkpoints/epoch={i:03d}-step={8 * i + 8}" for i in range(2))
        self.assertEqual(self.kiln("diff", a, a)[0], "equal\n")
        out, _ = self.kiln("diff", a, b, status=1)
        for text in ["layers.0.weight: ", "state: step: 8 and 16"]:
            self.assertIn(text, out)
        _, err = self.kiln("veryfi", status=2)
        self.assertIn("did you mean verify?", err)

    def test_damage_is_named(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        path = self.path("run/checkpoints/last/model.safetensors")
        data = bytearray(read(path))
        data[-5] ^= 4  # the last tensor
        self.write("run/checkpoints/last/model.safetensors", bytes(data))
        _, err = self.kiln("verify", "run", status=1)
        self.assertIn("model.safetensors", err)
        self.assertRegex(err, r"tensor layers\.\d\.(weight|bias)")
        path = self.path("run/checkpoints/last/state.json")
        self.write("run/checkpoints/last/state.json", read(path).replace(b'"epoch": 1', b'"epoch": 0'))
        _, err = self.kiln("verify", "run", status=1)
        self.assertIn("state.json: is damaged", err)

    def test_newer_formats_say_what_to_do(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        path = "run/checkpoints/last/state.json"
        self.write(path, read(self.path(path)).replace(b'"format": 3', b'"format": 9'))
        _, err = self.kiln("show", "run", status=1)
        self.assertIn("use a newer kiln", err)


    def test_the_screen_and_explain_know_where_values_came_from(self):
        first, _ = self.run_kiln(*TINY, "kiln.run.dir=run")
        again, _ = self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertIn("task vision  datamodule digits  model mlp  optimizer sgd", again)
        changed = [line for line in first.splitlines() if "argument" in line]
        self.assertEqual([line.replace("  2     argument 7", "  3     argument 1") for line in changed],
                         [line for line in again.splitlines() if "argument" in line])
        self.assertNotIn("config.yaml", again)
        self.run_kiln("resume=run", "trainer.max_epochs=3")
        out, _ = self.run_kiln("explain", "run", "trainer.max_epochs", program="kiln")
        self.assertEqual([line.split()[-1] for line in out.splitlines() if "argument" in line],
                         ["`trainer.max_epochs=3`", "`trainer.max_epochs=2`"])


class Verify(Runs):
    ARGS = [*TINY, "trainer.max_epochs=4", "trainer.accumulate_grad_batches=3", "model.dropout=0.1",
            "callbacks.model_checkpoint.every_n_train_steps=1"]

    def test_every_kind_of_moment(self):
        kills = 8 if SHORT else 10
        out, _ = self.run_kiln("verify-resume", "-n", str(kills), *self.ARGS, program="kiln", timeout=900)
        self.assertIn("ends with the same bytes", out)
        for text in ["in validation", "while saving", "in a group of batches", "again when resumed"]:
            self.assertIn(text, out)

    def test_what_loggers_wrote_counts(self):
        args = [*TINY, "logger=[csv,jsonl,tensorboard]", "trainer.log_every_n_steps=2"]
        out, _ = self.run_kiln("verify-resume", "-n", "7", *args, program="kiln", timeout=900)
        self.assertIn("ends with the same bytes", out)
        # Another hyperparameter in each run that begins in another second.
        out, err = self.run_kiln("verify-resume", "-n", "1", *args, "datamodule.train_count=8192", "trainer.max_epochs=6",
                                 "+note='${now:%s}'", program="kiln", timeout=900, status=1)
        self.assertIn("metrics.jsonl: line 1: ", out + err)
        self.assertIn("tensorboard/events.out.tfevents.0.kiln: event ", out + err)

    def test_clocks_are_refused(self):
        for option in ["trainer.max_time=5s", "trainer.val_check_interval=3s", "trainer.enable_checkpointing=false"]:
            _, err = self.run_kiln("verify-resume", *TINY, option, program="kiln", status=2)
            self.assertIn(option.split("=")[0].split(".")[1], err)

    def test_a_run_that_fails_is_shown(self):
        _, err = self.run_kiln("verify-resume", "datamodule=mnist", "datamodule.root=none", program="kiln", status=1)
        self.assertIn("the undisturbed run fails", err)
        self.assertIn("none is not there", err)


main()
