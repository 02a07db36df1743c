"""Packages: the source tarball has the same bytes twice, also from itself; the Debian packages have what they should; the
man page and the list of libraries are complete."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import glob
import json
import os
import re
import shutil
import subprocess
import tarfile
import unittest

from kilntest import BUILD, ROOT, SHORT, Case, main, read

VERSION = re.search(r'KILN_VERSION "(.*)"', read(os.path.join(ROOT, "src/kiln/base.h"), "r")).group(1)
ENV = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}


def files_of(folder):
    """The files in a build folder, but for what other tests build there, and when they were written."""
    return {path: os.stat(path).st_mtime_ns for path in glob.glob(folder + "/*")
            if not os.path.isdir(path) and os.path.exists(path)}


class Packages(Case):
    def sh(self, *words, cwd=ROOT, **env):
        done = subprocess.run(words, cwd=cwd, env={**ENV, **env}, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, " ".join(words) + "\n" + done.stdout + done.stderr)
        return done.stdout

    def dist(self, tree, name, **env):
        path = self.path(name)
        self.sh("sh", f"{tree}/tools/package/dist.sh", VERSION, path, cwd="/", **env)
        return path

    def test_dist(self):
        first = self.dist(ROOT, "one.tar.gz", SOURCE_DATE_EPOCH="1700000000")
        os.utime(os.path.join(ROOT, "README.md"))
        second = self.dist(ROOT, "two.tar.gz", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C")
        self.assertEqual(read(first), read(second))
        with tarfile.open(first) as tar:
            members = tar.getmembers()
            tar.extractall(self.path("tree"), filter="fully_trusted")
        names = [member.name for member in members]
        self.assertEqual(names, sorted(names))
        self.assertIn(f"kiln-{VERSION}/src/kiln.h", names)
        self.assertIn(f"kiln-{VERSION}/debian/control", names)
        self.assertFalse([name for name in names if "/build/" in name and "/tests/" not in name], "nothing that was built")
        self.assertEqual({(m.uid, m.gid, m.uname, m.mtime) for m in members}, {(0, 0, "root", 1700000000)})
        # The date of the files is that of the tarball.
        third = self.dist(self.path("tree", f"kiln-{VERSION}"), "three.tar.gz", GIT_CEILING_DIRECTORIES=self.dir)
        self.assertEqual(read(first), read(third))

    def test_versions_agree(self):
        text = read(os.path.join(ROOT, "debian/changelog"), "r")
        self.assertEqual(re.match(r"kiln \((.*?)\)", text).group(1), VERSION)
        needed = self.sh("sh", "tools/deps.sh", "list", "build").split()
        control = read(os.path.join(ROOT, "debian/control"), "r")
        listed = re.search(r"(?s)Build-Depends:\n(.*?)\n\n", control).group(1).replace(",", " ").split()
        missing = set(needed) - set(listed) - {"make", "gcc", "libc6-dev"}
        self.assertEqual(missing, set(), "debian/control lacks packages of tools/deps.sh")
        # A static link takes all of them.
        headers = re.search(r"(?s)Package: libkiln-dev\n.*?Suggests:\n(.*?)\nDescription", control).group(1) + ","
        for package in needed:
            if package.endswith("-dev") and package not in ("libc6-dev", "libxgboost-dev", "libcurl4-openssl-dev",
                                                            "libjpeg62-turbo-dev"):
                self.assertIn(f" {package},", headers)

    def test_list_of_libraries(self):
        words = ["python3", "tools/package/sbom.py", VERSION, f"{BUILD}/kiln", f"{BUILD}/libkiln.so"]
        text = self.sh(*words)
        self.assertEqual(self.sh(*words), text)
        document = json.loads(text)
        self.assertEqual((document["bomFormat"], document["specVersion"]), ("CycloneDX", "1.5"))
        refs = [component["bom-ref"] for component in document["components"]]
        self.assertEqual(len(set(refs)), len(refs))
        linked = re.findall(r"\(NEEDED\).*\[(.+?)\]", self.sh("readelf", "-d", f"{BUILD}/kiln"))
        graph = {item["ref"]: item["dependsOn"] for item in document["dependencies"]}
        for name in linked:
            self.assertIn(name, graph[f"kiln@{VERSION}"])
        for ref, depends in graph.items():
            self.assertLessEqual(set(depends), set(refs), ref)
        for component in document["components"]:
            self.assertRegex(component["hashes"][0]["content"], "^[0-9a-f]{64}$")
        if shutil.which("dpkg"):
            yaml = next(c for c in document["components"] if c["bom-ref"].startswith("libyaml"))
            self.assertRegex(yaml["purl"], r"^pkg:deb/debian/libyaml-0-2@[\d.].*\?arch=\w+$")

    def test_no_path_of_the_sources(self):
        """An object has no path of the folder that it was built in, also not in its debug information."""
        for name in ["src/base/text.o", "src/backend/cpu/isa/losses.base.o", "gen/builtin.o"]:
            path = self.path(name)
            self.sh("make", "-s", "VARIANT=release", "B=" + self.dir, path)
            data = read(path)
            self.assertIn(b".debug_info", data)
            self.assertNotIn(ROOT.encode(), data, path)

    def newcomer(self, root):
        """The program, its pages and the headers of the packages are enough for a component of one's own."""
        self.assertIn(VERSION, self.sh(root + "/usr/bin/kiln", "version"))
        docs = root + "/usr/share/doc/kiln"
        for page in glob.glob(docs + "/**/*.md", recursive=True):
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(page, "r")):
                if "://" not in link:
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), link)), f"{page}: {link}")
        out = self.sh(root + "/usr/bin/kiln", "plugin", "new", "callback", "mine", cwd=self.dir)
        self.assertIn(docs + "/docs/components.md", out)
        self.sh("sh", "mine/test.sh", cwd=self.dir, KILN=f"-I{root}/usr/include", TRAIN=root + "/usr/bin/train")

    @unittest.skipIf(SHORT or not shutil.which("dh") or not shutil.which("fakeroot"), "needs debhelper, in release only")
    def test_deb(self):
        before = files_of(BUILD)
        build = self.path("build")
        shutil.copytree(BUILD, build, ignore=shutil.ignore_patterns("tests", "man"), symlinks=True)
        self.sh("make", "-s", "B=" + build, "WERROR=1", "WITHOUT=parquet", "all", build + "/man/kiln.1")
        sums = []
        for name in ["one", "two"]:
            self.sh("sh", "tools/package/deb.sh", self.path(name), build)
            sums.append({os.path.basename(path): read(path) for path in glob.glob(self.path(name, "*.deb"))})
        self.assertEqual(sorted(re.sub("_.*", "", name) for name in sums[0]), ["kiln", "libkiln-dev", "libkiln0"])
        self.assertTrue(sums[0] == sums[1], "the same bytes twice")
        files = {}
        for path in glob.glob(self.path("one", "*.deb")):
            name = os.path.basename(path).split("_")[0]
            files[name] = set(re.findall(r"(?m) \./(\S+)(?: ->.*)?$", self.sh("dpkg-deb", "-c", path)))
            control = self.sh("dpkg-deb", "-f", path)
            self.assertIn(f"Version: {VERSION}\n", control)
            self.assertRegex(control, r"Depends: .*lib" if name == "kiln" else r"Depends: ")
            root = self.path("root")
            self.sh("dpkg-deb", "-x", path, root)
        for name in ["usr/bin/kiln", "usr/bin/train", "usr/share/man/man1/kiln.1.gz", "usr/share/man/man1/kiln-sweep.1.gz", "usr/share/doc/kiln/docs/config.md",
                     "usr/share/bash-completion/completions/kiln"]:
            self.assertIn(name, files["kiln"])
        self.assertTrue([name for name in files["libkiln0"] if name.endswith("/libkiln.so.0")])
        self.assertIn("usr/include/kiln.h", files["libkiln-dev"])
        self.assertEqual({n for n in files["kiln"] & files["libkiln-dev"] if not n.endswith("/")}, set())
        self.assertEqual(self.sh("dpkg-deb", "-f", glob.glob(self.path("one", "libkiln-dev*"))[0], "Depends"),
                         f"libc6-dev, libkiln0 (= {VERSION})\n")
        self.newcomer(root)
        self.assertFalse(glob.glob(os.path.join(ROOT, "debian/.debhelper")), "nothing is left beside the sources")
        self.assertEqual(files_of(BUILD), before, "other tests run what is there")


if __name__ == "__main__":
    main()
