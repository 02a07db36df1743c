"""Completion: the candidates, and what bash, zsh and fish show when Tab is pressed at a terminal."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import shutil
import subprocess
import unittest

from kilntest import BUILD, ROOT, SHARED, Case, main
from shelltest import SCRIPTS, Shell, missing

FAST = "asan" not in BUILD

# What is typed, and the line after Tab, in every shell.
LINES = [
    # commands and their arguments
    ("kiln comp", "kiln completion "),
    ("kiln completion f", "kiln completion fish "),
    ("kiln --vers", "kiln --version "),
    ("kiln show sched", "kiln show scheduler"),
    ("kiln show model/re", "kiln show model/resnet "),
    ("kiln show callback/early", "kiln show callback/early_stopping "),
    ("kiln show experiment/mnist/c", "kiln show experiment/mnist/cnn "),
    ("kiln schema opt", "kiln schema optimizer "),
    ("kiln explain ru", "kiln explain run/"),
    ("kiln explain run alph", "kiln explain run alpha "),
    ("kiln explain la", "kiln explain last "),
    ("kiln eval la", "kiln eval last "),
    ("kiln eval ru", "kiln eval run/"),
    ("kiln eval last split=v", "kiln eval last split=val "),
    ("kiln predict last data/no", "kiln predict last data/notes.txt "),
    ("kiln replay la", "kiln replay last "),
    ("kiln sweep rep", "kiln sweep report "),
    ("kiln sweep report la", "kiln sweep report last "),
    ("kiln sweep report ru", "kiln sweep report run/"),
    ("kiln sweep report last --js", "kiln sweep report last --json "),
    ("kiln ckpt show be", "kiln ckpt show best "),
    # flags and their values
    ("train --config-n", "train --config-name "),
    ("train --cfg k", "train --cfg kiln "),
    ("train --cfg=j", "train --cfg=job "),
    ("train -c j", "train -c job "),
    ("train --info defaults-", "train --info defaults-tree "),
    ("train --info model=re", "train --info model=resnet "),
    ("train --config-path my", "train --config-path myconf/"),
    ("train --config-path myconf --config-name oth", "train --config-path myconf --config-name other "),
    ("train --plugin ./my.", "train --plugin ./my.so "),
    ("train -m --resume da", "train -m --resume data/"),
    ("train -m --resume la", "train -m --resume last "),
    ("train --explain optimizer.mom", "train --explain optimizer.momentum "),
    ("train --explain task.optimizer.mom", "train --explain task.optimizer.momentum "),
    ("train --cfg job --package trainer.max_e", "train --cfg job --package trainer.max_epochs "),
    # groups and their options
    ("train experim", "train experiment="),
    ("train model=re", "train model=resnet "),
    ("train -m model=mlp,re", "train -m model=mlp,resnet "),
    ("train experiment=mn", "train experiment=mnist/"),
    ("train experiment=mnist/c", "train experiment=mnist/cnn "),
    ("train +experiment=mnist/m", "train +experiment=mnist/mlp "),
    ("train --config-path myconf db@fir", "train --config-path myconf db@first="),
    ("train --config-path myconf db@first=po", "train --config-path myconf db@first=postgres "),
    ("train --config-path myconf +db/eng", "train --config-path myconf +db/engine="),
    ("train --config-path myconf +db/engine@x=fas", "train --config-path myconf +db/engine@x=fast "),
    # keys, with what is on the line already
    ("train optimizer.mom", "train optimizer.momentum="),
    ("train ++optimizer.mom", "train ++optimizer.momentum="),
    ("train model=resnet model.st", "train model=resnet model.stem="),
    ("train experiment=cifar10/resnet18 model.st", "train experiment=cifar10/resnet18 model.stem="),
    ("train lr=] nonsense=1 model.depth=34 model=resnet model.st",
     "train lr=] nonsense=1 model.depth=34 model=resnet model.stem="),
    ("train -m model=resnet,mlp model.st", "train -m model=resnet,mlp model.stem="),
    ("train callbacks.early", "train callbacks.early"),
    ("train callbacks=early_stopping callbacks.early", "train callbacks=early_stopping callbacks.early_stopping."),
    ("train datamodule=cifar10 datamodule.transforms.0.padding_",
     "train datamodule=cifar10 datamodule.transforms.0.padding_mode="),
    ("train +callb", "train +callbacks"),
    # values
    ("train model=resnet model.stem=sm", "train model=resnet model.stem=small "),
    ("train -m model=resnet model.stem=small,la", "train -m model=resnet model.stem=small,large "),
    ("train test=f", "train test=false "),
    ("train task.scheduler=st", "train task.scheduler=step "),
    ("train model._target_=model/re", "train model._target_=model/resnet "),
    ("train lr=", "train lr=0.05 "),
    ("train optimizer.lr=", "train optimizer.lr=0.05 "),
    ("train lr=0.3 optimizer.lr=", "train lr=0.3 optimizer.lr=0.3 "),
    # files
    ("train datamodule=mnist datamodule.root=data/m", "train datamodule=mnist datamodule.root=data/mnist/"),
    ("train ckpt_path=las", "train ckpt_path=last "),
    ("train ckpt_path=da", "train ckpt_path=data/"),
    ("kiln eval ckpt_path=be", "kiln eval ckpt_path=best "),
    ("kiln predict ckpt_path=last input=data/no", "kiln predict ckpt_path=last input=data/notes.txt "),
    # by another name
    ("kiln train model=re", "kiln train model=resnet "),
    ("bin/train model=re", "bin/train model=resnet "),
    ("~/bin/kiln train model=re", "~/bin/kiln train model=resnet "),
    ("SEED=1 train model=re", "SEED=1 train model=resnet "),
    # nothing to offer
    ("kiln list mod", "kiln list mod"),
    ("train model=nothing", "train model=nothing"),
    ("train model.depth.", "train model.depth."),
    ("kiln nothing ", "kiln nothing "),
]

# Words on the screen after Tab, and words that must not be there.
LISTS = [
    ("kiln ", ["train", "eval", "predict", "list", "version"], ["model="]),
    ("train mod", ["model=", "model."], ["optimizer="]),
    ("train --re", ["--resolve", "--resume"], ["--cfg"]),
    # What one must not show, the one before does not show either: a slow shell may still be printing that.
    ("kiln top --", ["--once", "--json"], ["--svg", "--cfg", "--plugin"]),
    ("kiln graph --", ["--svg", "--config-path"], ["--multirun", "--kills"]),
    ("train --", ["--cfg", "--multirun"], ["--once", "--json", "--kills"]),
    ("train model=resnet model.", ["model.depth=", "model.stem="], ["model.hidden=", "model._target_="]),
    ("train ~", [], ["Error"]),
]

# The same with quotes, which every shell has in its own way.
QUOTED = {
    "bash": [
        ("train 'model=re", "train 'model=resnet'"),
        ('train "model=re', 'train "model=resnet"'),
        ("train 'model='re", "train model=resnet "),
        ("train model='re", "train model='resnet'"),
        (r"train mod\el=re", r"train mod\el=resnet "),
        ("train '~trainer.max_t", "train '~trainer.max_time'"),
        ("train ~trainer.max_t", r"train \~trainer.max_time "),
        (r"train \~trainer.max_t", r"train \~trainer.max_time "),
        ("train callbacks=[default,ear", r"train callbacks=\[default,early_stopping"),
        ("train 'model.hidden=[1,2]' model=resnet model.st", "train 'model.hidden=[1,2]' model=resnet model.stem="),
        ("train model=mlp model.hidden=", r"train model=mlp model.hidden=\[512,512\] "),
        ("train datamodule=mnist datamodule.root=wi", r"train datamodule=mnist datamodule.root=with\ blank/"),
        ("train datamodule=mnist datamodule.root='with b", "train datamodule=mnist datamodule.root='with blank/'"),
        ("train datamodule=mnist datamodule.root=a:", "train datamodule=mnist datamodule.root=a:colon/"),
        ("train datamodule=mnist datamodule.root=~/da", r"train datamodule=mnist datamodule.root=\~/data/"),
        ("train model=re >data/no", "train model=re >data/notes.txt "),
        ("train lr=1 2>err.txt model=re", "train lr=1 2>err.txt model=resnet "),
        ("train lr=$HOM", "train lr=$HOME"),
    ],
    "zsh": [
        ("train 'model=re", "train 'model=resnet' "),
        ('train "model=re', 'train "model=resnet" '),
        ("train 'model='re", "train 'model=resnet' "),
        ("train model='re", "train model=resnet "),
        (r"train mod\el=re", "train model=resnet "),
        ("train '~trainer.max_t", "train '~trainer.max_time' "),
        (r"train \~trainer.max_t", r"train \~trainer.max_time "),
        ("train 'callbacks=[default,ear", "train 'callbacks=[default,early_stopping"),
        ("train 'model.hidden=[1,2]' model=resnet model.st", "train 'model.hidden=[1,2]' model=resnet model.stem="),
        ("train model=mlp model.hidden=", r"train model=mlp model.hidden=\[512,512\] "),
        ("train datamodule=mnist datamodule.root=wi", r"train datamodule=mnist datamodule.root=with\ blank/"),
        ("train datamodule=mnist datamodule.root=a:", "train datamodule=mnist datamodule.root=a:colon/"),
        ("train datamodule=mnist datamodule.root=~/da", r"train datamodule=mnist datamodule.root=\~/data/"),
        ("train lr=1 2>err.txt model=re", "train lr=1 2>err.txt model=resnet "),
    ],
    "fish": [
        ("train 'model=re", "train 'model=resnet' "),
        ('train "model=re', 'train "model=resnet" '),
        ("train 'model='re", "train 'model='resnet "),
        ("train '~trainer.max_t", "train '~trainer.max_time' "),
        ("train ~trainer.max_t", "train ~trainer.max_time "),
        ("train 'model.hidden=[1,2]' model=resnet model.st", "train 'model.hidden=[1,2]' model=resnet model.stem="),
        ("train model=mlp model.hidden=", r"train model=mlp model.hidden=\[512,512\] "),
        ("train datamodule=mnist datamodule.root=wi", r"train datamodule=mnist datamodule.root=with\ blank/"),
        ("train datamodule=mnist datamodule.root=a:", "train datamodule=mnist datamodule.root=a:colon/"),
        ("train lr=1 2>err.txt model=re", "train lr=1 2>err.txt model=resnet "),
    ],
}


class Folder(Case):
    """A folder with a config, files and a run's leavings to complete to."""

    def setUp(self):
        super().setUp()
        self.write("myconf/config.yaml", "defaults:\n  - db@first: mysql\n  - _self_\nname: x\n")
        self.write("myconf/other.yaml", "name: y\n")
        self.write("myconf/db/mysql.yaml", "# MySQL of the house\nport: 1\n")
        self.write("myconf/db/postgres.yaml", "# @package db\n# Postgres\nport: 2\n")
        self.write("myconf/db/engine/fast.yaml", "speed: 9\n")
        self.write("run/.kiln/config.yaml", "alpha: 1\nbeta: 2\n")
        self.write("run/.kiln/origins.yaml", "")
        for name in ["data/mnist/x", "data/notes.txt", "with blank/x", "a:colon/x", "my.so", "outputs/none"]:
            self.write(name, "")
        os.mkdir(self.path("bin"))
        for name in ["kiln", "train"]:
            os.symlink(os.path.join(BUILD, name), self.path("bin", name))

    def offered(self, line):
        """Words and notes as fish gets them."""
        out, err = self.run_kiln("complete", "fish", line, program="kiln")
        self.assertEqual(err, "")
        return dict((text + "\t").split("\t")[:2] for text in out.splitlines())


