"""Help that teaches: of the program, of train, of every other command."""
import os
import pty
import re
import subprocess

from kilntest import BUILD, ROOT, Case, main, read


class Program(Case):
    def test_commands(self):
        out, _ = self.run_kiln("--help", program="kiln")
        for name in ["train", "eval", "predict", "list", "version"]:
            self.assertRegex(out, rf"(?m)^  {name} +\w")
        self.assertLess(len(out.splitlines()), 24, "kiln --help is short")

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


class Train(Case):
    def test_overview(self):
        out, _ = self.run_kiln("--help")
        for text in ["usage: train", "examples", "groups and their options", "components chosen now"]:
            self.assertIn(text, out)
        self.assertRegex(out, r"(?m)^  model +cnn\* linear lstm mlp resnet$")
        self.assertRegex(out, r"(?m)^  experiment +cifar10/resnet18 gan/digits gan/mnist mnist/cnn mnist/mlp$")
        self.assertRegex(out, r"(?m)^  lr=0.05 +used by optimizer.lr$")
        self.assertRegex(out, r"(?m)^  seed=1 +start of all random numbers$")
        self.assertRegex(out, r"(?m)^  optimizer +sgd: ")

    def test_every_flag_is_there(self):
        table = re.findall(r'\{ "(--[a-z-]+)", (?:"(-[a-z]+)"|NULL), TAKES',
                           read(os.path.join(ROOT, "src/cli/args.c"), "r"))
        self.assertGreater(len(table), 10)
        out = self.run_kiln("--help")[0] + "".join(
            self.run_kiln(command, "--help", program="kiln")[0] for command in ["schema", "graph", "verify-resume", "top"])
        for name, brief in table:
            self.assertRegex(out, rf"(?m)^  (-\w+, )?{name}[ \n]", f"{name} is not explained")
            if brief:
                self.assertIn(f"{brief}, {name}", out)

    def test_options_of_what_is_chosen(self):
        out, _ = self.run_kiln("model=resnet", "lr=0.3", "optimizer.momentum=0.5", "--help")
        parts = re.split(r"\n\n", out)
        asked = [part.split(":")[0] for part in parts[1:3]]
        self.assertEqual(asked, ["model", "optimizer"], "what the arguments are about comes first")
        self.assertRegex(out, r"  model.depth +18\|34\|50 +18 +layers")
        self.assertRegex(out, r"optimizer.momentum +float 0\.\.1 +0\.0 +share")
        words = " ".join(out.split())
        self.assertIn("now 0.3, from argument 2 `lr=0.3`, through ${lr} in kiln:conf/optimizer/sgd.yaml:3:5",
                      words)
        self.assertIn("now 0.5, from argument 3 `optimizer.momentum=0.5`", words)
        self.assertIn("now max, from kiln:conf/callbacks/default.yaml:5:9", words)
        self.assertNotIn("now auto", words, "a default in force is not told twice")

    def test_own_conf(self):
        self.write("conf/config.yaml", "defaults:\n  - task: vision\n  - datamodule: digits\n  - model: tiny\n"
                   "  - optimizer: sgd\n  - scheduler: constant\n  - _self_\n  - recipe: a/b\n"
                   "lr: 0.5\nbatch_size: 32\nmine: ${lr}\n")
        self.write("conf/model/tiny.yaml", "_target_: mlp\nhidden: [8]\n")
        self.write("conf/recipe/a/b.yaml", "# @package _global_\nseed: 5\n")
        self.write("conf/recipe/c.yaml", "{}\n")
        out, _ = self.run_kiln("--help")
        self.assertRegex(out, r"(?m)^  model +cnn linear lstm mlp resnet tiny\*$")
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
            self.assertNotIn("components chosen now", out)

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
        out, _ = self.run_kiln("--help")
        self.assertNotIn("\033", out)
        self.assertEqual([line for line in out.splitlines() if len(line) > 100], [])


if __name__ == "__main__":
    main()
