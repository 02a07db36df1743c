"""The notebooks of examples/ were executed, and their cells still run; cells tagged `same` give what is stored."""
import ast
import contextlib
import io
import json
import sys
import types
import unittest
from unittest import mock

from pythontest import ROOT, Case


def run(source, names):
    """Run a cell: what it prints, and its last expression as the notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None
    return out.getvalue() + (repr(value) if value is not None else "")


def stored(cell):
    return "".join("".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])
                   for output in cell["outputs"])


class Notebooks(Case):
    def setUp(self):
        super().setUp()
        if "IPython" not in sys.modules:  # what cells show with
            display = types.ModuleType("IPython.display")
            display.Image = lambda path: open(path, "rb").close()
            patch = mock.patch.dict(sys.modules, {"IPython": types.ModuleType("IPython"), "IPython.display": display})
            patch.start()
            self.addCleanup(patch.stop)

    def test_notebooks(self):
        notebooks = sorted((ROOT / "examples/python").glob("*.ipynb"))
        self.assertGreater(len(notebooks), 0)
        for path in notebooks:
            notebook = json.loads(path.read_text())
            self.assertEqual(notebook["nbformat"], 4)
            cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)), path.name)
            names = {"__name__": "__main__"}
            compared = 0
            for cell in cells:
                self.assertFalse([output for output in cell["outputs"] if output["output_type"] == "error"], path.name)
                source = "".join(cell["source"])
                if "plots[0]" in source and not names["run"].plots:  # built without cairo
                    continue
                shown = run(source, names)
                if "same" in cell["metadata"].get("tags", []):
                    self.assertEqual(shown, stored(cell), source)
                    compared += 1
            self.assertGreater(compared, 3)


if __name__ == "__main__":
    unittest.main()