class Candidates(Folder):
    def test_words_and_notes(self):
        self.assertEqual(self.offered("train --config-path myconf db@first="),
                         {"db@first=mysql": "MySQL of the house", "db@first=postgres": "Postgres", "db@first=engine/": ""})
        self.assertIn("print the composed config", self.offered("train --c")["--cfg"])
        self.assertEqual(set(self.offered("kiln graph --phase ")), {"forward", "backward", "update"})
        self.assertEqual(self.offered("kiln graph --depth "), {})
        self.assertIn("model=resnet", self.offered("kiln graph model=r"))
        self.assertIn("trainer", self.offered("kiln show t"))
        self.assertIn("experiment", self.offered("kiln schema "))
        self.assertEqual(set(self.offered("train model=mlp model.hidden=[7,8] model.hidden-=")),
                         {"model.hidden-=7", "model.hidden-=8"})
        self.assertEqual(self.offered("train model=mlp model.hidden+="), {})
        self.assertEqual(set(self.offered("train model=mlp model.hidden:=")), {"model.hidden:=[512,512]"})
        self.assertIn("now", self.offered("train lr=0.7 optimizer.l")["optimizer.lr="])
        self.assertIn("0.7", self.offered("train lr=0.7 optimizer.l")["optimizer.lr="])
        self.assertEqual(set(self.offered("train --cfg ")), {"job", "kiln", "all"})
        self.assertEqual(set(self.offered("train test=")), {"test=true", "test=false"})
        others = ["linear", "lstm", "resnet", "vit", "vit_b_16", "convnext", "mobilenet_v3", "efficientnet", "unet", "deeplab_v3", "fcos",
                  "transformer", "patch_embedding", "token_embedding", "column_embedding", "ft_transformer", "dlrm", "row_encoder",
                  "bag_of_tokens", "bag_of_ngrams", "text_cnn", "text_cnn_small", "text_lstm", "gpt", "gpt2", "llama", "encoder_decoder", "bert",
                  "fusion", "crnn"]
        self.assertEqual(set(self.offered("train -m model=mlp,cnn,")), {f"model=mlp,cnn,{name}" for name in others})
        self.assertEqual(set(self.offered("train 'model=choice(mlp,cnn,")),
                         {f"model=choice(mlp,cnn,{name}" for name in others})
        self.assertEqual(set(self.offered("train model=resnet model.stem=")),
                         {"model.stem=auto", "model.stem=small", "model.stem=large"})
        self.assertTrue({"last", "best"} <= {word.split("=")[1] for word in self.offered("train ckpt_path=")})
        self.assertTrue({"input=", "output=", "split="} <= set(self.offered("kiln predict ")))
        self.assertEqual(set(self.offered("kiln eval ckpt_path=last split=t")), {"split=test", "split=train"})
        self.assertTrue({"split=", "plots="} <= set(self.offered("kiln eval ")))
        self.assertNotIn("input=", self.offered("train "))
        self.assertIn("resume=", self.offered("train res"))
        self.assertIn("resume=last", self.offered("train resume="))
        self.assertEqual(set(self.offered("kiln ckpt ")), {"ls", "show", "verify", "diff", "average",
                                                         "merge-lora"})
        self.assertNotIn(".hidden", self.offered("kiln predict input="))
        self.assertEqual(set(self.offered("train kiln/launch")), {"kiln/launcher="})
        self.assertEqual(set(self.offered("nice -n 5 train model=re")), {"model=resnet"})
        self.assertIn("~model", self.offered("train ~"))
        self.assertIn("~model.", self.offered("train ~"))

    def test_plugin_of_the_line(self):
        plugin = os.path.join(BUILD, "examples/plugin/resmlp.so")
        self.assertNotIn("model=resmlp", self.offered("train model="))
        self.assertIn("model=resmlp", self.offered(f"train --plugin {plugin} model="))
        self.assertIn("model.width=", self.offered(f"train --plugin {plugin} model=resmlp model."))
        self.assertIn("model=mlp", self.offered("train --plugin nothing.so model="))

    def test_checkpoints_remember_their_config(self):
        self.write("run/checkpoints/last/state.json", "{}")
        self.write("run/checkpoints/last/config.yaml", "gamma: 1\n")
        self.assertIn("gamma=", self.offered("kiln eval ckpt_path=run ga"))
        self.assertIn("gamma=", self.offered("kiln eval run ga"))
        self.assertIn("gamma=", self.offered("kiln predict run data/notes.txt ga"))
        self.assertEqual(self.offered("kiln eval ga"), {})
        self.assertLessEqual({"last", "best", "run/", "split="}, set(self.offered("kiln eval ")))
        self.assertNotIn("last", self.offered("kiln eval run "))
        self.assertNotIn("data/", self.offered("kiln predict run split=test "))

    def test_own_groups_come_from_folders(self):
        self.write("conf/config.yaml", "defaults:\n  - server: a\n")
        self.write("conf/server/a.yaml", "host: x\n")
        self.write("conf/server/b.yaml", "host: y\nport: 1\n")
        self.assertEqual(set(self.offered("train server=")), {"server=a", "server=b"})
        self.assertIn("server.port=", self.offered("train server=b server."))
        self.assertNotIn("server.port=", self.offered("train server."))

    def test_what_tune_searches(self):
        self.assertLessEqual({"lr", "batch_size", "model="}, set(self.offered("kiln tune ")))

    def test_what_cannot_be_had_is_silence(self):
        self.write("conf/config.yaml", "defaults: [model: mlp\n")
        self.assertIn("model=", self.offered("train mod"))  # the groups are there all the same
        self.assertEqual(self.offered("train model.hid"), {})
        self.write("conf/config.yaml", "a: 1\nb: [\n")
        for line in ["", " ", "train", "x", "kiln", "train '", "train \\", "train =", "train +", "train +++", "train ~~",
                     "train ++++x=", "train @=", "train a@", "train a@=", "train a.b.", "train .", "train ..=", "train --",
                     "train -", "train --nothing=x", "train --cfg=", "train --explain", "train --config-path nowhere a",
                     "train --config-path=/dev/null a", "train -m x=[", "train x=[[[", "train x=)", "train x=,,,,",
                     "train a/", "train /a=", "train kiln/", "train kiln.", "train hydra.", "train hydra/launcher=",
                     "train a=" + "[" * 500, "train " + "a." * 2000, "train " + "x=1 " * 50, "kiln explain nowhere a",
                     "kiln eval ckpt_path=nowhere a", "train \x01\x02", "train \xff=1 a", "train lr=1 >", "train <"]:
            self.offered(line)
        before = sorted(os.listdir(self.dir))
        for words in [[], ["bash"], ["csh", "train "], ["zsh"], ["zsh", "train"], ["bash", "train mod"],
                      ["bash", "=:", "train mod", "more"], ["fish"]]:
            out, err = self.run_kiln("complete", *words, program="kiln")
            self.assertEqual((out, err), ("", ""))
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_awkward_files_are_left_out(self):
        self.write("odd/line\nbreak", "")
        self.write("odd/plain", "")
        self.assertEqual(set(self.offered("kiln predict input=odd/")), {"input=odd/plain"})

    def test_scripts_are_the_installed_ones(self):
        for shell, name in [("bash", "kiln.bash"), ("zsh", "_kiln"), ("fish", "kiln.fish")]:
            out, _ = self.run_kiln("completion", shell, program="kiln")
            with open(os.path.join(SCRIPTS, name)) as f:
                self.assertEqual(out, f.read())
        self.refused("completion", "csh", says=["csh", "zsh"], status=2, program="kiln")
        self.refused("completion", says=["bash, zsh or fish"], status=2, program="kiln")


