"""Tests `make check` itself: steps continue after a failure, processor levels are listed, warnings flags rebuild nothing."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import subprocess

from kilntest import ROOT, TINY, Case, main


class Steps(Case):
    def steps(self, script):
        """Run a script of steps; its exit status and lines."""
        text = f"check={self.path('check')}\n. tests/steps.sh\n{script}\nfinish\n"
        process = subprocess.run(["sh", "-c", text], cwd=ROOT, capture_output=True, text=True)
        return process.returncode, process.stdout.splitlines()

    def test_all_pass(self):
        status, lines = self.steps("step one true\nprintf 'two|true\\nthree|true\\n' | together")
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1], "3 passed, 0 failed")

    def test_a_failure_does_not_hide_the_others(self):
        status, lines = self.steps("step one sh -c 'echo told; exit 3'\nstep two true\n"
                                   "printf 'a|true\\nb|false\\nc|exit 255\\nd|true\\n' | together\n"
                                   "step last true\nnot_run 'the rest' 'one failed'")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "4 passed, 3 failed")
        self.assertIn("told", lines)
        end = lines[lines.index("what failed, and where its output is:") + 1:-1]
        self.assertEqual(sorted(line.split()[1].rstrip(":") for line in end), ["b", "c", "one", "the"])
        self.assertIn("none  the rest: one failed", end)


class Levels(Case):
    def levels(self):
        out, err = self.run_kiln(*TINY, "--plan", status=1, env={**os.environ, "KILN_ISA": "avx3"})
        found = re.search(r"^train: error: environment variable KILN_ISA=avx3: there is no such level; "
                          r"expected one of (base(?:, \w+)*)$", err, re.M)
        self.assertTrue(found, err)
        return found.group(1).split(", ")

    def test_what_is_not_there_is_refused_with_what_is(self):
        levels = self.levels()
        everything = ["base", "avx2", "avx512", "amx"]
        self.assertEqual(levels, everything[:len(levels)])
        for missing in everything[len(levels):]:
            _, err = self.run_kiln(*TINY, "--plan", status=1, env={**os.environ, "KILN_ISA": missing})
            self.assertIn(f"KILN_ISA={missing}: this processor does not have that; expected one of {', '.join(levels)}\n", err)

    def test_each_level_caps_our_kernels_and_onednn(self):
        for level in self.levels()[:3]:
            with self.subTest(level):
                env = {**os.environ, "KILN_ISA": level, "ONEDNN_VERBOSE": "1"}
                out, _ = self.run_kiln(*TINY[2:], "model=cnn", "trainer.max_epochs=1", f"kiln.run.dir={level}", env=env)
                self.assertIn("isa:" + {"base": "Intel SSE4.1", "avx2": "Intel AVX2", "avx512": "Intel AVX-512 with AVX512BW"}[level], out)
                with open(self.path(level, ".kiln/journal.jsonl")) as f:
                    self.assertIn('"machine":"' + {"base": "sse2"}.get(level, level) + ", oneDNN", f.read())

    def test_empty_is_no_cap(self):
        self.run_kiln(*TINY, "--plan", env={**os.environ, "KILN_ISA": ""})


class Objects(Case):
    def test_other_warnings_compile_nothing(self):
        """`make bench` and `make` after `make check` compile nothing again."""
        def make(*args):
            target = self.path("b/src/base/utf8.o")
            return subprocess.run(["make", f"B={self.path('b')}", *args, target], cwd=ROOT, check=True, capture_output=True,
                                  text=True, env={name: os.environ[name] for name in os.environ if name != "MAKEFLAGS"}).stdout

        self.assertIn("CC", make("WERROR=1"))
        self.assertNotIn("CC", make())
        self.assertNotIn("CC", make("WERROR=1"))
        self.assertIn("CC", make("OPT=-O1"))


if __name__ == "__main__":
    main()
