"""Puts one mistake at a time into a project of several files: options, targets, defaults lists, interpolations, YAML
syntax and arguments. Each must be reported before the run, with its file, its line and the intended name.
(test_mistakes_in_one_file.py covers each line of one file.)

The program writes the project's files (--cfg job), so that they contain every option of every component in use. A
mistake changes one line or adds one argument, so its location and the intended name are known."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import itertools
import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

from kilntest import BUILD, SHORT, main

CHOICES = {"task": "vision", "datamodule": "digits", "model": "mlp", "optimizer": "adamw",
           "scheduler": "cosine", "callbacks": "early_stopping", "logger": "csv", "trainer": "default"}
OVERRIDES = ["datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
             "trainer.max_epochs=1", "model.hidden=[8]"]

CONFIG = """\
# A project's own primary config.
defaults:
  - task: mine
  - datamodule: mine
  - model: mine
  - optimizer: mine
  - scheduler: mine
  - callbacks: mine
  - logger: mine
  - trainer: mine
  - _self_
  - experiment: first

lr: 0.05
batch_size: 16
seed: 1
ckpt_path: null
test: true
width: 8
widths: ["${width}", "${width}"]
note: "lr ${lr} with ${oc.env:HOME}, ${widths}"
"""

EXPERIMENT = """\
# @package _global_
defaults:
  - override /optimizer: other
  - override /scheduler: mine

lr: 0.01
optimizer:
  weight_decay: 0.001
trainer:
  max_epochs: 1
