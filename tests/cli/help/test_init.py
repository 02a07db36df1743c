"""kiln init: the new project composes, trains and matches its schemas, and its README is correct."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import re
import shlex
import subprocess

from kilntest import BUILD, Case, main, read
from schematest import errors

SMALL = ["trainer.max_steps=2", "trainer.threads=1", "datamodule.train_count=128", "datamodule.val_count=32",
         "datamodule.test_count=32", "batch_size=32"]


class Init(Case):
    def init(self, name="project"):
        out, _ = self.run_kiln("init", name, program="kiln")
        self.dir = os.path.join(self.dir, name)
        return out

    def tree(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.dir)
                      for folder, _, names in os.walk(self.dir) for name in names)

    def test_says_what_it_wrote(self):
        out = self.init()
        for text in ["wrote project/conf", "wrote project/README.md", "wrote project/.gitignore", "cd project", "train"]:
            self.assertIn(text, out)
        files = self.tree()
        for name in ["conf/config.yaml", "conf/experiment/example.yaml", "conf/model/mine.yaml", "README.md",
                     ".gitignore", "conf/.schema/config.json", "conf/.schema/model.json",
                     "conf/.schema/experiment.json"]:
            self.assertIn(name, files)
        self.assertEqual([name for name in files if "init" in name], [], "nothing is left of writing")

    def test_trains(self):
        self.init()
        self.run_kiln(*SMALL, "kiln.run.dir=one")
        self.assertIn("_target_: model/mlp", read(self.path("one/.kiln/config.yaml"), "r"))
        self.run_kiln("experiment=example", *SMALL, "kiln.run.dir=two")
        config = read(self.path("two/.kiln/config.yaml"), "r")
        self.assertIn("_target_: model/cnn", config)
        self.assertIn("dropout: 0.3", config)
        self.assertIn("patience: 3", config)
        groups, _ = self.run_kiln("--help")
        self.assertNotIn(".schema", groups)

    def test_readme_commands_work(self):
        self.init()
        text = read(self.path("README.md"), "r")
        lines = re.findall(r"(?m)^    (train.*?) +#", text)
        self.assertGreaterEqual(len(lines), 5)
        for line in lines:
            words = shlex.split(line)[1:]
            if "-m" in words:
                self.sweep(words)
                continue
            small = [] if "--cfg" in words or "--explain" in words else SMALL
            self.run_kiln(*words, *small)
        for line in re.findall(r"`(kiln schema [^`]*)`", text):
            program, _, target = line.partition(" >")
            before = read(self.path(target))
            out, _ = self.run_kiln(*shlex.split(program)[1:], program="kiln")
            self.assertEqual(out.encode().strip(), before.strip(), "init writes what schema prints")
        for line in re.findall(r"`(kiln show [^`]*|train [^`]*--help)`", text):
            words = shlex.split(line.replace("\n", " "))
            self.run_kiln(*words[1:], program=words[0])

    def sweep(self, words):
        """The sweep that the README shows has as many jobs as it says."""
        out, _ = self.run_kiln("--plan", *words)
        self.assertEqual(len(re.findall(r"(?m)^#\d+ :", out)), 4, out)

    def test_schemas_fit(self):
        self.init()
        conf = self.path("conf")
        checked = 0
        for folder, _, names in os.walk(conf):
            for name in names:
                if not name.endswith(".yaml"):
                    continue
                text = read(os.path.join(folder, name), "r")
                schema = re.search(r"(?m)^# yaml-language-server: \$schema=(.*)$", text)
                self.assertIsNotNone(schema, f"{name} names its schema")
                self.assertLess(text[:schema.start()].count("\n"), 2, "in its first lines")
                with open(os.path.join(folder, schema[1])) as f:
                    document = json.load(f)
                self.assertEqual(errors(document, text), [], name)
                broken = text + ("\nhiddn: [3]\n" if "model" in folder else "\nseed: many\n")
                self.assertNotEqual(errors(document, broken), [], name)
                checked += 1
        self.assertEqual(checked, 3)
        document = json.loads(read(os.path.join(conf, ".schema/config.json")))
        self.assertIn("mine", json.dumps(document["definitions"]["defaults"]), "own options are known")

    def test_overwrites_nothing(self):
        self.write("old/conf/config.yaml", "lr: 1\n")
        self.refused("init", "old", program="kiln", says=["old", "conf/", "already"])
        self.assertEqual(os.listdir(self.path("old")), ["conf"])
        self.write("file", "x")
        self.refused("init", "file", program="kiln", says=["file", "folder"])
        self.refused("init", program="kiln", says=["one folder"], status=2)
        self.refused("init", "a", "b", program="kiln", says=["one folder"], status=2)
        self.write("here/README.md", "mine\n")
        out, _ = self.run_kiln("init", "here", program="kiln")
        self.assertIn("kept  here/README.md", out)
        self.assertEqual(read(self.path("here/README.md"), "r"), "mine\n")
        self.assertTrue(os.path.exists(self.path("here/conf/config.yaml")))
        self.assertTrue(os.path.exists(self.path("here/.gitignore")))

    def test_here_and_deeper(self):
        self.run_kiln("init", ".", program="kiln")
        self.assertTrue(os.path.exists(self.path("conf/config.yaml")))
        self.run_kiln("init", "a/b/c", program="kiln")
        self.assertTrue(os.path.exists(self.path("a/b/c/conf/config.yaml")))

    def test_plugin(self):
        plugin = os.path.join(BUILD, "examples/plugin/resmlp.so")
        self.run_kiln("init", "p", "--plugin", plugin, program="kiln")
        self.assertIn("resmlp", read(self.path("p/conf/.schema/model.json"), "r"))

    def test_full_disk_leaves_nothing(self):
        """Files above a size can't be written: nothing stays behind."""
        script = f"ulimit -f 8; trap '' XFSZ; exec {shlex.quote(os.path.join(BUILD, 'kiln'))} init new"
        done = subprocess.run(["bash", "-c", script], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(os.listdir(self.dir), [])


if __name__ == "__main__":
    main()
