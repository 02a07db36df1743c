"""libkiln.so as the linker sees it: what it exports under which version, and a C++ program that uses it."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import subprocess
import unittest

from kilntest import BUILD, ROOT, SHORT, Case

LIBRARY = os.path.join(BUILD, "libkiln.so")
CXX = """
#include <cstdio>
#include <kiln_embed.h>
int main() {
    KilnRegistry *registry = nullptr;
    KilnError err = {};
    if (kiln_registry_new(&registry, &err) < 0)
        return 1;
    std::printf("%d %s\\n", kiln_registry_find(registry, KILN_KIND_MODEL, "mlp") != nullptr, kiln_modes[0].name);
    kiln_registry_free(registry);
}
"""


def declared(folder, pattern="*.h"):
    """The names that headers below `folder` declare with KILN_API or KILN_API_TABLE."""
    names = set()
    for path in pathlib.Path(ROOT, folder).rglob(pattern):
        text = re.sub(r"/\*.*?\*/|^#.*?[^\\]$", "", path.read_text(), flags=re.S | re.M)
        for declaration in re.findall(r"KILN_API(?:_TABLE)?\b([^;{]*);", text):
            names.update(re.findall(r"\b(kiln_\w+)(?=[(\[,]|$)", declaration.strip()))
    return names


@unittest.skipIf(SHORT, "in release only: the symbols are the same")
class Library(Case):
    def test_exports(self):
        """Exactly what public headers declare, all of version KILN_0."""
        out = subprocess.run(["nm", "-D", "--with-symbol-versions", "--defined-only", LIBRARY], capture_output=True, text=True,
                             check=True).stdout
        symbols = [line.split()[-1] for line in out.splitlines()]
        self.assertEqual([name for name in symbols if not name.endswith("@@KILN_0")], ["KILN_0"])
        exported = {name.split("@@")[0] for name in symbols} - {"KILN_0"}
        public = declared("src/kiln") | declared("src", "kiln*.h")
        self.assertGreater(len(public), 1000)
        self.assertEqual(public - exported - {"kiln_plugin_v1"}, set())  # which plugins define
        self.assertEqual(exported - public - declared("src"), set())

    def test_name(self):
        out = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertIn("[libkiln.so.0]", out)

    def test_in_a_clone(self):
        """The command of the manual; the program finds the library by itself."""
        command = re.search(r"^cc -Isrc .*$", pathlib.Path(ROOT, "docs/embedding.md").read_text(), re.M)[0]
        here = command.replace("build/predict", self.path("predict")).replace("build/release", BUILD.removeprefix(ROOT + "/"))
        self.assertNotEqual(here, command)
        subprocess.run(here, shell=True, cwd=ROOT, check=True)
        linked = subprocess.run(["ldd", self.path("predict")], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"libkiln.so.0 => {BUILD}/libkiln.so.0", linked)

    def test_cxx(self):
        self.write("program.cc", CXX)
        os.symlink(LIBRARY, self.path("libkiln.so.0"))
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(ROOT, "src"), "-o", "program",
                        "program.cc", LIBRARY, "-Wl,-rpath," + self.dir], cwd=self.dir, check=True)
        out = subprocess.run(["./program"], cwd=self.dir, capture_output=True, text=True, check=True).stdout
        self.assertEqual(out, "1 auto\n")


if __name__ == "__main__":
    unittest.main()
