"""make sbom writes what the schema of CycloneDX allows.
make check-peers PEER=python-that-has cyclonedx-python-lib[json-validation]"""
import os
import subprocess
import sys
import unittest

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.join(ROOT, sys.argv.pop(1) if len(sys.argv) > 1 else "build/release")


class Sbom(unittest.TestCase):
    def test_schema(self):
        text = subprocess.run(["python3", os.path.join(ROOT, "tools/package/sbom.py"), "0.1.0", f"{BUILD}/kiln", f"{BUILD}/libkiln.so"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_5).validate_str(text))
        self.assertIsNotNone(JsonStrictValidator(SchemaVersion.V1_5).validate_str(text.replace('"library"', '"book"')))


if __name__ == "__main__":
    unittest.main()
