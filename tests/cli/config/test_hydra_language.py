"""Replays Hydra's answers to small configs (recorded by tests/record/language.py): kiln gives the same values, or
rejects what Hydra rejects."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import unittest

from kilntest import ROOT, Case, main
from language_values import decode, difference, load

ENV = {"CASE_HOME": "/home/x", "CASE_NUM": "10", "CASE_EMPTY": "", "CASE_LIST": "[1, a]", "CASE_BAD": "[1",
       "CASE_FLOAT": "1e3"}


class Language(Case):
    def answer(self, case):
        """What differs from Hydra's answer, in words, or None."""
        for name, text in case["files"].items():
            self.write(name + ".yaml", text.encode())
        process = self.start("--config-path", ".", "--cfg", "job", "--resolve", *case["arguments"],
                             env={"PATH": os.environ["PATH"], **ENV})
        out, err = process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, 1, 2), err)
        if process.returncode != 0:
            self.assertTrue(err.strip(), "refused without a word")
            return None if "refused" in case else f"refused: {err}"
        if "refused" in case:
            return f"accepted as {out}"
        return difference(decode(case["value"]), load(out))


def add(case):
    def test(self):
        found = self.answer(case)
        if "differs" in case:
            self.assertIsNotNone(found, "no longer differs from Hydra; was meant to: " + case["differs"])
        else:
            self.assertIsNone(found, found)

    setattr(Language, "test_" + case["name"].replace(" ", "_").replace(",", ""), test)


with open(os.path.join(ROOT, "tests/data/language.json"), encoding="utf-8") as table:
    for recorded in json.load(table):
        add(recorded)

if __name__ == "__main__":
    main()
