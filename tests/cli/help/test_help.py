"""--help of the program, of train and of every other command."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import pty
import re
import subprocess

from kilntest import BUILD, SHORT, Case, main


class Program(Case):
    def test_commands(self):
        out, _ = self.run_kiln("--help", program="kiln")
        for name in ["train", "eval", "predict", "list", "version"]:
            self.assertRegex(out, rf"(?m)^  {name} +\w")
        self.assertLess(len(out.splitlines()), 32, "kiln --help is short")

    def test_each_command_teaches(self):
        commands = re.findall(r"(?m)^  (\w+) ", self.run_kiln("--help", program="kiln")[0])
        self.assertGreater(len(commands), 4)
        for name in commands:
            if name == "train":
                continue
            out, _ = self.run_kiln(name, "--help", program="kiln")
            self.assertTrue(out.startswith(f"usage: kiln {name}"), out)
            self.assertIn("--help", out)
            self.assertNotIn("--multirun", out, "flags of train only")
            if name != "version":
                self.assertGreaterEqual(out.count(f"kiln {name}"), 3, f"usage and examples of {name}")


class Flags(Case):
    """Each command has its own: help, parsing and completion agree, and others' flags are refused."""

    def flags(self):
        """{command: {flag: takes a value}}, as help lists them."""
        commands = re.findall(r"(?m)^  ([\w-]+) ", self.run_kiln("--help", program="kiln")[0])
        self.assertGreater(len(commands), 12)
        return {name: {flag: bool(value) for flag, value in re.findall(
            r"(?m)^  (?:-\w+, )?(--[a-z-]+)( \S+)?", self.run_kiln(name, "--help", program="kiln")[0])}
            for name in commands}

    def test_completion_offers_what_help_lists(self):
        for command, flags in self.flags().items():
            out, _ = self.run_kiln("complete", "bash", "", f"kiln {command} --", program="kiln")
            self.assertEqual(sorted(out.split()), sorted(flags), command)

    def test_flags_of_other_commands_are_refused(self):
        table = self.flags()
        everything = {flag: value for flags in table.values() for flag, value in flags.items()}
        self.assertGreater(len(everything), 20)
        for command in ["train", "graph", "top"] if SHORT else table:
            for flag, value in everything.items():
                if flag in table[command]:
                    continue
                for words in [[flag, "x"], [flag + "=x"]] if value else [[flag]]:
                    _, err = self.run_kiln(command, *words, program="kiln", status=2)
                    self.assertIn(f"{command}: error: {flag} is a flag of `kiln ", err)
                    self.assertIn(f"not of `kiln {command}`", err)
                    owner = re.search(r"of `kiln ([\w-]+)`", err).group(1)
                    self.assertIn(flag, table[owner])
        _, err = self.run_kiln("--svg", "x.svg", status=2)
        self.assertIn("--svg is a flag of `kiln graph`, not of `kiln train`", err)
        _, err = self.run_kiln("schema", "-m", program="kiln", status=2)
        self.assertIn("-m is a flag of `kiln train`", err)
        self.assertEqual(os.listdir(self.dir), [])

    def test_unknown_flags(self):
        for words, near in [(["train", "--config-nam=x"], "--config-name"), (["graph", "--dept", "2"], "--depth"),
                            (["top", "--onec"], "--once")]:
            _, err = self.run_kiln(*words, program="kiln", status=2)
            self.assertIn(f"unknown flag; did you mean {near}?", err)
        _, err = self.run_kiln("--zzzz", status=2)
        self.assertIn("--zzzz: unknown flag; values have no dashes: zzzz=VALUE (`kiln train --help`", err)

    def test_flags_that_do_not_go_together(self):
        for words in [["--cfg", "job", "--plan"], ["--explain", "lr", "--cfg", "job"], ["--info", "--plan"],
                      ["-m", "--resume", "s", "--cfg", "job"], ["-q", "-v"]]:
            _, err = self.run_kiln(*words, status=2)
            self.assertIn("do not go together: give one of them", err)
        for words, says in [(["--resume", "last"], "`train -m --resume last`; a run is resumed by `train resume=last`"),
                            (["--resume", "s", "--plan"], "-m --resume s"),
                            (["--retry-failed", "--plan"], "--resume DIR --retry-failed")]:
            _, err = self.run_kiln(*words, status=2)
            self.assertIn(says, err)

    def test_words_that_nothing_reads(self):
        for words in [["version", "x"], ["ckpt", "ls", ".", "x"], ["ckpt", "show", "last", "x"], ["list", "model"],
                      ["top", "x"], ["doctor", "x"], ["init", "a", "x"], ["schema", "model", "x"], ["show", "mlp", "x"]]:
            self.run_kiln(*words, program="kiln", status=2)
        self.run_kiln("version", program="kiln")
        self.run_kiln("model=mlp", "--version")


def group_options(help_text, group):
    """The options of a group, of which the selected one ends with *."""
    return re.search(rf"(?m)^  {group} +(.*(\n {{16}}.*)*)$", help_text)[1].split()


