"""The wheel: the same bytes twice, complete, and enough to train with."""
import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import unittest
import zipfile

from pythontest import BUILD, ROOT, TINY, Case


class Wheel(Case):
    def build(self, folder):
        done = subprocess.run([sys.executable, "-c", "import build_wheel, sys; print(build_wheel.build_wheel(sys.argv[1]))", folder],
                              cwd=ROOT / "python", env={**os.environ, "KILN_BUILD": str(BUILD)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(folder, done.stdout.strip())

    def test_wheel(self):
        (self.dir / "a").mkdir()
        (self.dir / "b").mkdir()
        wheel = self.build(self.dir / "a")
        self.assertEqual(wheel.read_bytes(), self.build(self.dir / "b").read_bytes())
        self.assertRegex(wheel.name, r"^kiln-[0-9.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            record = archive.read(next(name for name in names if name.endswith("/RECORD"))).decode()
            for line in record.splitlines():
                name, digest, size = line.split(",")
                if digest:
                    data = archive.read(name)
                    want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, size), ("sha256=" + want, str(len(data))))
            self.assertEqual({line.split(",")[0] for line in record.splitlines()}, set(names))
            self.assertTrue({"kiln/py.typed", "kiln/libkiln.so", "kiln/__init__.py"} <= set(names))
            archive.extractall("site")
        env = {name: value for name, value in os.environ.items() if name not in ("KILN_LIBRARY", "PYTHONPATH")}
        script = f"import kiln; run = kiln.fit(*{TINY!r}, progress=False); print(kiln.__file__, run.status)"
        done = subprocess.run([sys.executable, "-c", script], env={**env, "PYTHONPATH": str(self.dir / "site")},
                              capture_output=True, text=True)
        self.assertEqual(done.stdout, f"{self.dir}/site/kiln/__init__.py finished\n", done.stderr)

    def test_missing_library(self):
        env = {**os.environ, "KILN_LIBRARY": "/nowhere/libkiln.so", "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run([sys.executable, "-c", "import kiln"], env=env, capture_output=True, text=True)
        self.assertIn("ImportError: kiln: /nowhere/libkiln.so cannot be loaded", done.stderr)
        self.assertIn("KILN_LIBRARY", done.stderr)
        subprocess.run(["cc", "-shared", "-o", "old.so", "-x", "c", "-"], input=b"int kiln_flat_version(void) { return 0; }", check=True)
        done = subprocess.run([sys.executable, "-c", "import kiln"], env={**env, "KILN_LIBRARY": "./old.so"}, capture_output=True, text=True)
        self.assertIn("of another version than this package", done.stderr)


if __name__ == "__main__":
    unittest.main()
