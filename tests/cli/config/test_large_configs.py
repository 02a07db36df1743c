"""Many arguments, keys and items: time and memory grow linearly, not quadratically."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import resource
import subprocess
import unittest

from kilntest import BUILD, SHORT, TINY, Case, main

# Processor time and address space: what takes the square of the number exceeds both by far.
SECONDS, MEMORY = (60, None) if SHORT else (5, 1 << 30)
MANY, MOST = (500, 2000) if SHORT else (10_000, 80_000)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    if MEMORY is not None:  # the address sanitizer reserves terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class Many(Case):
    def setUp(self):
        super().setUp()
        self.write("conf/config.yaml", "tags: [a]\nmore: {}\n")

    def compose(self, *args, program="train", progress=True):
        r = subprocess.run([os.path.join(BUILD, program), *args], cwd=self.dir, capture_output=True, text=True,
                           preexec_fn=limit)
        self.assertEqual((r.returncode, r.stderr if progress else ""), (0, ""), r.stderr[:2000])
        return r.stdout

    def test_items_appended_one_by_one(self):
        for word in "", "t":  # text may name a component
            out = self.compose("--cfg", "job", *[f"tags+={word}{i}" for i in range(MANY)])
            self.assertEqual(out, "tags:\n  - a\n" + "".join(f"  - {word}{i}\n" for i in range(MANY)) + "more: {}\n")

    def test_new_keys(self):
        for word in "1", "x":
            for place in "", "more.":
                out = self.compose("--cfg", "job", *[f"+{place}k{i}={word}" for i in range(MOST)])
                indent = "  " if place else ""
                self.assertTrue(out.endswith("".join(f"{indent}k{i}: {word}\n" for i in range(MOST))), out[-200:])

    def test_the_history_of_each_item_and_key(self):
        out = self.compose("--explain", "tags", *[f"tags+={i}" for i in range(MANY)]).splitlines()
        self.assertEqual(out[0], "tags: [a, " + ", ".join(str(i) for i in range(15)) + ", ...]")
        self.assertEqual(len(out), MANY + 2 + sum(line.startswith("tags[") for line in out) * 2)
        self.assertRegex(out[1], rf"^  set to  \[a, 0, 1, 2, \.\.\.\] +argument {MANY} `tags\+={MANY - 1}`$")
        self.assertRegex(out[MANY - 2], r"^  over    \[a, 0, 1, 2\] +argument 3 `tags\+=2`$")
        self.assertRegex(out[MANY - 1], r"^  over    \[a, 0, 1\] +argument 2 `tags\+=1`$")
        self.assertRegex(out[MANY + 1], r"^  over    \[a\] +conf/config.yaml:1:7$")
        out = self.compose("--explain", "k7", *[f"+k{i}={i}" for i in range(MOST)])
        self.assertEqual(out, "k7: 7\n  set to  7  argument 8 `+k7=7`\n")

    def test_a_change_of_an_item_leaves_the_history(self):
        out = self.compose("--explain", "tags", "tags+=b", "tags+=[{x: 1}, d]", "tags.0=y", "tags.2.x=5", "tags+=e", "tags.-1=z")
        lines = [line.split("  argument")[0].split("  conf")[0].rstrip() for line in out.splitlines()]
        self.assertEqual(lines[:5], ["tags: [y, b, {...}, d, z]", "  set to  [y, b, {...}, d, ...]",
                                     "  over    [y, b, {...}, d]", "  over    [a, b]", "  over    [a]"])
        self.assertIn("tags[0]: y", lines)
        self.assertRegex(out, r"tags\[2\]\.x: 5\n  set to  5  argument 4 .*\n  over    1  argument 2 ")
        self.assertRegex(out, r"tags\[4\]: z\n  set to  z  argument 6 .*\n  over    e  argument 5 ")
        out = self.compose("--cfg", "job", "tags+=b", "tags+=c", "tags.0=n0", "tags-=b", "tags+=d", "~tags.0")
        self.assertEqual(out, "tags:\n  - c\n  - d\nmore: {}\n")

    def test_many_values_in_a_file(self):
        for text in "list:\n" + "  - 1\n" * MOST, "map:\n" + "".join(f"  k{i}: 1\n" for i in range(MOST)):
            self.write("conf/config.yaml", text)
            self.assertEqual(self.compose("--cfg", "job"), text)

    def test_the_record_of_a_run(self):
        """Each append takes a line of its own items in origins.yaml, and all are there again when it is read."""
        os.remove(self.path("conf/config.yaml"))
        os.rmdir(self.path("conf"))
        self.compose(*TINY, "trainer.max_epochs=1", "kiln.run.dir=run", "+notes.tags=[a]",
                           *[f"notes.tags+={i}" for i in range(MANY)], progress=False)
        with open(self.path("run/.kiln/origins.yaml")) as f:
            self.assertIn("\n  - {more: [7], from: 'argument ", f.read())
        self.assertLess(os.path.getsize(self.path("run/.kiln/origins.yaml")), 200 * MANY + 50_000)
        out = self.compose("explain", "run", "notes.tags", program="kiln").splitlines()
        self.assertEqual(out[0], "notes.tags: [a, " + ", ".join(str(i) for i in range(15)) + ", ...]")
        steps = out[1:MANY + 2]
        self.assertRegex(steps[0], rf"^  set to  \[a, 0, 1, 2, \.\.\.\] +argument \d+ `notes\.tags\+={MANY - 1}`$")
        self.assertRegex(steps[MANY - 2], r"^  over    \[a, 0, 1\] +argument \d+ `notes\.tags\+=1`$")
        self.assertRegex(steps[MANY], r"^  over    \[a\] +argument \d+ `\+notes\.tags=\[a\]`$")


if __name__ == "__main__":
    main()
