"""Which plugins are loaded, from where, and what becomes of that: kiln list, the run folder, a resumed run with other code."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hashlib
import json
import os
import shutil
import subprocess
import tempfile

from kilntest import ROOT, TINY, Case, main, read, read_json

# A callback that says so when it is loaded, and when it is used.
CODE = """
#include <kiln.h>
#include <stdio.h>
__attribute__((constructor)) static void loaded(void) { FILE *f = fopen("LOADED", "a"); if (f) { fputs("NAME\\n", f); fclose(f); } }
static KilnStatus hook(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{ (void)self; (void)err; kiln_trainer_print(trainer, "NAME-REVISION was here"); return KILN_OK; }
static const KilnCallbackOps ops = { .on_train_start = hook };
static const KilnComponent component = { .kind = KILN_KIND_CALLBACK, .name = "NAME", .summary = "x", .ops.callback = &ops };
static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)
"""


class Loading(Case):
    @classmethod
    def setUpClass(cls):
        cls._built = tempfile.TemporaryDirectory(prefix="kiln-plugins-")
        for name in "one", "two", "three":
            for revision in "ab":
                code = CODE.replace("NAME", name).replace("REVISION", revision)
                subprocess.run(["cc", "-std=c17", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{ROOT}/src", "-x", "c", "-", "-o",
                                f"{cls._built.name}/{name}.{revision}"], input=code, text=True, check=True)

    @classmethod
    def tearDownClass(cls):
        cls._built.cleanup()

    def setUp(self):
        super().setUp()
        os.environ.pop("KILN_PLUGIN_PATH", None)

    def put(self, name, path, revision="a"):
        """The plugin NAME at `path`."""
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(f"{self._built.name}/{name}.{revision}", path)
        return os.path.realpath(path)

    def loaded(self, *args, program="kiln", **options):
        """The plugins that a command loaded."""
        if os.path.exists(self.path("LOADED")):
            os.remove(self.path("LOADED"))
        out, err = self.run_kiln(*args, program=program, **options)
        names = read(self.path("LOADED"), "r").split() if os.path.exists(self.path("LOADED")) else []
        return names, out, err

    def plugins(self, run):
        return read_json(self.path(run, "summary.json"))["plugins"]

    def use(self, *names):
        return ["callbacks=none", "trainer.limit_train_batches=1", "test=false", *TINY,
                *(f"+callbacks.{name}._target_=callback/{name}" for name in names)]


class Sources(Loading):
    def test_all_of_them(self):
        """Each file once, whoever names it; what is listed and recorded says who."""
        one, two, three = self.put("one", "a/one.so"), self.put("two", "b/two.so"), self.put("three", "plugins/three.so")
        self.write("conf/config.yaml", "kiln: {plugins: ['b/two.so']}\n")
        env = {**os.environ, "KILN_PLUGIN_PATH": f"nowhere:{self.path('a')}:b"}
        names, out, _ = self.loaded("list", "--plugin", "plugins/three.so", env=env)
        self.assertEqual(names, ["three", "two", "one"])
        for path, source, name in (one, "KILN_PLUGIN_PATH", "one"), (two, "kiln.plugins", "two"), (three, "--plugin", "three"):
            part = out[out.index(f"  {os.path.relpath(path, os.path.realpath(self.dir))}\n"):]
            self.assertRegex(part, rf"(?s)^.*?components +callback/{name}\n +from +{source}, built for kiln [\d.]+\n"
                                   rf" +sha256 +{hashlib.sha256(read(path)).hexdigest()}\n")
        out, _ = self.run_kiln("--info", "plugins", env=env)
        self.assertIn(three + "\n  of ./plugins, built for kiln ", out)

    def test_recorded(self):
        path = self.put("one", "plugins/one.so")
        out, _ = self.run_kiln(*self.use("one"), "kiln.run.dir=run")
        self.assertIn("one-a was here", out)
        entry, = self.plugins("run")
        self.assertEqual(entry, {"path": path, "sha256": hashlib.sha256(read(path)).hexdigest(), "from": "./plugins",
                                 "kiln": entry["kiln"], "components": ["callback/one"]})
        with open(self.path("run/.kiln/journal.jsonl")) as journal:
            self.assertEqual(json.loads(journal.readline())["plugins"], [entry])
        # Without plugins the list is there, and empty.
        shutil.rmtree(self.path("plugins"))
        self.run_kiln(*self.use(), "kiln.run.dir=plain")
        self.assertEqual(self.plugins("plain"), [])

    def test_folder_of_each(self):
        """plugins/NAME/NAME.so, as `kiln plugin new` writes it, with its conf/."""
        self.put("one", "plugins/one/one.so")
        self.put("two", "plugins/one/two.so")
        for other in "plugins/README.md", "plugins/conf/model/mine.yaml", "plugins/three/three.c":
            self.write(other, "")
        self.write("plugins/one/conf/callbacks/one.yaml", "one:\n  _target_: callback/one\n")
        names, out, _ = self.loaded(*self.use()[1:], "callbacks=one", "kiln.run.dir=run", program="train")
        self.assertEqual(names, ["one"])
        self.assertIn("one-a was here", out)

    def test_config(self):
        """kiln.plugins of the primary config, or of an argument, which replaces it; not of other files."""
        self.put("one", "x/one.so")
        self.put("two", "x/two.so")
        self.write("conf/config.yaml", "a: 1\nkiln:\n  plugins: ['${oc.env:WHERE}/one.so']\n")
        env = {**os.environ, "WHERE": "x"}
        self.assertEqual(self.loaded("--cfg", "job", program="train", env=env)[:2], (["one"], "a: 1\n"))
        self.assertEqual(self.loaded("--cfg", "job", "kiln.plugins=[x/two.so]", program="train")[0], ["two"])
        self.assertEqual(self.loaded("--cfg", "job", "kiln.plugins=[]", program="train")[0], [])
        err = self.refused("--cfg", "job", "kiln.plugins=[x/three.so]", says=["plugin x/three.so (of kiln.plugins): there is no such file"])
        self.assertEqual(err.count("error"), 1)
        self.refused("--cfg", "job", "kiln.plugins=[{a: 1}]", says=["kiln.plugins: expected a file, got a mapping"])
        self.write("conf/config.yaml", "defaults: [sub: more, _self_]\n")
        self.write("conf/sub/more.yaml", "# @package _global_\nkiln:\n  plugins: [x/one.so]\n")
        self.refused("--cfg", "job", says=["conf/sub/more.yaml:3", "kiln.plugins can be set only in the primary config or by an argument"])
        # A broken config is reported once, by what composes it.
        self.write("conf/config.yaml", "a: [1\n")
        self.assertEqual(self.refused("--cfg", "job", says=["conf/config.yaml:"]).count("error:"), 1)
        self.run_kiln("list", program="kiln")

    def test_errors_say_where_from(self):
        self.write("plugins/text.so", "no ELF")
        self.refused("list", program="kiln", says=["plugin plugins/text.so (of ./plugins): not a shared object"])
        os.remove(self.path("plugins/text.so"))
        self.put("one", "plugins/one.so")
        self.write("LOADED", "")  # to be there before and after
        self.put("one", "plugins/copy.so")
        self.refused("list", program="kiln", says=["plugin plugins/one.so (of ./plugins): callback/one is registered already",
                                                   "plugins/copy.so"])
        self.put("one", "conf.so")
        self.refused("list", program="kiln", says=["callback/one is registered already"],
                     env={**os.environ, "KILN_PLUGIN_PATH": "conf.so"})

    def test_completion(self):
        """A Tab loads what the line names, and else only what a command has loaded before."""
        self.put("one", "plugins/one.so")
        self.assertEqual(self.loaded("complete", "fish", "kiln show callback/")[0], [])
        self.run_kiln("list", program="kiln")
        names, out, _ = self.loaded("complete", "fish", "kiln show callback/")
        self.assertEqual(names, ["one"])
        self.assertIn("callback/one", out)
        self.put("one", "plugins/one.so", "b")
        self.assertEqual(self.loaded("complete", "fish", "kiln show callback/")[0], [])


class Safety(Loading):
    """./plugins is the user's own project: not a run folder, and nothing that others can change."""

    def test_run_folder(self):
        self.put("one", "plugins/one.so")
        self.run_kiln(*self.use(), "kiln.run.dir=run")
        shutil.copytree(self.path("plugins"), self.path("run/plugins"))
        self.put("two", "run/plugins/two.so")
        self.write("run/conf/config.yaml", "kiln: {plugins: [plugins/two.so]}\n")
        for name in "plugins", "conf":
            shutil.copytree(self.path("run", name), self.path("run/checkpoints", name))
        run = self.path("run")
        for where in run, os.path.join(run, "checkpoints"):
            self.refused("list", program="kiln", says=["conf/config.yaml is no config of your own project, and names the plugin "
                                                       "plugins/two.so"], cwd=where)
            shutil.rmtree(os.path.join(where, "conf"))
            for args in ["list"], ["eval", run]:
                _, err = self.run_kiln(*args, program="kiln", cwd=where)
                self.assertIn("warning: ./plugins is not loaded: this is the folder of a run", err)
            # eval has loaded the run's own, which this user has loaded before.
            self.assertEqual(read(os.path.join(where, "LOADED"), "r"), "one\n")

    def test_config_of_a_run_folder(self):
        two = self.put("two", "elsewhere/two.so")
        self.write("run/.kiln/config.yaml", f"a: 1\nkiln: {{plugins: ['{two}']}}\n")
        line = ["--config-path", "run/.kiln", "--cfg", "job"]
        self.refused(*line, says=["run/.kiln/config.yaml is no config of your own project, and names the plugin " + two, f"--plugin {two}"])
        self.assertFalse(os.path.exists(self.path("LOADED")))
        self.assertEqual(self.loaded(*line, "--trust", program="train")[0], ["two"])
        self.assertEqual(self.loaded(*line, program="train")[0], ["two"])  # allowed now

    def test_what_others_can_change(self):
        path = self.put("one", "plugins/one.so")
        for wrong, mode in (path, 0o777), (self.path("plugins"), 0o777):
            os.chmod(wrong, mode)
            names, _, err = self.loaded("list")
            self.assertEqual(names, [])
            self.assertIn("list: warning: plugins/one.so is not loaded: another user can change it\n", err)
            os.chmod(wrong, 0o755)
        self.assertEqual(self.loaded("list")[::2], (["one"], ""))
        # A config that others may write to names only what the user has loaded before.
        two = self.put("two", "two.so")
        config = self.write("conf/config.yaml", f"kiln: {{plugins: ['{two}']}}\n")
        os.chmod(config, 0o666)
        _, err = self.run_kiln("list", program="kiln", status=1)
        self.assertIn("conf/config.yaml is no config of your own project, and names the plugin " + two, err)
        self.assertNotIn("two", read(self.path("LOADED"), "r"))
        os.chmod(config, 0o644)
        self.assertEqual(self.loaded("list")[0], ["two", "one"])

    def test_sweep_from_elsewhere(self):
        """The folder in which a sweep says that it was started is not a project of the user's."""
        os.makedirs(self.path("made"))
        self.run_kiln(*self.use(), "-m", "seed=1", "kiln.sweep.dir=sweep", cwd=self.path("made"))
        self.put("one", "made/plugins/one.so")
        self.run_kiln("-m", "--resume", "made/sweep")
        self.run_kiln("sweep", "add", "made/sweep", "seed=5", program="kiln")
        self.assertFalse(os.path.exists(self.path("made/LOADED")))
        self.assertEqual(self.run_kiln("-m", "--resume", "sweep", cwd=self.path("made"))[1], "")
        self.assertTrue(os.path.exists(self.path("made/LOADED")))