class Train(Case):
    def test_overview(self):
        out, _ = self.run_kiln("--help")
        for text in ["usage: train", "examples", "groups and their options", "selected components"]:
            self.assertIn(text, out)
        models = group_options(out, "model")
        self.assertLess({"cnn*", "lstm", "resnet", "token_embedding", "vit"}, set(models))
        self.assertEqual(models, sorted(models))
        self.assertLess({"cifar10/resnet18", "gan/digits", "mnist/cnn"}, set(group_options(out, "experiment")))
        self.assertRegex(out, r"(?m)^  lr=0.05 +used by optimizer.lr$")
        self.assertRegex(out, r"(?m)^  seed=1 +start of all random numbers$")
        self.assertRegex(out, r"(?m)^  optimizer +sgd: ")

    def test_options_of_what_is_chosen(self):
        out, _ = self.run_kiln("model=resnet", "lr=0.3", "optimizer.momentum=0.5", "--help")
        parts = re.split(r"\n\n", out)
        asked = [part.split(":")[0] for part in parts[1:3]]
        self.assertEqual(asked, ["model", "optimizer"], "what the arguments are about comes first")
        self.assertRegex(out, r"  model.depth +18\|34\|50\|101\|152 +18 +layers")
        self.assertRegex(out, r"optimizer.momentum +float 0\.\.1 +0\.0 +fraction")
        words = " ".join(out.split())
        self.assertIn("now 0.3, from argument 2 `lr=0.3`, through ${lr} in kiln:conf/optimizer/sgd.yaml:3:5",
                      words)
        self.assertIn("now 0.5, from argument 3 `optimizer.momentum=0.5`", words)
        self.assertIn("now val/accuracy, from default of module/vision, through ${oc.select:task.monitor,val/loss} in "
                      "kiln:conf/callbacks/default.yaml:4:12", words)
        self.assertNotIn("now auto", words, "a default in force is not told twice")

    def test_own_conf(self):
        self.write("conf/config.yaml", "defaults:\n  - task: vision\n  - datamodule: digits\n  - model: tiny\n"
                   "  - optimizer: sgd\n  - scheduler: constant\n  - _self_\n  - recipe: a/b\n"
                   "lr: 0.5\nbatch_size: 32\nmine: ${lr}\n")
        self.write("conf/model/tiny.yaml", "_target_: mlp\nhidden: [8]\n")
        self.write("conf/recipe/a/b.yaml", "# @package _global_\nseed: 5\n")
        self.write("conf/recipe/c.yaml", "{}\n")
        out, _ = self.run_kiln("--help")
        self.assertLess({"cnn", "lstm", "tiny*", "vit"}, set(group_options(out, "model")))
        self.assertRegex(out, r"(?m)^  recipe +c a/b\*$")
        self.assertRegex(out, r"(?m)^  lr=0.5 +used by optimizer.lr, mine$")
        out, _ = self.run_kiln("model=tiny", "--help")
        self.assertIn("now [8], from conf/model/tiny.yaml:2:9", " ".join(out.split()))
        self.write("conf/config.yaml", "defaults: [\n")
        out, err = self.run_kiln("--help", status=1)
        self.assertIn("usage: train", out)
        self.assertIn("conf/config.yaml", err)

    def test_tree_that_does_not_train(self):
        self.write("conf/config.yaml", "defaults:\n  - db: mysql\n  - _self_\ntitle: shop\n")
        self.write("conf/db/mysql.yaml", "port: 3306\n")
        self.write("conf/db/pool/small.yaml", "n: 1\n")
        for words in [[], ["title=x"]]:
            out, _ = self.run_kiln(*words, "--help")
            self.assertRegex(out, r"(?m)^  db +mysql\* pool/small$")
            self.assertRegex(out, r"(?m)^  title=\w+$")
            self.assertNotIn("selected components", out)

    def on_terminal(self, *args, **env):
        """What the program prints on a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([os.path.join(BUILD, "train"), *args], cwd=self.dir, stdout=theirs,
                                   env=dict(os.environ, TERM="xterm", **env))
        os.close(theirs)
        text = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not more:
                break
            text += more
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        return text.decode().replace("\r\n", "\n")

    def test_width_and_colours(self):
        def letters(text):  # narrow tables put commas between columns
            return re.sub(r"\033\[\d+m|[\s,]", "", text)

        wide = self.on_terminal("model=resnet", "--help", COLUMNS="200")
        self.assertIn("\033[1mmodel: ", wide)
        for columns in [70, 80, 120]:
            out = self.on_terminal("model=resnet", "--help", COLUMNS=str(columns), NO_COLOR="1")
            self.assertNotIn("\033", out)
            long = [line for line in out.splitlines() if len(line) > columns]
            self.assertEqual(long, [], f"at {columns} columns")
            self.assertEqual(letters(out), letters(wide), "nothing is cut")
        for args in (["--help"], ["model=resnet", "--help"]):
            out = self.on_terminal(*args, COLUMNS="40", NO_COLOR="1")
            self.assertEqual([line for line in out.splitlines() if len(line) > 40 and len(line.split()) > 1], [])
            self.assertEqual(letters(out), letters(self.on_terminal(*args, COLUMNS="200", NO_COLOR="1")))
        out, _ = self.run_kiln("--help")
        self.assertNotIn("\033", out)
        self.assertEqual([line for line in out.splitlines() if len(line) > 100], [])


if __name__ == "__main__":
    main()
