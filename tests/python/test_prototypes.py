"""The declarations of the package are those of the headers, so that no type can drift."""
import re
import unittest

from pythontest import ROOT

from kiln import _library
from kiln.components import HOOKS


def header_text():
    text = "".join(path.read_text() for path in sorted((ROOT / "src/kiln").rglob("*.h")))
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def normal(prototype):
    """Without attributes, with one blank between words."""
    return re.sub(r"\s+", " ", re.sub(r"\bKILN_(API|NODISCARD)\b", "", prototype)).strip()


class Prototypes(unittest.TestCase):
    def test_functions(self):
        text = header_text()
        declared = {normal(found) for found in re.findall(r"(?:KILN_API|typedef) [^;{}]*?\([^;{}]*\)(?=;)", text)}
        self.assertGreater(len(declared), 800)
        missing = [prototype for prototype in _library.prototypes() if prototype not in declared]
        self.assertEqual(missing, [])
        self.assertGreater(len(_library.prototypes()), 100)

    def test_all_are_used(self):
        sources = "".join(path.read_text() for path in (ROOT / "python/kiln").glob("*.py"))
        for prototype in _library.prototypes():
            name = _library.parse(prototype.removeprefix("typedef "))[1]
            self.assertGreater(len(re.findall(rf"\b{name}\b", sources)), 1, f"{name} is declared, but not used")

    def test_enumerators(self):
        text = header_text()
        dtypes = re.search(r"typedef enum KilnDType \{(.*?)\}", text, re.S)[1]
        names = {"F32": "float32", "I32": "int32", "U8": "uint8", "I64": "int64", "F64": "float64"}
        for number, name in enumerate(re.findall(r"KILN_(\w+)", dtypes)):
            if name in names:
                self.assertEqual(_library.DTYPES[names[name]], number)
        for constant, enumerator in [("RAW_PATH", "KILN_RAW_PATH = "), ("RAW_TEXT", "KILN_RAW_TEXT = "),
                                     ("LOG_STEP", "KILN_LOG_STEP = "), ("LOG_EPOCH", "KILN_LOG_EPOCH = "),
                                     ("LOG_PROG_BAR", "KILN_LOG_PROG_BAR = "), ("MAX_RANK", "define KILN_MAX_RANK "),
                                     ("E_PLUGIN", r"X\(E_PLUGIN, ")]:
            self.assertEqual(int(re.search(enumerator + r"(-?\d+)", text)[1]), getattr(_library, constant), constant)

    def test_hooks(self):
        """All hooks of kiln with a trainer."""
        ops = re.search(r"struct KilnCallbackOps \{(.*?)\n\};", header_text(), re.S)[1]
        self.assertEqual(tuple(re.findall(r"KilnHook \*(\w+);", ops)), HOOKS)

    def test_version(self):
        version = re.search(r'KILN_VERSION "(.*?)"', header_text())[1]
        self.assertEqual(_library.__version__, version)
        self.assertIn(f'version = "{version}"', (ROOT / "python/pyproject.toml").read_text())


if __name__ == "__main__":
    unittest.main()