class OtherCode(Loading):
    """A run that is resumed with another plugin says so in a line, and continues."""
    WARNING = "warning: the plugin {} is not the one that was used before: sha256 {}..., was {}..."

    def warning(self, path, old):
        return self.WARNING.format(path, hashlib.sha256(read(path)).hexdigest()[:12], old[:12])

    def test_run(self):
        path = self.put("one", "plugins/one.so")
        old = hashlib.sha256(read(path)).hexdigest()
        self.run_kiln(*self.use("one"), "kiln.run.dir=run")
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertNotIn("warning", out)
        self.put("one", "plugins/one.so", "b")
        warning = self.warning(path, old)
        _, err = self.run_kiln("eval", "run", "split=val", program="kiln")
        self.assertIn("eval: " + warning, err)
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=4")
        self.assertEqual([line for line in out.splitlines() if "warning" in line], [warning])
        self.assertIn("one-b was here", out)
        self.assertIn(warning, read(self.path("run/train.log"), "r"))
        # The next session compares with this one.
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=5")
        self.assertNotIn("warning", out)

    def test_another_place(self):
        """The user's own takes the place of the run's of the same name, which may be gone."""
        path = self.put("one", "old/one.so")
        self.run_kiln("--plugin", "old/one.so", *self.use("one"), "kiln.run.dir=run")
        shutil.rmtree(self.path("old"))
        self.refused("resume=run", says=["the run run needs the plugin " + path, "there is no such file"])
        self.put("one", "plugins/one.so")
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertNotIn("warning", out)  # the same bytes

    def test_sweep(self):
        path = self.put("one", "plugins/one.so")
        old = hashlib.sha256(read(path)).hexdigest()
        self.run_kiln(*self.use("one"), "-m", "seed=1,2", "kiln.sweep.dir=sweep")
        with open(self.path("sweep/journal.jsonl")) as journal:
            self.assertEqual(json.loads(journal.readline())["plugins"][0]["sha256"], old)
        self.put("one", "plugins/one.so", "b")
        _, err = self.run_kiln("-m", "--resume", "sweep")
        self.assertIn("train: " + self.warning(path, old), err)

    def test_record_of_an_earlier_version(self):
        """It has the paths alone."""
        path = self.put("one", "plugins/one.so")
        self.run_kiln(*self.use("one"), "kiln.run.dir=run")
        journal = self.path("run/.kiln/journal.jsonl")
        lines = [json.loads(line) for line in read(journal, "r").splitlines()]
        lines[0]["plugins"] = [path]
        self.write("run/.kiln/journal.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        os.rename(self.path("plugins"), self.path("moved"))
        self.refused("resume=run", says=["needs the plugin " + path])
        os.rename(self.path("moved"), self.path("plugins"))
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertNotIn("warning", out)


if __name__ == "__main__":
    main()
