"""`make install`: programs, plugins and the built-in components build from the installed files, and no link in the
installed pages is broken."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import glob
import os
import re
import subprocess
import tempfile
import unittest

from kilntest import BUILD, ROOT, SHORT, TINY, png

VARIANT = os.path.basename(BUILD)


@unittest.skipIf(SHORT, "in release only: what is installed is the same")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="kiln-install-")
        cls.root, cls.prefix = cls._folder.name, os.path.join(cls._folder.name, "prefix")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(["make", "-s", "WERROR=1", "VARIANT=" + VARIANT, "PREFIX=" + cls.prefix, "install"],
                              cwd=ROOT, env=env, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.docs = os.path.join(cls.prefix, "share/doc/kiln")
        # Nothing else leads to the library.
        cls.env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(cls.prefix, "lib/pkgconfig"),
                   "PATH": os.path.join(cls.prefix, "bin") + ":" + os.environ["PATH"]}
        cls.env.pop("LD_LIBRARY_PATH", None)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=self.root)

    def sh(self, script, cwd=None):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=cwd or self.dir, env=self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(done.returncode, 0, script + "\n" + done.stdout)
        return done.stdout

    def embed(self, link):
        self.sh(f"cc {self.docs}/examples/embed/embed.c -o embed {link}")
        out = self.sh("./embed %s trainer.max_steps=2 test=false kiln.run.dir=run" % " ".join(TINY))
        self.assertIn("finished: ", out)
        # Two threads, four samples each.
        self.sh(f"cc {self.docs}/examples/embed/predict.c -o predict -pthread {link}")
        lines = sorted(self.sh("./predict run").splitlines())
        self.assertEqual([line[:3] for line in lines], [f"{i}: " for i in range(8)])
        for line in lines:
            self.assertTrue(0.0 < float(line[3:]) < 1.0, line)
        self.assertEqual(sorted(self.sh("./predict run").splitlines()), lines)
        return self.sh("ldd embed")

    def test_shared(self):
        """Found after `make install`, without LD_LIBRARY_PATH."""
        self.assertIn(self.prefix + "/lib/libkiln.so.0", self.embed("$(pkg-config --cflags --libs kiln)"))

    def test_static(self):
        """--static names every library that libkiln.a needs."""
        libraries = self.embed("$(pkg-config --static --cflags --libs kiln | sed 's/-lkiln/-l:libkiln.a/')")
        self.assertNotIn("libkiln", libraries)

    def test_arrays(self):
        """A program that trains and predicts on arrays, built and run by the lines of its comment."""
        text = pathlib.Path(self.docs, "examples/embed/arrays.c").read_text()
        build = re.search(r"^ \*   (cc .*)$", text, re.M).group(1).replace("cc ", "cc -Wall -Wextra -Werror ")
        run = re.search(r"^ \*   (\./arrays .*?)(?: \*/)?$", text, re.M).group(1)
        self.sh(build.replace("arrays.c", f"{self.docs}/examples/embed/arrays.c"))
        out = self.sh(run + " seed=1 datamodule.standardize=true")
        right = int(re.match(r"(\d+) of 500 right, in both threads\n$", out).group(1))
        self.assertGreater(right, 480)
        self.assertEqual(self.sh(run + " seed=1 datamodule.standardize=true"), out)
        self.sh("! ./arrays trainer.limit_train_batches=1 trainer.limit_val_batches=1 trainer.max_epochs=1 2>err")  # on images
        self.assertIn("an array f32 [2] is no image", self.sh("cat err"))

    def test_loop(self):
        """A loop of one's own, built by the line of its comment: its log and rows come by callback, and it ends early."""
        source = pathlib.Path(self.docs, "examples/embed/loop.c")
        build = re.search(r"^ \*   (cc .*)$", source.read_text(), re.M).group(1).replace("cc ", "cc -Wall -Wextra -Werror ")
        self.sh(build.replace("loop.c", str(source)))
        out = self.sh("./loop %s lr=0.1 seed=1 trainer.max_epochs=3 kiln.run.dir=run" % " ".join(TINY))
        self.assertEqual(len(re.findall(r"^after epoch \d: val/loss \d\.\d+, best \d\.\d+$", out, re.M)), 3, out)
        self.assertRegex(out, r"(?m)^step 24: val/loss \d\.\d+$")
        self.assertIn("finished: " + self.dir + "/run", out)
        out = self.sh("./loop %s lr=0.1 seed=1 trainer.max_epochs=200 kiln.run.dir=long" % " ".join(TINY))
        self.assertIn("stopped: ", out)

    def test_length_of_examples(self):
        for path in glob.glob(self.docs + "/examples/embed/*.c"):
            self.assertLess(len(pathlib.Path(path).read_text().splitlines()), 80, path)

    def test_built_in_components(self):
        """They need the installed headers alone, as a plugin does: no other folder is searched, and no feature of the system
        beyond POSIX."""
        patterns = re.search(r"^COMPONENTS := \$\(sort \$\(wildcard (.*?)\)\)$", pathlib.Path(ROOT, "Makefile").read_text(),
                             re.M | re.S).group(1).replace("\\", " ").split()
        files = [path for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern))]
        self.assertTrue(all(glob.glob(os.path.join(ROOT, pattern)) for pattern in patterns), patterns)
        self.assertGreater(len(files), 150)
        for define in ["", "-DKILN_BUILD_PLUGIN"]:
            self.sh(f"gcc -std=c17 -D_POSIX_C_SOURCE=200809L {define} -fsyntax-only -Wall -Wextra -Werror "
                    f"-I$(pkg-config --variable=includedir kiln) {' '.join(files)}")

    def test_headers_alone(self):
        """Each installed header compiles first in a file, in C11 and in C++17."""
        include = os.path.join(self.prefix, "include")
        headers = glob.glob(include + "/**/*.h", recursive=True)
        sources = {os.path.relpath(path, os.path.join(ROOT, "src"))
                   for path in [*glob.glob(ROOT + "/src/*.h"), *glob.glob(ROOT + "/src/kiln/**/*.h", recursive=True)]}
        self.assertEqual({os.path.relpath(path, include) for path in headers}, sources)
        for compiler in ["gcc -std=c11 -x c", "g++ -std=c++17 -x c++"]:
            self.sh(f"{compiler} -fsyntax-only -Wall -Wextra -Werror -I$(pkg-config --variable=includedir kiln) "
                    + " ".join(headers))

    def test_plugin(self):
        self.sh(f"cc -std=c17 -O2 -fPIC -shared -fvisibility=hidden -DKILN_BUILD_PLUGIN $(pkg-config --cflags kiln) "
                f"-o resmlp.so {self.docs}/examples/plugin/resmlp.c")
        self.sh("train --plugin ./resmlp.so model=resmlp model.width=16 trainer.max_steps=2 test=false "
                "datamodule.train_count=64 datamodule.val_count=16")

    def test_components_of_the_pages(self):
        """The components of the manual, one of each kind, built by its line and run by its commands."""
        pages = [os.path.join(self.docs, "docs/components.md"), *sorted(glob.glob(self.docs + "/docs/components/*.md"))]
        text = "".join(pathlib.Path(page).read_text() for page in pages)
        line = re.search(r"^    (cc -std=c17 .*)$", text, re.M).group(1).replace("cc ", "cc -Wall -Wextra -Werror ")
        kinds = set()
        for code in re.findall(r"^```c\n(.*?)^```$", text, re.M | re.S):
            name = re.match(r"/\* (\w+)\.c: ", code).group(1)
            kinds.add(re.search(r"\.kind = KILN_KIND_(\w+)", code).group(1))
            pathlib.Path(self.dir, name + ".c").write_text(code)
            self.sh(line.replace("target", name))
        table = pathlib.Path(ROOT, "src/kiln/field.h").read_text()
        self.assertEqual(kinds, set(re.findall(r"^    X\((\w+), \"", table, re.M)))
        for i, split in enumerate(["train", "val", "test"] * 2):
            folder = os.path.join(self.dir, "DIR", split, "ab"[i // 3])
            os.makedirs(folder)
            pathlib.Path(folder, "x.png").write_bytes(png(8, 8, (40 * i, 90, 200)))
        scripts = re.findall(r"^<!-- not run: tests/cli/build/test_install.py .*?\n\n(.*?)\n\n", text, re.M | re.S)
        self.assertGreater(len(scripts), 7)
        out = "".join(self.sh(re.sub(r"^    cc .*\n", "", script).replace("train --", "train seed=1 --")) for script in scripts)
        self.assertIn("val/loss is ", out)  # target ended its run
        self.assertIn("was better after epoch", out)  # racing stopped a trial
        self.assertTrue(os.path.exists(os.path.join(self.dir, "ranks/summary.json")))
        logged = "".join(path.read_text() for path in pathlib.Path(self.dir).glob("**/metrics.csv"))
        self.assertIn("val/margin", logged)
        self.assertTrue(list(pathlib.Path(self.dir).glob("**/metrics.tsv")))

    def test_new_components(self):
        """What `kiln plugin new` writes, of each kind, builds at once, trains at once, ends a sweep over its options, and
        passes its check."""
        table = pathlib.Path(ROOT, "src/kiln/field.h").read_text()
        self.sh("mkdir lab; for i in 1 2 3 4 5 6 7 8; do printf '0 0.%d 0.1\\n1 2.%d 1.9\\n' $i $i >>lab/train.txt; done; "
                "cp lab/train.txt lab/val.txt")
        for kind in [*re.findall(r'^    X\(\w+, "(\w+)"', table, re.M), "operation", "file_datamodule"]:
            out = self.sh(f"kiln plugin new {kind} my_{kind}")
            self.assertTrue(os.path.exists(re.search(self.docs + r"/docs/[\w/]+\.md", out).group()), out)
            self.sh(f"sed -i 's/-Wextra/-Wextra -Werror/' my_{kind}/Makefile; sh my_{kind}/test.sh")
            option = {"strategy": "strategy.path=meet", "file_datamodule": "datamodule.root=lab"}.get(kind, "")
            self.assertIn("0 skipped, 0 failed", self.sh(f"kiln plugin check my_{kind}/my_{kind}.so {option}"))

    def test_flags(self):
        """Programs and plugins need no headers but kiln's."""
        self.assertEqual(self.sh("pkg-config --cflags kiln").split(), [f"-I{self.prefix}/include"])

    def test_links(self):
        """Links of the pages, and the files that the README and the manual name."""
        missing = []
        for page in glob.glob(self.docs + "/**/*.md", recursive=True):
            with open(page) as file:
                for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", file.read()):
                    if "://" not in link and not os.path.exists(os.path.join(os.path.dirname(page), link)):
                        missing.append(f"{os.path.relpath(page, self.docs)}: {link}")
        self.assertEqual(missing, [])

    def test_prefix_of_the_system(self):
        """In /usr the loader looks by itself; under a DESTDIR nothing is run."""
        subprocess.run(["make", "-s", "WERROR=1", "VARIANT=" + VARIANT, "PREFIX=/usr", "DESTDIR=" + self.dir, "install"],
                       cwd=ROOT, check=True, capture_output=True)
        with open(os.path.join(self.dir, "usr/lib/pkgconfig/kiln.pc")) as file:
            text = file.read()
        self.assertIn("prefix=/usr\n", text)
        self.assertNotIn("rpath", text)


if __name__ == "__main__":
    unittest.main()
