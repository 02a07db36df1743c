"""Limits of config files: wrong encodings, missing files, and configs beyond the limits of size and depth. Each is rejected
with a message that names the limit. (test_malicious_input.py covers all inputs and bounds their time and memory.)"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import unittest

import kilntest

A_TO_Z = "abcdefghijklmnopqrstuvwxyz"


def bomb(first, item, items):
    """Each line has the one before many times."""
    lines = [f"a: &a {first}"]
    for before, name in zip(A_TO_Z, A_TO_Z[1:10]):
        lines.append(f"{name}: &{name} " + item(",".join(items(before))))
    return "\n".join(lines) + "\n"


class ConfigLimits(kilntest.Case):
    def refused(self, *says, name="config", args=(), **options):
        out, err = self.run_kiln("--cfg", "job", "--resolve", "--config-path", "c", "--config-name", name,
                                 *args, status=1, timeout=60, **options)
        self.assertEqual(out, "")
        for text in says:
            self.assertIn(text, err)
        self.assertLess(len(err), 6000)
        return err

    def refused_text(self, text, *says):
        self.write("c/config.yaml", text)
        return self.refused(*says)

    def test_other_bytes(self):
        cases = [
            (bytes(range(256)) * 20, "c/config.yaml:1:1: byte 0 is not text", "is this another kind of file?"),
            (b"\x7fELF\x02\x01\x01\0", "c/config.yaml:1:1: byte 0 is not text"),
            (b"\x89PNG\r\n\x1a\n\0\0\0", "byte 0 is not text"),
            (b"a: 1\nb: caf\xe9\n", "c/config.yaml:2:7: byte 11 is not text", "YAML in UTF-8"),
            (b"a: 1\0b\n", "c/config.yaml:1:5: byte 4 is not text"),
            (b'a: "\\0"\n', "text with a NUL character"),
            (b"a: {b: [c\n", "c/config.yaml:1:8: this [ is not closed"),
            (b"a: b: c\n", "c/config.yaml:1:5: a second ': ' in the line"),
            (b"a: ${f: 1}\n", "an interpolation with ': ' in it must be quoted"),
            (b"a: [${b}]\n", "inside [...] and {...} an interpolation must be quoted"),
            (b"- a\n- b\n", "a list cannot be the whole config"),
            (b"just text\n", "expected a mapping (key: value), got text"),
        ]
        for data, *says in cases:
            self.refused_text(data, *says)

    def test_no_file(self):
        os.makedirs(self.path("c/config.yaml"))
        self.refused("c/config.yaml: is a folder, not a file")
        os.mkfifo(self.path("c/pipe.yaml"))
        self.refused("c/pipe.yaml: is a FIFO, not a regular file", name="pipe")
        os.symlink("nowhere", self.path("c/link.yaml"))
        self.refused("c/link.yaml: is a link that leads nowhere", name="link")
        os.symlink("loop.yaml", self.path("c/loop.yaml"))
        self.refused("c/loop.yaml: is a link that leads nowhere", name="loop")
        self.refused("there is no config 'nope'", name="nope")

    def test_large_file(self):
        path = self.write("c/config.yaml", "")
        os.truncate(path, 1 << 30)
        self.refused("c/config.yaml: has 1024.0 MiB, a config at most 4; put data into a file of its own")

    def test_depth(self):
        for text in ["x: " + "[" * 10000 + "]" * 10000, "x: " + "{a: " * 10000 + "1" + "}" * 10000,
                     "x:\n  " + "- " * 10000 + "1\n", "".join(" " * i + "a:\n" for i in range(1000)),
                     "a: &a {x: 1}\nb: " + "{<<: " * 1000 + "*a" + "}" * 1000]:
            self.refused_text(text, "nested deeper than 64 levels", "is a bracket left open")

    def test_size(self):
        self.refused_text(bomb("[x,x,x,x,x,x,x,x,x]", lambda s: f"[{s}]", lambda n: ["*" + n] * 9),
                          "c/config.yaml:6:11: more than 200000 values (with aliases expanded)")
        self.refused_text(bomb("{x: 1}", lambda s: "{" + s + "}", lambda n: [f"k{i}: *{n}" for i in range(9)]),
                          "more than 200000 values")
        self.refused_text("x: [" + "1," * 300000 + "1]", "more than 200000 values", "put data into a file")
        self.write("c/g/a.yaml", "".join(f"k{i}: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for i in range(4000)))
        self.refused_text("defaults: [" + ", ".join(f"g/a@k{i}" for i in range(40)) + "]\n",
                          "c/g/a.yaml: the config exceeds 1000000 values with it")

    def test_defaults(self):
        self.write("c/a.yaml", "defaults: [b]\n")
        self.write("c/b.yaml", "defaults: [a]\n")
        self.refused_text("defaults: [a]\n", "c/b.yaml:1:12: defaults: 'a' includes itself")
        self.refused_text("defaults: [config]\n", "'config' includes itself")
        self.write("c/g/h.yaml", "x: 1\n")
        for name, below in zip("abcdefg", "bcdefgh"):
            self.write(f"c/g/{name}.yaml", "defaults: [" + ", ".join(f"{below}@k{i}" for i in range(8)) + "]\n")
        self.refused_text("defaults: [g/a]\n", "more than 64 levels or 5000 configs in defaults lists")
        for i in range(80):
            self.write(f"c/d/n{i}.yaml", f"defaults: [n{i + 1}]\n")
        self.refused_text("defaults: [d/n0]\n", "more than 64 levels or 5000 configs in defaults lists")

    def test_interpolation(self):
        cases = [
            ("a: ${b}\nb: ${a}\n", "a: ${b} refers to itself: a cycle of interpolations"),
            ("a: x${a}\n", "c/config.yaml:1:4: a: x${a} refers to itself"),
            ("a: {b: '${a}'}\n", "contains itself through interpolations"),
            ("a: ['${a}', '${a}']\nb: x${a}\n", "contains itself through interpolations"),
            ("b: x${a}\na: ['${a}', '${a}']\n", " more than 64 "),
            ("a: ${eval:${b} + 1}\nb: ${eval:${a} + 1}\n", "refers to itself"),
            ("a: xxxxxxxxxx\n" + "".join(f"{n}: '{('${' + b + '}') * 10}'\n" for b, n in zip(A_TO_Z, A_TO_Z[1:12])),
             "more than 20000 interpolations for one value"),
            ("a: " + "x" * 700000 + "\nb: ${a}${a}\n", "the text becomes longer than 1 MiB"),
            ("a0: 1\n" + "".join(f"a{i}: ${{a{i - 1}}}\n" for i in range(1, 200)),
             "a chain of more than 64 interpolations; refer to the value at its end"),
            ("a: '" + "${" * 5000 + "x" + "}" * 5000 + "'\n", "nested deeper than 128 levels"),
            ("a: '" + "${oc.select:" * 3000 + "x" + "}" * 3000 + "'\n", "nested deeper than 128 levels"),
            ("a: '${oc.decode:\"" + "[" * 3000 + "\"}'\n", "nested deeper than 64 levels"),
            ("a: ${" + "x" * 2000 + "}\n", "the name in an interpolation is longer than 1024 characters"),
            ("k" * 300 + ": 1\na: ${" + "k" * 300 + "}\n", "a name in it is longer than 255 characters"),
            ("a: ${eval:" + "1+" * 5000 + "1}\n", "longer than 4096 characters; give parts of it keys of their own"),
            ("a: ${oc.env:KILN_NOT_SET}\n", "c/config.yaml:1:4: a: the environment variable KILN_NOT_SET is not set; "
                                            "set it, or give a default: ${oc.env:KILN_NOT_SET,default}"),
            ("defaults: ['g: ${oc.env:KILN_NOT_SET}']\n", "there is no config"),
            ("defaults:\n  - g: ${oc.env:KILN_NOT_SET}\n", "the environment variable KILN_NOT_SET is not set"),
        ]
        for text, says in cases:
            with self.subTest(text[:60]):
                self.refused_text(text, says)


if __name__ == "__main__":
    unittest.main()
