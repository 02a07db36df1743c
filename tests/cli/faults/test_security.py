"""Each promise of docs/security.md: what a run folder from elsewhere may do."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import pickle
import shutil
import subprocess
import unittest

from kilntest import TINY, Case, build_plugin


class Stranger(Case):
    """Folders that another user made: what this user allowed is not allowed there, and the other way round."""

    def read(self, path):
        with open(self.path(path), errors="replace") as file:
            return file.read()

    def as_user(self, name, *args, mark=None, **options):
        env = {**os.environ, "XDG_STATE_HOME": self.path("state", name)}
        if mark is not None:
            env["KILN_TEST_MARK"] = self.path(mark)
        return self.run_kiln(*args, env=env, **options)


class Plugins(Stranger):
    def setUp(self):
        super().setUp()
        self.plugin = build_plugin("crashes", self.dir, "-DMARK_IN_CONSTRUCTOR")
        self.callback = "+callbacks.plain={_target_: crashes, how: nothing}"

    def train(self, user, *args):
        self.as_user(user, "--plugin", "./crashes.so", *TINY, self.callback, "kiln.run.dir=run", *args)

    def refuse(self, *args, program="kiln"):
        """Not loaded, not even its constructor; the message says which plugin and how to allow it."""
        _, err = self.as_user("me", *args, program=program, status=1, mark="mark")
        self.assertFalse(os.path.exists(self.path("mark")), "the plugin was loaded")
        for text in self.plugin, "is not loaded", f"--plugin {self.plugin}", "--trust":
            self.assertIn(text, err)

    def test_run_of_another(self):
        self.train("other", "trainer.max_steps=4")
        for command in (["train", "resume=run"], ["train", "resume=run", "--help"],
                        ["train", "resume=run/checkpoints/last"], ["train", "resume=run", "--cfg", "job"],
                        ["train", "resume=run", "--plan"], ["eval", "ckpt_path=run"], ["eval", "run"],
                        ["predict", "ckpt_path=run", "split=test"]):
            with self.subTest(command):
                self.refuse(*command)

    def test_allowed(self):
        self.train("other", "trainer.max_steps=4")
        self.as_user("me", "eval", "ckpt_path=run", "--trust", program="kiln", mark="first")
        self.assertTrue(os.path.exists(self.path("first")))
        self.as_user("me", "eval", "ckpt_path=run", program="kiln")  # it is the same file
        self.as_user("third", "eval", "ckpt_path=run", "--plugin", self.plugin, program="kiln")
        self.as_user("third", "train", "resume=run", program="kiln")

    def test_own_run(self):
        self.train("me", "trainer.max_steps=4")
        self.as_user("me", "resume=run", "trainer.max_steps=8")
        self.as_user("me", "eval", "ckpt_path=run", program="kiln")
        shutil.move(self.path("run"), self.path("moved"))
        self.as_user("me", "resume=moved", "trainer.max_steps=10")

    def test_changed_file(self):
        self.train("me", "trainer.max_steps=4")
        with open(self.plugin, "ab") as file:
            file.write(b"\0")
        self.refuse("train", "resume=run")
        self.as_user("me", "resume=run", "--plugin", self.plugin)

    def test_file_that_anybody_may_write(self):
        self.train("me", "trainer.max_steps=4")
        os.chmod(self.plugin, 0o777)
        _, err = self.as_user("me", "resume=run", status=1)
        self.assertIn("anybody may write to it", err)

    def test_what_is_remembered_where_others_write(self):
        self.train("me", "trainer.max_steps=4")
        os.chmod(self.path("state/me/kiln/allowed"), 0o777)
        self.refuse("train", "resume=run")

    def test_replay(self):
        self.as_user("other", "--plugin", "./crashes.so", *TINY, self.callback, "kiln.run.dir=run", "test=false",
                     "callbacks=[default,flight_recorder]", "lr=1e6", "scheduler=constant", status=3)
        self.refuse("replay", "run")

    def test_sweep(self):
        self.as_user("other", "-m", "--plugin", "./crashes.so", *TINY, self.callback, "kiln.sweep.dir=sweep", "seed=1,2")
        self.refuse("-m", "--resume", "sweep", program="train")
        self.as_user("other", "-m", "--resume", "sweep")
        self.as_user("me", "-m", "--resume", "sweep", "--trust")

    def test_commands_that_load_none(self):
        self.train("other", "trainer.max_steps=4")
        for command in ["explain", "run", "model"], ["ckpt", "ls", "run"], ["ckpt", "verify", "run"], ["top", "--once"]:
            self.as_user("me", *command, program="kiln", mark="mark")
            self.assertFalse(os.path.exists(self.path("mark")), command)

    def test_no_plugin_is_run_to_look_at_it(self):
        """A shared object without the entry is refused before its constructors run."""
        source = self.write("no.c", '#include <stdio.h>\n#include <stdlib.h>\n'
                            '__attribute__((constructor)) static void run(void) '
                            '{ fclose(fopen(getenv("KILN_TEST_MARK"), "w")); }\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.path("no.so"), source], check=True)
        _, err = self.as_user("me", "--plugin", "./no.so", status=1, mark="mark")
        self.assertIn("no kiln_plugin_v1 symbol", err)
        self.assertFalse(os.path.exists(self.path("mark")))


class Outputs(Stranger):
    """Where the config of a run folder may write."""

    def train(self, user, *args, **options):
        self.as_user(user, *TINY, "kiln.run.dir=run", "trainer.max_steps=4", *args, **options)

    def outside(self, path, says):
        self.assertEqual(self.read(path), "precious", "it was overwritten")
        self.assertIn(path, says)
        self.assertIn("--trust", says)

    def test_prediction_writer(self):
        precious = self.write("home/precious.jsonl", "precious")
        self.train("other", "+callbacks.prediction_writer={_target_: callback/prediction_writer, path: %s}" % precious)
        for command in ["predict", "run", "split=test"], ["predict", "ckpt_path=run/checkpoints/last", "split=test"]:
            _, err = self.as_user("me", *command, program="kiln", status=1)
            self.outside(precious, err)
            self.assertIn("callbacks.prediction_writer.path", err)
        self.as_user("me", "predict", "run", "split=test", "output=mine.jsonl", program="kiln")
        self.assertIn("class", self.read("mine.jsonl"))
        self.as_user("me", "predict", "run", "split=test", "--trust", program="kiln")
        self.assertIn("class", self.read(precious))

    def test_path_that_hides(self):
        """Behind interpolations, and in the folder by its name alone."""
        precious = self.write("home/precious.jsonl", "precious")
        self.train("other", "+callbacks.prediction_writer={_target_: callback/prediction_writer, path: '${my_path}'}",
                   "+my_path=%s" % precious)
        _, err = self.as_user("me", "predict", "run", "split=test", program="kiln", status=1)
        self.outside(precious, err)
        for path in "run/../home/precious.jsonl", "run/new/../../home/precious.jsonl", "~/precious.jsonl":
            _, err = self.as_user("me", "predict", "run", "split=test", f"my_path='{path}'", program="kiln", status=1)
            self.assertIn("outside of that folder", err)
        os.symlink(self.path("home"), self.path("run/inside"))
        _, err = self.as_user("me", "predict", "run", "split=test", f"my_path={self.path('run/inside/precious.jsonl')}",
                              program="kiln", status=1)
        self.assertEqual(self.read(precious), "precious")
        self.as_user("me", "predict", "run", "split=test", f"my_path={self.path('run/predicted.jsonl')}", program="kiln")

    def test_other_outputs(self):
        for option, command in [
            ("+callbacks.plots2={_target_: callback/prediction_plots, dir: %s}", ["eval", "run"]),
            ("+callbacks.spikes={_target_: callback/spike_detection, exclude_batches_path: %s}",
             ["train", "resume=run", "trainer.max_steps=8"]),
        ]:
            with self.subTest(option):
                for name in "run", "elsewhere":
                    shutil.rmtree(self.path(name), ignore_errors=True)
                self.train("other", option % self.path("elsewhere"))
                shutil.rmtree(self.path("elsewhere"), ignore_errors=True)
                _, err = self.as_user("me", *command, program="kiln", status=1)
                self.assertIn(self.path("elsewhere"), err)
                self.assertFalse(os.path.exists(self.path("elsewhere")))
                self.as_user("other", *command, program="kiln")  # whose own run it is

    def test_sweep(self):
        option = "+callbacks.spikes={_target_: callback/spike_detection, exclude_batches_path: %s}" % self.path("all.json")
        self.as_user("other", "-m", *TINY, option, "kiln.sweep.dir=sweep", "seed=1,2", "trainer.max_steps=4")
        with open(self.path("sweep/journal.jsonl")) as journal:
            lines = [line for line in journal if '"ended"' not in line]
        self.write("sweep/journal.jsonl", "".join(lines))
        out, err = self.as_user("me", "-m", "--resume", "sweep", status=1)
        self.assertIn("outside of that folder", out + err + self.read("sweep/0/train.log"))
        self.as_user("other", "-m", "--resume", "sweep", "--retry-failed")

    def test_checkpoint_names(self):
        _, err = self.as_user("me", *TINY, "kiln.run.dir=run", "callbacks.model_checkpoint.filename='../../x'", status=1)
        self.assertIn("filename", err)


class Configs(Stranger):
    """What a config may do, whosever it is."""

    def test_no_value_runs_code(self):
        self.write("tag.yaml", 'a: !!python/object/apply:os.system ["touch pwned"]\n')
        self.refused("--config-path", ".", "--config-name", "tag", "--cfg", "job", says=["tag.yaml:1:4", "tag"])
        self.refused("--cfg", "job", "--resolve", "+x=${eval:\"open('pwned','w')\"}", says=["eval"])
        self.refused("--cfg", "job", "--resolve", "+x=${system:ls}", says=["system"])

    def test_environment_is_stored(self):
        env = {**os.environ, "KILN_SECRET": "s3cret"}
        self.run_kiln(*TINY, "trainer.max_steps=1", "+note=${oc.env:KILN_SECRET}", "kiln.run.dir=run", env=env)
        for name in "run/.kiln/config.yaml", "run/checkpoints/last/config.yaml":
            self.assertIn("s3cret", self.read(name))

    def test_limits(self):
        rows = ["a0: &a0 [%s]" % ",".join("x" * 10)]
        rows += ["a%d: &a%d [%s]" % (i, i, ",".join(["*a%d" % (i - 1)] * 10)) for i in range(1, 10)]
        self.write("laugh.yaml", "\n".join(rows) + "\n")
        self.write("deep.yaml", "a: " + "[" * 100 + "]" * 100 + "\n")
        for name in "laugh", "deep":
            self.refused("--config-path", ".", "--config-name", name, "--cfg", "job", says=[name + ".yaml"])

    def test_own_config_writes_where_it_says(self):
        self.run_kiln(*TINY, "trainer.max_steps=1", "kiln.run.dir=run")
        self.run_kiln("predict", "run", "split=test", "output=../%s/out.jsonl" % os.path.basename(self.dir),
                      program="kiln")
        self.assertIn("class", self.read("out.jsonl"))

    def test_weights_are_no_code(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("touch pwned",)
        self.write("weights.pt", pickle.dumps(Evil()))
        self.refused(*TINY, "weights=weights.pt", says=["weights.pt", "safetensors"])


class Links(Stranger):
    """A run folder that was unpacked may hold links to anything."""

    def setUp(self):
        super().setUp()
        self.precious = self.write("home/precious", "precious\n")
        self.as_user("other", *TINY, "kiln.run.dir=run", "trainer.max_steps=4",
                     "logger=[csv,jsonl]")

    def replace(self, name, target):
        path = self.path("run", name)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
        os.symlink(target, path)

    def test_every_file_and_folder(self):
        shutil.copytree(self.path("run"), self.path("whole"), symlinks=True)
        names = ["train.log", "metrics.csv", "metrics.jsonl", "summary.json", ".kiln/journal.jsonl", ".kiln/config.yaml",
                 "checkpoints", "plots", ".kiln", "metrics.csv.tmp"]
        for name in names:
            with self.subTest(name):
                shutil.rmtree(self.path("run"))
                shutil.copytree(self.path("whole"), self.path("run"), symlinks=True)
                self.replace(name, self.path("home") if "." not in name[1:] else self.precious)
                out, err = self.as_user("me", "resume=run", "trainer.max_steps=8", status=1)
                self.assertEqual(sorted(os.listdir(self.path("home"))), ["precious"])
                self.assertEqual(self.read(self.precious), "precious\n")

    def test_message(self):
        self.replace("train.log", self.precious)
        _, err = self.as_user("me", "resume=run", "trainer.max_steps=8", status=1)
        for text in "run/train.log", "a link that leads out of the folder", "--trust":
            self.assertIn(text, err)

    def test_files_are_opened_without_links(self):
        """Also with --trust, which follows links to folders."""
        self.replace("train.log", self.precious)
        _, err = self.as_user("me", "resume=run", "trainer.max_steps=8", "--trust", status=4)
        self.assertIn("a symbolic link, which is not followed here", err)
        self.assertEqual(self.read(self.precious), "precious\n")

    def test_own_checkpoints_on_another_disk(self):
        shutil.move(self.path("run/checkpoints"), self.path("disk"))
        os.symlink(self.path("disk"), self.path("run/checkpoints"))
        self.as_user("me", "resume=run", "trainer.max_steps=8", "--trust")

    def test_fifo(self):
        os.remove(self.path("run/train.log"))
        os.mkfifo(self.path("run/train.log"))
        _, err = self.as_user("me", "resume=run", "trainer.max_steps=8", status=4, timeout=60)
        self.assertIn("train.log: not a regular file", err)

    def test_folder_of_a_sweep(self):
        self.as_user("other", "-m", *TINY, "kiln.sweep.dir=sweep", "seed=1,2", "trainer.max_steps=4")
        shutil.move(self.path("sweep/0"), self.path("victim"))
        os.symlink(self.path("victim"), self.path("sweep/0"))
        _, err = self.as_user("me", "-m", "--resume", "sweep", status=1)
        self.assertIn("a link that leads out of the folder", err)


if __name__ == "__main__":
    unittest.main()
