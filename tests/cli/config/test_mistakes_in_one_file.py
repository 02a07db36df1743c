"""Puts one mistake at a time into each line of a single, complete config file: misspelled keys, wrong values, wrong
shapes. Each is reported before the run, at the right line, with the nearest valid name.
(test_mistakes_in_project.py does the same with groups, defaults lists and arguments.)"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re

from kilntest import SHORT, Case, main

CHOSEN = ["model=cnn", "callbacks=early_stopping",
          "datamodule={_target_:image_folder,root:data,batch_size:${batch_size},size:[32,32],"
          "transforms:[{_target_:crop,size:[28],padding:2},{_target_:flip},"
          "{_target_:normalize,mean:[0.5],std:[0.25]}]}"]
# Names of the user's own choosing, and keys that something refers to.
OWN_NAMES = {"callbacks", "logger", "metrics"}
QUANTITIES = {"limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches", "overfit_batches",
           "val_check_interval"}
VARIABLES = {"lr", "batch_size", "model", "optimizer", "scheduler"}


class Line:
    """A line `key: value` of the config."""

    def __init__(self, number, indent, key, value, path):
        self.number, self.indent, self.key, self.value, self.path = number, indent, key, value, path

    def with_key(self, key):
        return f"{self.indent}{key}: {self.value}".rstrip()

    def with_value(self, value):
        return f"{self.indent}{self.key}: {value}"


def parse(text):
    lines, path = [], []
    for number, row in enumerate(text.splitlines()):
        match = re.match(r"( *(?:- )?)([a-z_]+):(?: (.*))?$", row)
        if match is None:
            continue
        indent, key, value = match.groups()
        depth = len(indent) // 2
        path = path[:depth] + [key]
        lines.append(Line(number, indent, key, value or "", list(path)))
    return lines


def misspelled(key):
    """Two neighbours in the middle swapped, or a letter more."""
    for i in range(len(key) // 2, len(key) - 1):
        if key[i] != key[i + 1] and "_" not in key[i:i + 2]:
            return key[:i] + key[i + 1] + key[i] + key[i + 2:]
    return key[:1] + key


def wrong_values(line):
    """Pairs of a wrong value and what the message must say."""
    value = line.value
    if line.key == "_target_":
        kind, name = value.split("/") if "/" in value else ("", value)
        return [(f"{kind}/{misspelled(name)}" if kind else misspelled(name), [f'"{name}"']),
                ("3", ["expected the name of"]), ("[a]", ["expected"])]
    if line.key in QUANTITIES:
        return [("fast", ["a count", '"fast"']), ("-3", ["-3"]), ("[1.0]", ["a list"]), ("{a: 1}", ["a mapping"])]
    if line.key == "deterministic":
        return [("maybe", ["one of true"]), ("false", ["one of true"])]
    if line.key == "fast_dev_run":
        return [("maybe", ["true or false or a count"]), ('"true"', ["true or false or a count"])]
    if value in ("true", "false"):
        return [("maybe", ["true or false"]), ('"true"', ["quotes"]), ("7", ["true or false"]),
                ("null", ["true or false"])]
    if line.key in ("refresh_s", "plain_s"):
        return [("fast", ["a duration", '"fast"']), ("[1.0]", ["a list"]), ("-1", ["-1"])]
    if re.fullmatch(r"-?\d+", value):
        wrong = [("many", ["an integer", '"many"']), ("1.5", ["an integer", "1.5"]),
                 ("'3'", ["quotes, write 3"]), ("-987654321987654", ["-987654321987654"]),
                 ("{a: 1}", ["a mapping"])]
        return wrong if line.key == "check_val_every_n_epoch" else [*wrong, ("null", ["got null"])]
    if re.fullmatch(r"-?\d+\.\d+", value):
        return [("fast", ["a number", '"fast"']), ("'0.1'", ["quotes, write 0.1"]),
                ("-1e9", ["got -1"]), ("[1.0]", ["a list"])]
    if value in ("min", "max", "step", "auto", "stop") and line.key != "name":
        return [(value + value[-1], [f'"{value}"']), ("{a: 1}", ["one of"])]
    if value.startswith("[") and line.key == "size":
        return [("many", ["an image size", '"many"']), ("[1, x]", ['"x"']), ("[-1e9]", ["-1"]), ("0", ["got 0"])]
    if value.startswith("[") and (line.key == "recompute" or line.path[0] == "lora"):  # of texts, which numbers are, too
        return [("7", ["a list"]), ("[{a: 1}]", ["a mapping"])]
    if value.startswith("["):
        return [("7", ["a list"]), ("[1, x]", ['"x"']), ("[-1e9]", ["-1"])]
    return []


class MistakesInOneFile(Case):
    def setUp(self):
        super().setUp()
        text, _ = self.run_kiln(*CHOSEN, "--cfg", "job")
        self.rows = text.splitlines()
        self.lines = parse(text)
        self.count = 0

    def plant(self, line, row, says, exact=True):
        rows = list(self.rows)
        rows[line.number] = row
        self.write("conf/config.yaml", "\n".join(rows) + "\n")
        _, err = self.run_kiln(status=1)
        place = f"conf/config.yaml:{line.number + 1}:" if exact else "conf/config.yaml:"
        for text in [place] + says:
            self.assertIn(text, err, f"planted: {row}\n{err}")
        self.assertEqual(os.listdir(self.dir), ["conf"], "something was left behind")
        self.count += 1

    def test_the_config_itself_is_right(self):
        self.write("conf/config.yaml", "\n".join(self.rows) + "\n")
        out, _ = self.run_kiln("--cfg", "job")
        self.assertEqual(out.splitlines(), self.rows)

    def test_misspelled_keys(self):
        for line in self.lines[::3 if SHORT else 1]:
            if len(line.path) > 1 and line.path[-2] in OWN_NAMES or len(line.key) < 3:
                continue
            if len(line.path) == 1 and line.key in VARIABLES:
                # Who refers to it finds nothing.
                self.plant(line, line.with_key(misspelled(line.key)), [line.key], exact=False)
            elif line.key != "_target_":
                self.plant(line, line.with_key(misspelled(line.key)), [line.key])
        self.assertGreater(self.count, 15 if SHORT else 45)

    def test_wrong_values(self):
        for line in self.lines[::3 if SHORT else 1]:
            for value, says in wrong_values(line):
                self.plant(line, line.with_value(value), says)
        self.assertGreater(self.count, 40 if SHORT else 150)

    def test_shapes(self):
        """Numbers that do not fit one another."""
        for key, value, says in [("channels", "2", ["1 (grey) or 3"]),
                                 ("size", "[1, 2, 3]", ["got 3 numbers"]),
                                 ("std", "[]", ["one per channel"]),
                                 ("kernel", "4", ["an odd number"])]:
            line = next(x for x in self.lines if x.key == key and x.path[-2] != "trainer")
            self.plant(line, line.with_value(value), says)


if __name__ == "__main__":
    main()
