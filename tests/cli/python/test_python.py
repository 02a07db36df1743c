"""The tests of the Python package (tests/python), with an interpreter that has numpy."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import subprocess
import unittest

from kilntest import BUILD, ROOT, SHORT, Case

TESTS = pathlib.Path(ROOT, "tests/python")


def python():
    """Debian's numpy is only for its own interpreter."""
    for program in (os.environ.get("PEER"), sys.executable, "/usr/bin/python3"):
        if program and os.path.exists(program) and \
                subprocess.run([program, "-c", "import numpy"], capture_output=True).returncode == 0:
            return program
    return None


@unittest.skipIf(SHORT, "a sanitizer's library can't be loaded by an interpreter without it")
@unittest.skipUnless(python(), "python3-numpy is not installed")
class Python(Case):
    def run_tests(self, name):
        env = {**os.environ, "PYTHONPATH": f"{ROOT}/python:{TESTS}", "KILN_LIBRARY": os.path.join(BUILD, "libkiln.so"),
               "KILN_BUILD": BUILD, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([python(), str(TESTS / name)], cwd=self.dir, env=env, text=True, capture_output=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"Ran \d+ tests?")


for path in sorted(TESTS.glob("test_*.py")):
    setattr(Python, path.stem, lambda self, name=path.name: self.run_tests(name))


if __name__ == "__main__":
    unittest.main()
