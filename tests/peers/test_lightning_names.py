"""docs/lightning.md has a verdict on every public name of Lightning: Trainer arguments, methods and
properties, LightningModule, LightningDataModule, Callback, and every built-in callback, logger and
profiler with its options, and the tuner's. The names are taken from the installed package.
make check-peers PEER=python-that-has-lightning"""
import inspect
import os
import re
import unittest

import lightning.pytorch as L
import torch
from lightning.pytorch import callbacks, loggers, profilers
from lightning.pytorch.tuner import Tuner

DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "lightning.md")


def options(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "args", "kwargs")]


def public(thing, beside=()):
    return [name for name in dir(thing) if not name.startswith("_") and name not in beside]


class Names(unittest.TestCase):
    def setUp(self):
        with open(DOC) as f:
            self.text = f.read()

    def section(self, title):
        """What stands below a heading, up to the next of its kind."""
        found = re.search(rf"(?ms)^(#+) {re.escape(title)}\n(.*?)(?=^\1 |\Z)", self.text)
        self.assertIsNotNone(found, f"docs/lightning.md has no section \"{title}\"")
        return found.group(2)

    def check(self, names, text, what):
        spans = " ".join(re.findall(r"`([^`]*)`", text))
        known = set(re.findall(r"\w+", spans))
        missing = [name for name in names if name not in known]
        self.assertFalse(missing, f"{what}: docs/lightning.md says nothing of {', '.join(missing)}")

    def check_classes(self, package, title):
        text = self.section(title)
        for name in sorted(package.__all__):
            row = re.search(rf"(?m)^\| `{name}` \|.*$", text)
            self.assertIsNotNone(row, f"{title}: no row `{name}`")
            if package is callbacks and name == "LambdaCallback":
                continue  # its options are the hooks
            self.check(options(getattr(package, name).__init__), row.group(0), name)

    def test_trainer_arguments(self):
        self.check(options(L.Trainer.__init__), self.section("Trainer options"), "Trainer options")

    def test_trainer(self):
        self.check(public(L.Trainer), self.section("The trainer's methods and properties"), "Trainer")

    def test_module(self):
        beside = [name for name in public(torch.nn.Module)]
        names = public(L.LightningModule, [name for name in beside if name not in ("forward",)])
        self.check(names, self.section("LightningModule"), "LightningModule")

    def test_datamodule(self):
        self.check(public(L.LightningDataModule), self.section("LightningDataModule"), "LightningDataModule")

    def test_hooks(self):
        self.check(public(L.Callback), self.section("Hooks"), "Callback")

    def test_callbacks(self):
        self.check_classes(callbacks, "Callbacks, option by option")

    def test_loggers(self):
        self.check_classes(loggers, "Loggers")

    def test_profilers(self):
        self.check_classes(profilers, "Profilers")

    def test_tuner(self):
        for name in public(Tuner):
            self.check([name] + options(getattr(Tuner, name)), self.section("Tuner"), name)

    def test_every_row_has_a_verdict(self):
        for title in ["Trainer options", "Hooks", "The trainer's methods and properties", "LightningModule",
                      "LightningDataModule", "Loggers", "Profilers"]:
            rows = [row for row in self.section(title).splitlines() if row.startswith("| `")]
            self.assertTrue(rows, title)
            for row in rows:
                verdict = row.split("|")[2].strip()
                self.assertIn(verdict, ("same", "different", "absent"), row)
                self.assertTrue(verdict == "same" or row.split("|")[3].strip(), f"without a reason: {row}")


if __name__ == "__main__":
    unittest.main()