"""


def run(folder, *args):
    process = subprocess.Popen([os.path.join(BUILD, "train"), *args], cwd=folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return process.returncode, out, err


def project():
    """Names and texts of the files of the project."""
    words = [f"{group}={option}" for group, option in CHOICES.items()] + OVERRIDES
    files = {"conf/config.yaml": CONFIG, "conf/experiment/first.yaml": EXPERIMENT}
    with tempfile.TemporaryDirectory() as folder:
        for group in CHOICES:
            status, out, err = run(folder, "--cfg", "job", "--package", group, *words)
            assert status == 0, err
            files[f"conf/{group}/mine.yaml"] = out
    files["conf/optimizer/other.yaml"] = files["conf/optimizer/mine.yaml"]
    return files


class Mistake:
    """One mistake: `file` has `text` instead, or the arguments are `args`. One of `places`
    must be in the message, and `meant`, unless it is None."""

    def __init__(self, kind, places, meant=None, file=None, text=None, args=()):
        self.kind, self.file, self.text, self.args = kind, file, text, list(args)
        self.places = [places] if isinstance(places, str) else places
        self.meant = meant

    def __str__(self):
        return f"{self.kind} at {self.places}" + (f", {self.meant} meant" if self.meant else "")


def typos(word, n=2):
    """Ways to write the word wrong: a letter less, twice, swapped with the next."""
    at = len(word) // 2
    made = [word[:at] + word[at + 1:], word[:at] + word[at] + word[at:],
            word[:at - 1] + word[at] + word[at - 1] + word[at + 1:], word + "x"]
    return [w for w in dict.fromkeys(made) if w != word][:n]


def kind_of(value):
    if value in ("true", "false"):
        return "bool"
    if re.fullmatch(r"-?\d+", value):
        return "int"
    if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", value):
        return "float"
    if value.startswith("["):
        return "list"
    return "text"


# What each kind of value can't be.
WRONG = {
    "int": ["many", "1.5", "[1, 2]", "{a: 1}", "true", "'3'", "99999999999999999999"],
    "float": ["fast", "[0.1]", "{a: 1}", "false", "'0.1'", ".nan"],
    "bool": ["maybe", "3", "[true]", "{a: 1}"],
    "text": ["[a]", "{a: b}"],
    "list": ["3", "text", "{a: 1}", "[1, x]"],
}

# Values of the right type and out of range, and names that are near a choice.
OUT_OF_RANGE = {
    "batch_size": ["0", "-1"], "train_count": ["0", "-5"], "size": ["1", "-1"], "dropout": ["1.0", "-0.1", "2"],
    "label_smoothing": ["-0.5", "1.5"], "distortion": ["-1.0"], "noise": ["-1.0"], "weight_decay": ["-0.1"],
    "eps": ["-1.0"], "warmup_epochs": ["-1.0"], "min_factor": ["-1.0", "2.0"], "warmup_steps": ["-1"],
    "patience": ["-1"], "save_top_k": ["-2"], "every_n_epochs": ["-1"], "max_epochs": ["-2"],
    "max_steps": ["-2"], "log_every_n_steps": ["-1"], "threads": ["-1"], "num_workers": ["-1"],
    "hidden": ["[0]", "[8, -1]"], "betas": ["[0.9]", "[0.9, 1.5]", "[0.9, 0.99, 0.999]"],
}
# What the experiment sets or chooses: other values never get there.
OVERRULED = ["trainer.max_epochs", "optimizer.weight_decay"]
CHOSEN = ["optimizer", "scheduler"]
CHOICE_TYPOS = {
    "mode": [("maxx", "max"), ("mni", "min")], "logging_interval": [("stp", "step"), ("epcoh", "epoch")],
    "convolution": [("atuo", "auto")],
}


class MistakeMaker:
    def __init__(self, files):
        self.files = files
        self.plants = []

    def line(self, kind, file, number, new, meant=None, places=None):
        """Line `number` (from 1) becomes `new` (a line or several), which is found in one of
        the lines `places`."""
        lines = self.files[file].splitlines(True)
        lines[number - 1:number] = [new + "\n"] if isinstance(new, str) else [n + "\n" for n in new]
        self.plants.append(Mistake(kind, [f"{file}:{n}:" for n in places or [number]], meant, file, "".join(lines)))

    def argument(self, kind, args, meant=None, place=None):
        args = [args] if isinstance(args, str) else args
        self.plants.append(Mistake(kind, place or f"argument {len(args)} `{args[-1]}`", meant, args=args))

    def lines(self, file):
        """Number, indentation, key and value of each line `key: value` of a file."""
        for number, line in enumerate(self.files[file].splitlines(), 1):
            match = re.fullmatch(r"( *)([\w.]+):(?: (.*))?", line)
            if match:
                yield number, match[1], match[2], match[3]

    # ---- Options, in files and as arguments

    def option_files(self):
        return [f for f in self.files if f.endswith("/mine.yaml") and "optimizer" not in f] + [
            "conf/optimizer/other.yaml"]

    def options(self):
        for file in self.option_files():
            group = file.split("/")[1]
            parents = [group]
            for number, indent, key, value in self.lines(file):
                parents[len(indent) // 2 + 1:] = [key]
                path = ".".join(parents)
                if value is None:
                    self.component(file, number, indent, key)
                elif key == "_target_":
                    self.target(file, number, indent, value)
                else:
                    self.option(file, number, indent, key, value, path)

    def component(self, file, number, indent, key):
        self.line("scalar for a component", file, number, f"{indent}{key}: 5", places=[number, number + 1])

    def target(self, file, number, indent, value):
        kind, name = value.split("/") if "/" in value else ("", value)
        if not kind:  # the option says which
            for typo in typos(name, 3):
                self.line("_target_", file, number, f"{indent}_target_: {typo}", name)
            return
        for typo in typos(name, 3):
            self.line("_target_", file, number, f"{indent}_target_: {kind}/{typo}", name)
            self.line("_target_ without kind", file, number, f"{indent}_target_: {typo}", name)
        for typo in typos(kind, 2):
            self.line("kind in _target_", file, number, f"{indent}_target_: {typo}/{name}", kind)
        for typo in typos("_target_", 2):
            self.line("key _target_", file, number, f"{indent}{typo}: {value}", "_target_")
        self.line("_target_ of no text", file, number, f"{indent}_target_: [a]")
        other = "optimizer/sgd" if kind != "optimizer" else "model/mlp"
        self.line("another kind", file, number, f"{indent}_target_: {other}")

    def option(self, file, number, indent, key, value, path):
        for typo in typos(key, 2):
            self.line("key of an option", file, number, f"{indent}{typo}: {value}", key)
        self.argument("key in an argument", f"{path[:-len(key)]}{typos(key)[0]}={value}", key)
        if value.startswith("${"):
            name = value[2:-1]
            resolver, colon, rest = name.partition(":")  # the key in oc.select may be absent, its name may not
            for typo in typos(resolver, 2):
                self.line("interpolation", file, number, f"{indent}{key}: ${{{typo}{colon}{rest}}}", resolver)
            self.line("open interpolation", file, number, f"{indent}{key}: ${{{name}")
            return
        kind = kind_of(value)
        if path in OVERRULED:
            return
        for wrong in WRONG[kind]:
            if key == "recompute" and wrong == "[1, x]":  # patterns: texts, as numbers are too
                continue
            if key == "fast_dev_run" and wrong == "3":  # a number of batches, too
                continue
            if key in ("refresh_s", "plain_s") and wrong.strip("'") in ("3", "1.5", "0.1"):  # times
                continue
            self.line(f"wrong type of {kind}", file, number, f"{indent}{key}: {wrong}")
        self.argument(f"wrong type of {kind}", f"{path}={WRONG[kind][0]}".replace(" ", ""))
        for wrong in OUT_OF_RANGE.get(key, []):
            self.line("out of range", file, number, f"{indent}{key}: {wrong}")
        for wrong, meant in CHOICE_TYPOS.get(key, []):
            self.line("choice", file, number, f"{indent}{key}: {wrong}", meant)

    # ---- The primary config and the experiment

    def defaults(self):
        file = "conf/config.yaml"
        for number, line in enumerate(self.files[file].splitlines(), 1):
            match = re.fullmatch(r"  - (\w+): (\w+)", line)
            if not match:
                continue
            for typo in typos(match[1], 2):
                self.line("group", file, number, f"  - {typo}: {match[2]}", match[1])
            for typo in typos(match[2], 2) if match[1] not in CHOSEN else []:
                self.line("option of a group", file, number, f"  - {match[1]}: {typo}", match[2])
            self.line("option is a mapping", file, number, f"  - {match[1]}: {{a: b}}")
            self.line("group without blank", file, number, f"  - {match[1]}:{match[2]}", match[1])
        self.line("defaults", file, 2, "defalts:", "defaults")
        self.line("defaults", file, 2, "default:", "defaults")
        self.line("_self_", file, 11, "  - _slef_", "_self_")
        self.line("_self_ twice", file, 11, ["  - _self_", "  - _self_"], places=[11, 12])
        self.line("optional misspelled", file, 12, "  - optinal experiment: first", "optional")
        self.line("package", file, 8, "  - callbacks@calbacks: mine", "callbacks")
        self.plants[-1].places.append("conf/callbacks/mine.yaml:1:")  # what it puts there
        file = "conf/experiment/first.yaml"
        for typo in ["overide", "overrride"]:
            self.line("override", file, 3, f"  - {typo} /optimizer: other", "override")
        for typo in typos("optimizer", 2):
            self.line("override of a group", file, 3, f"  - override /{typo}: other", "optimizer")
        for typo in typos("other", 2):
            self.line("override's option", file, 3, f"  - override /optimizer: {typo}", "other")
        for typo in ["_globl_", "_gloabl_"]:
            self.line("header", file, 1, f"# @package {typo}", "_global_")
        self.line("header", file, 1, "# @pakage _global_", "@package")
        self.line("header", file, 1, "# @package _global_ x", "_global_")
        for number, key in [(7, "optimizer"), (9, "trainer")]:
            for typo in typos(key, 2):
                self.line("key of an experiment", file, number, f"{typo}:", key)
        for number, key, value in [(8, "weight_decay", "0.001"), (10, "max_epochs", "1")]:
            for typo in typos(key, 2):
                self.line("key of an experiment", file, number, f"  {typo}: {value}", key)
        self.line("list over mapping", file, 9, ["trainer: [1]", "other:"])

    def variables(self):
        file = "conf/config.yaml"
        for number, key, wrong in [(14, "lr", "fast"), (14, "lr", "[1]"), (14, "lr", "null"),
                                   (15, "batch_size", "0"), (15, "batch_size", "1.5"), (15, "batch_size", "many"),
                                   (16, "seed", "-1"), (16, "seed", "x"), (18, "test", "maybe")]:
            if key == "lr":  # the experiment has the last word
                self.line(f"{key} is wrong", "conf/experiment/first.yaml", 6, f"lr: {wrong}")
            else:
                self.line(f"{key} is wrong", file, number, f"{key}: {wrong}")
        for number, key, value in [(14, "lr", "0.05"), (15, "batch_size", "16"), (16, "seed", "1"),
                                   (18, "test", "true")]:
            if key != "lr":
                self.argument("key of the root", f"{typos(key)[0]}={value}", key)
        for number, key, typo in [(20, "width", "widht"), (20, "width", "wdth")]:
            self.line("interpolation in a list", file, number, f'widths: ["${{width}}", "${{{typo}}}"]', key)
        self.line("interpolation in text", file, 21, 'note: "lr ${lrr}"', "lr")
        for typo in ["oc.evn", "oc.en", "oc.envv"]:
            self.line("resolver", file, 21, f'note: "${{{typo}:HOME}}"', "oc.env")
        self.line("environment", file, 21, 'note: "${oc.env:HOME_OF_NOBODY}"', "HOME_OF_NOBODY")
        self.line("cycle", file, 19, "width: ${widths}", places=[19, 20])

    # ---- YAML

    def yaml(self):
        for file, number, key, value in [("conf/model/mine.yaml", 3, "dropout", "0.0"),
                                         ("conf/optimizer/other.yaml", 2, "lr", "0.1"),
                                         ("conf/config.yaml", 15, "batch_size", "16"),
                                         ("conf/trainer/mine.yaml", 2, "max_steps", "-1")]:
            near = [number, number + 1]
            self.line("no blank behind the colon", file, number, f"{key}:{value}", places=near)
            self.line("no colon", file, number, f"{key} {value}", places=near)
            self.line("= for the colon", file, number, f"{key}={value}", places=near)
            self.line("tab", file, number, f"\t{key}: {value}", places=near)
            self.line("indented", file, number, f"   {key}: {value}", places=[number - 1, number])
            if file != "conf/config.yaml":  # there the next quote closes it
                self.line("open quote", file, number, f'{key}: "{value}', places=near)
            self.line("open quote", file, number, f"{key}: '{value}", places=near)
            self.line("text behind a quote", file, number, f"{key}: '{value}'x")
            self.line("open bracket", file, number, f"{key}: [{value}", places=near)
            self.line("closed twice", file, number, f"{key}: [{value}]]")
            self.line("open brace", file, number, f"{key}: {{a: {value}", places=near)
            self.line("brackets of two kinds", file, number, f"{key}: [{value}}}", places=near)
            self.line("two colons", file, number, f"{key}: a: {value}")
            self.line("twice", file, number, [f"{key}: {value}", f"{key}: {value}"], key, places=[number + 1])
            self.line("an item in a mapping", file, number, f"- {key}: {value}")
            self.line("no anchor", file, number, f"{key}: *nothing", "nothing")
            self.line("unknown tag", file, number, f"{key}: !!nothing {value}", "nothing")
            self.line("tag that does not fit", file, number, f"{key}: !!int x")
            self.line("%", file, number, f"%{key}: {value}", places=near)
            self.line("@", file, number, f"{key}: @{value}")
            self.line("second document", file, number, ["---", f"{key}: {value}"])
            self.line("key is a list", file, number, f"[{key}]: {value}")
            self.line("bare interpolation", file, number, f"{key}: [${{lr}}, {{a: ${{b}}}}]")

    # ---- Arguments

    def arguments(self):
        for group in CHOICES:
            self.argument("group", f"{typos(group)[0]}=mine", group)
            self.argument("option", f"{group}=mien", "mine")
            self.argument("group is no group", f"{group}/mine=1")
        for word in ["lr=[1,", "lr={a:1", "lr='x", 'lr="x', "lr=]", "lr=1]", "lr={1", "lr=${lr", "lr=a:{", "=1",
                     "lr", "lr 1", "/lr=1", "l r=1", "a[0]=1", "lr=(1", "lr=f(1)", "lr=int(x)", "lr=range(1)",
                     "lr=int(1", "optimizer.betas.5=1", "model.hidden.0=x",
                     "+lr=1", "~nothing", "~lr=7", "lr.x=1", "+model=mine", "lr=", "lr={a:1}", "lr=null",
                     "optimizer={lr:fast}", "optimizer={lrr:1}", "++optimizer.lrr=1", "+trainer.max_epoch=3",
                     "lr=1,2", "model=mine,mine", "lr=0.1.2", "trainer=[1]", "callbacks=null,mine", "~model",
                     "~task", "callbacks.early_stopping.patience=soon", "model._target_=model/mlpp"]:
            self.argument("argument", word)
        for word, meant in [("lrr=1", "lr"), ("optimizr.lr=1", "optimizer"), ("optimizer.rl=1", "optimizer.lr"),
                            ("callbacks.erly_stopping.patience=1", "callbacks.early_stopping"),
                            ("momentum_x=1", None), ("hidden=[1]", "model.hidden"),
                            ("max_epochs=2", "trainer.max_epochs"), ("patience=2", "callbacks.early_stopping.patience"),
                            ("experiment=frist", "first"), ("lr=${l}", "lr"), ("lr=${oc.evn:X}", "oc.env"),
                            ("lr=${optimizer.wight_decay}", "weight_decay"), ("model._target_=cn", "cnn"),
                            ("callbacks.early_stopping.mode=maxi", "max"), ("~callbacks.progres_bar", "progress_bar"),
                            ("kiln.run.dri=x", "kiln.run.dir"), ("optimizer=othr", "other")]:
            self.argument("argument", word, meant)

    def all(self):
        self.options()
        self.defaults()
        self.variables()
        self.yaml()
        self.arguments()
        return self.plants


class MistakesInProject(unittest.TestCase):
    def check(self, files, plant):
        """What is wrong with the answer to a plant; None: nothing."""
        with tempfile.TemporaryDirectory(prefix="kiln-test-") as folder:
            for name, text in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as f:
                    f.write(plant.text if name == plant.file else text)
            status, out, err = run(folder, *plant.args)
            if status != (2 if "has several values" in err else 1):
                return f"exit status {status}"
            if os.listdir(folder) != ["conf"]:
                return f"left {os.listdir(folder)}"
            if out:
                return "printed something"
            if not any(place in err for place in plant.places):
                return "names another place"
            if plant.meant is not None and not re.search(
                    rf"(?<!\w){re.escape(plant.meant)}(?!\w)", without_quotation(err)):
                return "does not say what was meant"
            if not re.search(r"\n +(\d+)? \| .*\n +\| +\^", err):
                return "has no caret"
        return None

    def test_the_project_is_sound(self):
        files = project()
        self.assertEqual(self.check(files, Mistake("nothing", "")), "exit status 0")
        with tempfile.TemporaryDirectory(prefix="kiln-test-") as folder:
            for name, text in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as f:
                    f.write(text)
            status, _, err = run(folder, "trainer.threads=1")
            self.assertEqual((status, err), (0, ""))

    def test_every_plant_is_found(self):
        files = project()
        plants = MistakeMaker(files).all()
        self.assertGreater(len(plants), 400)
        if SHORT:
            plants = plants[::7]
        with ThreadPoolExecutor(2) as pool:
            faults = list(pool.map(lambda plant: self.check(files, plant), plants))
        wrong = [(plant, fault) for plant, fault in zip(plants, faults) if fault is not None]
        report = []
        for plant, fault in wrong:
            report.append(f"{plant}: {fault}")
            if os.environ.get("KILN_TEST_VERBOSE") == "1":
                report.append(self.answer(files, plant))
        if wrong:
            self.fail(f"{len(wrong)} of {len(plants)}\n" + "\n".join(report))

    def answer(self, files, plant):
        with tempfile.TemporaryDirectory(prefix="kiln-test-") as folder:
            for name, text in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as f:
                    f.write(plant.text if name == plant.file else text)
            status, _, err = run(folder, *plant.args)
        changed = list(itertools.islice((f"{a!r} -> {b!r}" for a, b in zip(
            files.get(plant.file, "").splitlines(), (plant.text or "").splitlines()) if a != b), 1))
        return f"    {changed or plant.args}\n    {status} " + err.strip().replace("\n", "\n    ")


def without_quotation(err):
    """The message without the excerpts, places and lists, in which a name would be no help."""
    lines = [line for line in err.splitlines()
             if not re.match(r" +\d* \|", line) and not re.match(r"  (through|from) ", line)]
    return "\n".join(re.sub(r"^train: error: (argument \d+ `.*?`|\S+:\d+:\d+):", "", line) for line in lines)


if __name__ == "__main__":
    main()
