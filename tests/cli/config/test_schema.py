"""kiln schema: the JSON Schema accepts and rejects the same configs as kiln."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os

import jsonschema

from kilntest import BUILD, ROOT, Case, main, read
from schematest import errors

CONF = os.path.join(ROOT, "conf")
GROUPS = ["callbacks", "datamodule", "experiment", "logger", "model", "optimizer", "scheduler", "task", "trainer"]

# Group, content, what is wrong with it.
MISTAKES = [
    ("", "seed: many", "text for a number"),
    ("", "seed: -1", "below the range"),
    ("", "test: 3", "a number for a bool"),
    ("", "trainer: {max_epoch: 3}", "unknown option of a section"),
    ("", "trainer: {max_epochs: 1.5}", "a fraction for an integer"),
    ("", "trainer: {threads: 5000}", "above the range"),
    ("", "trainer: {convolution: fast}", "no such choice"),
    ("", "kiln: {run: {folder: x}}", "unknown option of a section within kiln"),
    ("", "model: {_target_: resnet, dept: 18}", "unknown option of a component at the top"),
    ("", "model: {dept: 18}", "unknown option without _target_"),
    ("", "model: {depth: 19}", "no such choice without _target_"),
    ("", "model: resnt", "unknown name"),
    ("", "task: {_target_: vision, model: {_target_: mlp, hiden: [3]}}", "unknown option two levels down"),
    ("", "defaults: model", "no list"),
    ("", "defaults: [{model: cnn, optimizer: sgd}]", "two groups in one entry"),
    ("", "callbacks: {a: {_target_: early_stopping, patience: soon}}", "wrong type in a mapping of components"),
    ("", "callbacks: {a: 3}", "a number for a component"),
    ("model", "_target_: model/resnt", "unknown component"),
    ("model", "_target_: optimizer/sgd", "a component of another kind"),
    ("model", "_target_: mlp\ndepth: 18", "an option of another component"),
    ("model", "_target_: mlp\nhidden: 3", "a number for a list"),
    ("model", "_target_: mlp\nhidden: [3, many]", "text within a list"),
    ("model", "_target_: mlp\nhidden: [0]", "below the range within a list"),
    ("model", "_target_: mlp\ndropout: 1.5", "above the range"),
    ("model", "_target_: mlp\ndropout: null", "null"),
    ("model", "_target_: resnet\nzero_init_residual: 2", "a number for a bool"),
    ("datamodule", "_target_: image_folder\nroot: x\ntransforms: [{_target_: crop, sise: 3}]",
     "unknown option in a list of components"),
    ("callbacks", "a: {_target_: early_stopping, mode: mid}", "no such choice"),
    ("trainer", "max_steps: all", "text for a number"),
    ("experiment", "trainer: {max_epochs: many}", "text for a number"),
]

# What must be taken.
FINE = [
    ("", "a: {b: [1, {c: x}]}\nlr: fast\nhydra: {x: 1}"),
    ("", "seed: ${oc.env:SEED,1}\ntest: '???'\ntrainer: ${my_trainer}\nkiln: {run: {dir: x}, mine: 1}"),
    ("", "defaults: [a, {model: null}, {override /model: mlp}, {optional db@x: [a, b]}, {kiln/launcher: basic}]"),
    ("", "model: resnet\noptimizer: optimizer/sgd\ncallbacks: null\ndatamodule: digits"),
    ("", "callbacks: {early_stopping: {patience: 3}, a: null, b: progress_bar}"),
    ("model", "_target_: ${which}\nanything: 1"),
    ("model", "_target_: resnet\ndepth: 34\nstem: ${stem}"),
    ("model", "defaults: [cnn]\ndropout: 0.5"),
    ("model", "_target_: mlp\nhidden: [1_000, '${a}']\ndropout: 1e-1"),
    ("task", "_target_: vision\nmodel: {_target_: mlp, hidden: '${h}'}\nscheduler: null"),
    ("optimizer", "_target_: adam\nbetas: [0.9, 0.99]\nlr: 1"),
    ("trainer", "max_epochs: -1\nconvolution: direct"),
    ("experiment", "trainer: {max_epochs: !delete , convolution: direct}\nmodel: !replace {_target_: mlp}"),
    ("model", "_target_: mlp\nhidden: !append [3]"),
]


class Schemas(Case):
    def schema(self, group="", *flags):
        key = (group, flags)
        known = self.__dict__.setdefault("known", {})
        if key not in known:
            out, _ = self.run_kiln("schema", *([group] if group else []), *flags, program="kiln")
            known[key] = json.loads(out)
            jsonschema.Draft7Validator.check_schema(known[key])
        return known[key]

    def takes(self, schema, text, what):
        self.assertEqual(errors(schema, text), [], f"{what}\n{text}")

    def test_shipped_files(self):
        checked = 0
        for folder, _, names in os.walk(CONF):
            for name in names:
                group = os.path.relpath(folder, CONF).split(os.sep)[0]
                path = os.path.join(folder, name)
                self.takes(self.schema("" if group == "." else group), read(path, "r"), path)
                checked += 1
        self.assertGreater(checked, 20)

    def test_composed_configs(self):
        for words in [[], ["model=resnet"], ["experiment=cifar10/resnet18", "datamodule.root=x"],
                      ["callbacks=early_stopping", "optimizer=adam"], ["+mine.a=[1,{b: 2}]", "trainer.threads=2"]]:
            for flags in [[], ["--resolve"]]:
                out, _ = self.run_kiln("--cfg", "job", *flags, *words)
                self.takes(self.schema(), out, words)
        for group in GROUPS[:2] + GROUPS[3:]:
            out, _ = self.run_kiln("--cfg", "job", "--package", group)
            self.takes(self.schema(group), out, group)

    def test_what_is_fine(self):
        for group, text in FINE:
            self.takes(self.schema(group), text, group)

    def test_mistakes_are_refused(self):
        for group, text, what in MISTAKES:
            self.assertNotEqual(errors(self.schema(group), text), [], f"{group}: {what}: {text}")

    def test_kiln_refuses_the_same(self):
        """Mistakes that a user can make in a file: the schema and the program agree."""
        checked = 0
        for group, text, what in MISTAKES:
            if group not in ("model", "callbacks", "trainer"):
                continue
            self.write(f"conf/{group}/mine.yaml", text + "\n")
            self.run_kiln(f"{group}=mine", "trainer.limit_train_batches=1", "kiln.run.dir=run", status=1)
            checked += 1
        self.assertGreater(checked, 8)

    def test_descriptions_and_defaults(self):
        then = [rule["then"] for rule in self.schema("model")["allOf"] if rule["then"].get("title") == "resnet"][0]
        depth = then["properties"]["depth"]
        self.assertEqual(depth["default"], 18)
        self.assertIn("layers", depth["description"])
        self.assertIn({"enum": [18, 34, 50, 101, 152]}, depth["anyOf"])
        entry = self.schema()["definitions"]["defaults"]["items"]["anyOf"][1]["properties"]
        self.assertIn("mnist/cnn", entry["experiment"]["anyOf"][0]["enum"])
        self.assertIn("resnet", entry["override /model"]["anyOf"][0]["enum"])

    def test_plugin(self):
        plugin = os.path.join(BUILD, "examples/plugin/resmlp.so")
        text = "_target_: resmlp\nwidth: 24\n"
        self.assertNotEqual(errors(self.schema("model"), text), [])
        self.takes(self.schema("model", "--plugin", plugin), text, "plugin")
        self.assertNotEqual(errors(self.schema("model", "--plugin", plugin), text + "wide: 3\n"), [])

    def test_own_groups(self):
        self.write("conf/config.yaml", "defaults: [{db: mysql}, {size: big}]\n")
        self.write("conf/db/mysql.yaml", "port: x\n")
        self.write("conf/size/big.yaml", "# @package _global_\nseed: 3\n")
        self.takes(self.schema("db"), "seed: [1]\n", "any keys")
        self.takes(self.schema("size"), "seed: 3\nx: 1\n", "keys of the root")
        self.assertNotEqual(errors(self.schema("size"), "seed: x\n"), [])
        self.assertIn("mysql", json.dumps(self.schema()))

    def test_groups(self):
        for group in GROUPS:
            self.assertIn(group, self.schema()["properties"].keys() | {"experiment"})
            self.assertEqual(self.schema(group)["title"], f"kiln: a file of group {group}")
        self.assertIn("betas", json.dumps(self.schema("optimizer")))
        self.refused("schema", "optimiser", program="kiln", says=["optimiser", "did you mean \"optimizer\"?"])
        self.refused("schema", "optimiser", program="kiln", says=["optimizer"])
        self.refused("schema", "model", "task", program="kiln", says=["one group"], status=2)


if __name__ == "__main__":
    main()
