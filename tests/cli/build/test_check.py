"""Tests `make check` itself: its steps, its checks of names and pointers, processor levels, and rebuilding."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import platform
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


class SourceChecks(Case):
    """Each check of the sources fails on what it looks for, and only on that."""

    def check(self, tool, files, *expected):
        for name, text in files.items():
            self.write("tree/" + name, text)
        process = subprocess.run(["python3", f"{ROOT}/tools/{tool}", self.path("tree")], capture_output=True, text=True)
        lines = process.stdout.splitlines()
        if expected:
            self.assertEqual((process.returncode, lines), (1, list(expected)))
        else:
            self.assertEqual((process.returncode, len(lines)), (0, 1), lines)

    def names(self, files, *expected):
        self.check("check_names.py", files, *expected)

    def pointers(self, files, *expected):
        self.check("check_pointers.py", files, *expected)

    def test_the_tree_is_clean(self):
        for tool in ["check_names.py", "check_pointers.py"]:
            process = subprocess.run(["python3", f"{ROOT}/tools/{tool}"], capture_output=True, text=True)
            self.assertEqual(process.returncode, 0, process.stdout)

    def test_one_name_one_type(self):
        first = {"src/a/x.h": "typedef struct KilnX KilnX;\nstruct KilnX {\n    int a;\n};\n"}
        self.names({**first, "src/a/y.h": "typedef struct KilnX KilnX; /* x.h */\n"})
        says = "src/b/z.c:1: type KilnX is also defined at src/a/x.h:2; rename one of them"
        for definition in ["typedef struct KilnX {\n    int b;\n} KilnX;\n", "struct KilnX {\n    int b;\n};\n",
                           "typedef int KilnX;\n", "typedef int (*KilnX)(void);\n", "typedef int KilnX(void);\n",
                           "enum KilnX {\n    A\n};\n"]:
            with self.subTest(definition):
                self.names({"src/b/z.c": definition}, says)
        self.names({"src/b/z.c": "typedef struct {\n    int b;\n} KilnX;\n"}, says.replace("z.c:1", "z.c:3"))
        self.names({"src/b/z.c": "/* struct KilnX {\n */\n"})

    def test_folders_have_a_limit(self):
        files = {f"src/a/f{i}.c": "" for i in range(28)}
        self.names(files)
        self.names({"src/a/one_more.h": ""}, "src/a: 29 source files, more than 28; split the folder")

    def test_one_name_one_file(self):
        self.names({"src/a/x.c": "", "src/a/x.h": "", "src/kiln/x.h": "", "src/cli/commands/x.c": "",
                    "src/nn/op.c": "", "src/graph/ops/op.c": "", "src/backend/ref/op.c": ""})
        self.names({"src/b/x.c": ""},
                   "x.c, x.h: files of this name are in src/a, src/b, src/cli/commands, src/kiln; rename all but one")

    def test_pointers_to_nothing(self):
        tree = {"src/a/x.c": "/* See y.c, a/y.c, kiln_y, kiln_z_*, KilnY, NAME.c. */\n",
                "src/a/y.c": "int kiln_y, kiln_z_one;\ntypedef struct KilnY KilnY;\nint in_code = \"gone.c\" != 0;\n",
                "docs/page.md": "`src/a/y.c`, src/a/, kiln_y() and tests/run.sh\n", "tests/run.sh": "",
                "tests/t.py": '"""The table of y.c."""\nx = "gone.c"  # see run.sh\n', "Makefile": "# y.c\nall: gone.c\n"}
        self.pointers(tree)
        for file, text, says in [
                ("src/a/x.c", "int a; /* In gone.c. */\n", "1: no file gone.c"),
                ("src/a/x.c", "/* In b/y.c,\n * as in src/b/. */\n", None),
                ("src/a/x.h", "/* Of KilnGone. */\n", "1: no identifier KilnGone"),
                ("docs/page.md", "Call\n`kiln_gone()`.\n", "2: no identifier kiln_gone"),
                ("docs/page.md", "All `kiln_gone_*`.\n", "1: no identifier kiln_gone_"),
                ("docs/page.md", "In docs/gone.md.\n", "1: no file docs/gone.md"),
                ("tests/t.py", "x = 1  # as gone.py\n", "1: no file gone.py"),
                ("tests/t.py", '"""As\n\ngone.py."""\n', "3: no file gone.py"),
                ("Makefile", "# In gone.sh\n", "1: no file gone.sh")]:
            with self.subTest(file + text):
                lines = [f"{file}:{says}"] if says else [f"{file}:1: no file b/y.c", f"{file}:2: no file or folder src/b"]
                self.pointers({**tree, "src/a/x.h": "", file: text}, *lines)


X86 = platform.machine() == "x86_64"


class Levels(Case):
    def levels(self):
        out, err = self.run_kiln(*TINY, "--plan", status=1, env={**os.environ, "KILN_ISA": "avx3"})
        found = re.search(r"^train: error: environment variable KILN_ISA=avx3: there is no such level; "
                          r"expected one of (base(?:, \w+)*)$", err, re.M)
        self.assertTrue(found, err)
        return found.group(1).split(", ")

    def test_what_is_not_there_is_refused_with_what_is(self):
        levels = self.levels()
        everything = ["base", "avx2", "avx512", "avx512_bf16", "amx"] if X86 else ["base"]
        self.assertEqual(levels, everything[:len(levels)])
        for missing in everything[len(levels):]:
            _, err = self.run_kiln(*TINY, "--plan", status=1, env={**os.environ, "KILN_ISA": missing})
            self.assertIn(f"KILN_ISA={missing}: this processor does not have that; expected one of {', '.join(levels)}\n", err)

    def test_each_level_caps_our_kernels_and_onednn(self):
        for level in self.levels()[:4]:
            with self.subTest(level):
                env = {**os.environ, "KILN_ISA": level, "ONEDNN_VERBOSE": "1"}
                out, _ = self.run_kiln(*TINY[2:], "model=cnn", "trainer.max_epochs=1", f"kiln.run.dir={level}", env=env)
                if X86:
                    self.assertIn("isa:" + {"base": "Intel SSE4.1", "avx2": "Intel AVX2", "avx512": "Intel AVX-512 with AVX512BW",
                                            "avx512_bf16": "Intel AVX-512 with Intel DL Boost and bfloat16 support"}[level],
                                  out)
                with open(self.path(level, ".kiln/journal.jsonl")) as f:
                    self.assertIn('"machine":"' + {"base": "sse2" if X86 else "neon", "avx512_bf16": "avx512 with avx512_bf16"}.get(level, level) + ", oneDNN", f.read())

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
