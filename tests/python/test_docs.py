"""The Python blocks of docs/python.md run, one after the other; lines `# ...` after an expression say what it is."""
import contextlib
import io
import pathlib
import re
import unittest

import numpy as np
from pythontest import ROOT, Case


class Docs(Case):
    def test_page(self):
        text = (ROOT / "docs/python.md").read_text()
        blocks = re.findall(r"^(<!-- not run: .*-->\n\n)?```python\n(.*?)^```$", text, re.M | re.S)
        self.assertGreater(len(blocks), 7)
        names = {"__name__": "docs", "np": np}
        pathlib.Path("x.png").write_bytes(__import__("test_model").png(3))
        for marked, code in blocks:
            if marked:
                compile(code, "docs/python.md", "exec")
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, "docs/python.md", "exec"), names)
            for expression, said in re.findall(r"^(\S.*?)  # (.*)$", code, re.M):
                try:
                    value = eval(expression, names)
                except SyntaxError:
                    continue
                self.assertEqual(repr(value), said, expression)


if __name__ == "__main__":
    unittest.main()
