"""docs/security.md, sentence by sentence: what a run folder from elsewhere may do."""
import json
import os
import shutil
import stat
import unittest

from kilntest import TINY, Case, build_plugin


class Stranger(Case):
    """Folders that another user made: what this user allowed is not allowed there, and the other way round."""

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

    def test_no_plugin_is_run_to_look_at_it(self):
        """A shared object without the entry is refused before its constructors run."""
        source = self.write("no.c", '#include <stdio.h>\n#include <stdlib.h>\n'
                            '__attribute__((constructor)) static void run(void) '
                            '{ fclose(fopen(getenv("KILN_TEST_MARK"), "w")); }\n')
        os.system(f"cc -shared -fPIC -o {self.path('no.so')} {source}")
        _, err = self.as_user("me", "--plugin", "./no.so", status=1, mark="mark")
        self.assertIn("no kiln_plugin_v1 symbol", err)
        self.assertFalse(os.path.exists(self.path("mark")))


if __name__ == "__main__":
    unittest.main()