class Shells:
    """What the tests of the three shells share; `shell` names the one."""

    def setUp(self):
        if missing(self.shell):
            self.skipTest(f"{self.shell} is not installed")
        super().setUp()
        self.open = []

    def tearDown(self):
        for shell in self.open:
            shell.close()
        super().tearDown()

    def started(self, **options):
        self.open.append(Shell(self.shell, self.dir, **options))
        return self.open[-1]

    def check(self, lines):
        shell = self.started()
        for typed, line in lines:
            with self.subTest(typed=typed):
                self.assertEqual(shell.tab(typed), line)

    def test_lines(self):
        self.check(LINES)

    def test_quotes(self):
        self.check(QUOTED[self.shell])

    def test_lists(self):
        shell = self.started()
        for typed, present, absent in LISTS:
            with self.subTest(typed=typed):
                words = shell.listed(typed)
                self.assertLessEqual(set(present), words)
                self.assertFalse(set(absent) & words)

    def test_in_the_middle_of_a_line(self):
        back = "\x02" * len(" lr=0.1")
        self.assertEqual(self.started().tab("train experim lr=0.1" + back), "train experiment= lr=0.1")

    def test_program_by_its_path_alone(self):
        """kiln is in no folder of PATH: the one beside the program answers."""
        shell = self.started(path="/nowhere", load=self.source())
        self.assertEqual(shell.tab("bin/train model=re"), "bin/train model=resnet ")
        self.assertEqual(shell.tab("train model=re"), "train model=re")

    def test_program_of_another_is_not_run(self):
        self.write("other/train", "#!/bin/sh\ntouch was_run\n")
        os.chmod(self.path("other/train"), 0o755)
        shell = self.started()
        self.assertEqual(shell.tab("other/train model=re"), "other/train model=resnet ")
        self.assertFalse(os.path.exists(self.path("was_run")))

    def source(self):
        name = {"bash": "kiln.bash", "zsh": "_kiln", "fish": "kiln.fish"}[self.shell]
        return f"source {os.path.join(SCRIPTS, name)}"

    @unittest.skipUnless(FAST, "installing is tested once")
    def test_installed_scripts_are_found(self):
        prefix = self.path("prefix")
        subprocess.run(["make", "--no-print-directory", f"VARIANT={os.path.basename(BUILD)}", "WERROR=1", "install",
                        f"PREFIX={prefix}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        shell = self.started(path=prefix + "/bin", load=self.installed(prefix))
        self.assertEqual(shell.tab("train model=re"), "train model=resnet ")
        self.assertEqual(shell.tab("kiln schema sched"), "kiln schema scheduler ")


class Bash(Shells, Folder):
    shell = "bash"

    def installed(self, prefix):
        if not os.path.exists("/usr/share/bash-completion/bash_completion"):
            self.skipTest("bash-completion is not installed")
        return f"export XDG_DATA_DIRS={prefix}/share; source /usr/share/bash-completion/bash_completion"

    def test_other_word_breaks(self):
        """Some take = and : out of COMP_WORDBREAKS."""
        shell = self.started(load='eval "$(kiln completion bash)"; COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]}')
        self.assertEqual(shell.tab("train model=re"), "train model=resnet ")
        self.assertEqual(shell.tab("train datamodule=mnist datamodule.root=a:"),
                         "train datamodule=mnist datamodule.root=a:colon/")


class Zsh(Shells, Folder):
    shell = "zsh"

    def installed(self, prefix):
        return f"fpath=({prefix}/share/zsh/site-functions $fpath); compinit -u -D"


class Fish(Shells, Folder):
    shell = "fish"

    def installed(self, prefix):
        return f"set -p fish_complete_path {prefix}/share/fish/vendor_completions.d"

    def test_complete_prints_the_list(self):
        out = subprocess.run(["fish", "--no-config", "-c", self.source() + "; complete -C 'train mod'"], cwd=self.dir,
                             env=dict(os.environ, PATH=BUILD + ":/usr/bin:/bin", HOME=self.dir), check=True,
                             capture_output=True, text=True).stdout
        self.assertEqual([line.split("\t")[0] for line in out.splitlines()], ["model.", "model="])


if __name__ == "__main__":
    main()
