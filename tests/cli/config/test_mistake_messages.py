"""The exact messages for common mistakes of new users, from tests/data/mistakes.json."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os

from kilntest import ROOT, TINY, Case, main

CONFIG = ("defaults: [{task: vision}, {datamodule: digits}, {model: mlp}, {optimizer: sgd}, {scheduler: constant}, "
          "{callbacks: default}, {logger: csv}, {trainer: default}, _self_, {experiment: null}]\nlr: 0.1\n"
          "batch_size: 32\n")


class Mistakes(Case):
    def check(self, mistake):
        self.write("conf/config.yaml", CONFIG + mistake.get("config", ""))
        for name, text in mistake.get("files", {}).items():
            self.write("conf/" + name, text)
        err = self.refused(*mistake.get("arguments", []), "--plan", says=mistake["says"],
                           status=mistake.get("status", 1))
        if mistake.get("alone"):
            self.assertNotIn(" errors\n", err)


def add(mistake):
    setattr(Mistakes, "test_" + mistake["name"].replace(" ", "_"), lambda self: self.check(mistake))


class Weights(Case):
    def test_of_other_widths(self):
        self.run_kiln(*TINY, "trainer.max_epochs=1", "kiln.run.dir=first")
        other = [*TINY, "trainer.max_epochs=1", "model.hidden=[24]", "weights=first"]
        self.refused(*other, says=[
            f"argument {len(other)} `weights=first`: weights: ", "does not fit this network",
            "layers.0.weight ([16, 784] in the file, [24, 784] in this network)",
            "weights_strict=false loads the 1 that fit"])
        out, _ = self.run_kiln(*other, "weights_strict=false", "kiln.run.dir=second")
        self.assertIn("layers.0.weight ([16, 784] in the file, [24, 784] in this network)", out)

    def test_that_fit_nowhere(self):
        self.run_kiln(*TINY, "trainer.max_epochs=1", "model=mlp", "kiln.run.dir=first")
        self.refused(*TINY, "model.hidden=[24,24]", "weights=first", says=[
            "weights: nothing in ", " fits this network; different shape: ", "[24, 784] in this network"])

    def test_that_are_not_there(self):
        self.refused(*TINY, "weights=nowhere.safetensors", says=["`weights=nowhere.safetensors`: weights: nowhere"])


with open(os.path.join(ROOT, "tests/data/mistakes.json"), encoding="utf-8") as table:
    for row in json.load(table):
        add(row)

if __name__ == "__main__":
    main()
