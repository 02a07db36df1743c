"""kiln doctor: processor, kernels, threads, libraries and folders of this machine, and its self-test."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import platform
import re

from kilntest import Case, main

X86 = platform.machine() == "x86_64"
LEVELS = ["base", "avx2", "avx512", "avx512_bf16", "amx"] if X86 else ["base"]


class Doctor(Case):
    def env(self, isa=None):
        own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
        return {**own, "KILN_ISA": isa or "", "OMP_NUM_THREADS": "3"}

    def doctor(self, isa=None):
        return json.loads(self.run_kiln("doctor", "--json", program="kiln", env=self.env(isa))[0])

    def test_page_and_json_agree(self):
        page = self.run_kiln("doctor", program="kiln", env=self.env("base"))[0]
        self.assertNotIn("\033", page)
        report = self.doctor("base")
        self.assertEqual(re.findall(r"(?m)^(\S.*)$", page), list(report))
        words = " ".join(page.split())
        for section in report.values():
            for name, text in section.items():
                if name not in ("memory", "time"):
                    self.assertIn(f"{name} {re.sub(', [^,]* free$', '', text)}", words)

    def test_what_it_says(self):
        report = self.doctor()
        self.assertEqual(report["processor"]["architecture"], platform.machine())
        self.assertEqual(report["threads and memory"]["threads"], "3: set by OMP_NUM_THREADS")
        self.assertTrue(any(name.startswith("libdnnl.so") for name in report["libraries"]))
        version = self.run_kiln("version", program="kiln")[0].split()[1]
        self.assertTrue(report["libraries"]["kiln"].startswith(version))

    def test_self_test(self):
        for level in self.doctor()["processor"]["features"].split(", "):
            found = self.doctor(level)["self-test"]
            for name, most in (("kernels", 1e-5), ("bf16 kernels", 0.05)):
                match = re.match(r"right: .* by (\S+) \(at most", found[name])
                self.assertTrue(match, found[name])
                self.assertLess(0, float(match[1]))
                self.assertLess(float(match[1]), most)
            first, last = map(float, re.match(r"right: .* from (\S+) after .* to (\S+) after", found["training"]).groups())
            self.assertLess(last, first)
        self.assertEqual(os.listdir(self.dir), [], "nothing is left")

    def test_a_failing_self_test(self):
        env = {**self.env(), "TMPDIR": self.path("none")}
        out, err = self.run_kiln("doctor", "--json", program="kiln", env=env, status=1)
        report = json.loads(out)
        self.assertRegex(report["self-test"]["training"], "^wrong: .*none.*: No such file or directory")
        self.assertIn("the self-test found wrong results", err)

    def test_an_empty_tmpdir_is_none(self):
        """Both the self-test and the report then use /tmp."""
        report = json.loads(self.run_kiln("doctor", "--json", program="kiln", env={**self.env(), "TMPDIR": ""})[0])
        self.assertRegex(report["folders that can be written"]["temporary files"], "^yes, /tmp, ")
        self.assertRegex(report["self-test"]["training"], "^right: ")

    def test_folders(self):
        self.write("outputs", "a file")
        state = self.path("state")
        report = json.loads(self.run_kiln("doctor", "--json", program="kiln", env={**self.env(), "XDG_STATE_HOME": state})[0])
        folders = report["folders that can be written"]
        self.assertEqual(folders["runs"], "no: outputs is no folder")
        self.assertRegex(folders["allowed plugins"], f"^yes, {state}/kiln, .* free$")
        self.assertEqual(os.listdir(self.dir), ["outputs"])

    def test_parts(self):
        parts = self.doctor()["parts that need a library"]
        self.assertEqual(list(parts), ["plots", "TensorBoard", "trees", "downloads", "Parquet files", "SQLite databases",
                                       "WebP images", "f64"])
        for name, text in parts.items():
            self.assertRegex(text, "^(yes$|no: .*install)", name)
        linked = "\n".join(self.doctor()["libraries"])
        for name, library in (("plots", "libcairo"), ("TensorBoard", "libprotobuf-c"), ("SQLite databases", "libsqlite3"),
                              ("WebP images", "libwebp")):
            self.assertEqual(parts[name] == "yes", library in linked, name)

    def test_the_cap_decides_the_kernels(self):
        levels = self.doctor()["processor"]["features"].split(", ")
        self.assertEqual(levels, LEVELS[:len(levels)])
        for level in levels:
            report = self.doctor(level)
            self.assertEqual(report["processor"]["in use"], level + ", the cap that KILN_ISA sets")
            loops, products = report["kernels"]["loops over vectors"], report["kernels"]["bf16 products"]
            vectors = {"base": r"\w+ \(base\)", "avx2": "avx2, else .*", "avx512": "avx512, else avx2, else .*"}
            self.assertRegex(loops, "^" + vectors.get(level, vectors["avx512"]))
            bf16 = {"amx": "tiles (amx), else vdpbf16ps (avx512_bf16), else f32 products (base)",
                    "avx512_bf16": "vdpbf16ps (avx512_bf16), else f32 products (base); not in use: tiles (amx)"}
            without = "; not in use: vdpbf16ps (avx512_bf16), tiles (amx)" if X86 else ""
            self.assertEqual(products, bf16.get(level, "f32 products (base)" + without))
        _, err = self.run_kiln("doctor", program="kiln", status=1, env={**os.environ, "KILN_ISA": "avx3"})
        self.assertIn("there is no such level; expected one of base", err)

    def test_openblas_uses_the_features(self):
        """Without a cap too: OpenBLAS alone takes its oldest kernels on a processor newer than itself."""
        default = self.doctor()
        in_use = default["processor"]["in use"].split(",")[0]
        if in_use == "base" or default["libraries"]["OpenBLAS"] == "not installed":
            self.skipTest("no AVX2, or no OpenBLAS")
        core = {"base": "Prescott", "avx2": "Haswell", "avx512": "SkylakeX"}
        for report, level in ((default, in_use), (self.doctor("base"), "base"), (self.doctor("avx2"), "avx2")):
            self.assertTrue(report["libraries"]["OpenBLAS"].endswith(" " + core.get(level, "Cooperlake")))

    def test_openblas_keeps_the_users_choice(self):
        env = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
        report = json.loads(self.run_kiln("doctor", "--json", program="kiln", env=env)[0])
        if not X86 or report["libraries"]["OpenBLAS"] == "not installed":
            self.skipTest("no x86-64, or no OpenBLAS")
        self.assertTrue(report["libraries"]["OpenBLAS"].endswith(" Prescott"))


if __name__ == "__main__":
    main()
