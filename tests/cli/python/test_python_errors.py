"""What is wrong with classes of Python: each message and its next step, hosts that die or hang, and configs of strangers."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import os
import shutil
import signal
import time

from kilntest import TINY, main, read
from pythontest import SHORT_RUN, PythonCase

CLASSES = '''
import dataclasses
import os
import pathlib
import time
from typing import Annotated, Literal, Optional, Sequence


class Rows:
    classes = 2
    def __init__(self, at: int = 5): self.at = at
    def __len__(self): return 100
    def __getitem__(self, i):
        if i == self.at: raise KeyError("column x")
        return {"vector": [1.0, 2.0], "label": i % 2}


class Needs(Rows):
    def __init__(self, path: str): raise ValueError("no such table: " + path)


class Unannotated(Rows):
    def __init__(self, source): pass


class Strange(Rows):
    def __init__(self, source: bytes): pass


class Clash(Rows):
    def __init__(self, batch_size: int = 3): pass


class Dies(Rows):
    def __getitem__(self, i):
        print("out of cheese")
        os._exit(3)


class Aborts(Rows):
    def __getitem__(self, i):
        if i == 50: os.abort()
        return {"vector": [1.0, 2.0], "label": i % 2}


class Hangs(Rows):
    def __getitem__(self, i):
        while i == 50: pass
        return {"vector": [1.0, 2.0], "label": i % 2}


class Slow(Rows):
    def __getitem__(self, i):
        time.sleep(0.2)
        return {"vector": [1.0, 2.0], "label": i % 2}


class Uneven(Rows):
    def __getitem__(self, i): return {"vector": [0.0] * (2 + (i == 7)), "label": 1}


class BadLabel(Rows):
    def __getitem__(self, i): return {"vector": [0.0, 1.0], "label": 7 * (i == 9)}


class NoClasses(Rows):
    classes = None


class Mapping(Rows):
    def __getitem__(self, i): return {"vector": {"a": 1}, "label": 0}


class Exits(Rows):
    def __getitem__(self, i): raise SystemExit("enough")


class Misspelled:
    def on_train_epoch_ends(self, trainer): pass


class Best:
    """Every type of option.

    Args:
        rate (float): how fast
    """
    def __init__(self, rate: Annotated[float, (0.0, 1.0)], n: Annotated[int, range(1, 9)] = 4, flag: bool = False,
                 name: Optional[str] = None, kind: Literal["a", "b"] = "a", where: pathlib.Path = pathlib.Path("x"),
                 sizes: Sequence[int] = (1, 2), weights: dict[str, float] = {}, both: int | None = None, tiny=1e-5,
                 other: Rows = None, big: float = float("inf")):
        print("options", rate, n, flag, name, kind, repr(where), sizes, weights, both, tiny, other, big)
    def on_train_start(self, trainer): pass


@dataclasses.dataclass
class Data:
    """Of a dataclass."""
    rate: float = dataclasses.field(default=0.5, metadata={"min": 0, "max": 1, "help": "how fast"})
    names: list[str] = dataclasses.field(default_factory=lambda: ["x"])
    def on_train_start(self, trainer): print("options", self.rate, self.names)
'''


class Errors(PythonCase):
    def setUp(self):
        super().setUp()
        self.write("wrong.py", CLASSES)
        self.file = os.path.realpath(self.path("wrong.py"))

    def refuses(self, name, *args, says):
        """Nothing runs, no files are left."""
        return self.refused(*SHORT_RUN, f"datamodule=python:{name}", *args, says=says)

    def fails(self, name, *args, says):
        _, err = self.run_kiln(*SHORT_RUN, f"datamodule=python:{name}", *args, status=1)
        for text in says:
            self.assertIn(text, err)
        self.assertEqual(self.hosts(), [])
        return err

    def test_names(self):
        self.refuses("Rows", says=["expected python:MODULE.CLASS, such as python:mydata.Tweets"])
        self.refuses("worng.Rows", says=["Python finds no module worng", "it searches", "run kiln where the module is, install it, or "
                                         "choose another Python with kiln.python="])
        self.refuses("mydatas.Table", says=["Python finds no module mydatas; did you mean mydata?"])
        self.refuses("wrong.Row", says=[f"the module wrong ({self.file}) has no class Row; did you mean Rows?"])
        self.refuses("json.dumps", says=["python:json.dumps: it is no class (function)"])
        self.refuses("wrong.Misspelled", says=["it is no datamodule: a datamodule has __len__ and __getitem__"])
        self.write("broken.py", "x = 1\ndef f(:\n")
        self.refuses("broken.X", says=["SyntaxError", os.path.realpath(self.path("broken.py")) + ":2"])
        self.write("lacks.py", "import no_such_package\n")
        self.refuses("lacks.X", says=["ModuleNotFoundError: No module named 'no_such_package'", "lacks.py:1"])

    def test_kinds(self):
        self.refused(*TINY, "+callbacks.x={_target_: 'python:wrong.Misspelled'}",
                     says=["it is no callback", "did you mean on_train_epoch_end by on_train_epoch_ends?"])
        self.refused(*TINY, "+callbacks.x={_target_: 'python:wrong.Rows'}", says=["its methods are those of a datamodule"])
        self.refused(*TINY, "model=python:wrong.Rows",
                     says=["a model can't be written in Python; these can: datamodule, transform, metric, logger, callback"])

    def test_the_place_of_a_wrong_value(self):
        self.write("conf/datamodule/rows.yaml", "_target_: python:wrong.Rows\nat: x\n")
        self.refused(*SHORT_RUN, "datamodule=rows", says=["conf/datamodule/rows.yaml:2:5: datamodule.at: expected an integer, got "
                                                          "\"x\""])
        self.write("conf/datamodule/rows.yaml", "_target_: python:wrong.Rows\nta: 3\n")
        self.refused(*SHORT_RUN, "datamodule=rows", says=["conf/datamodule/rows.yaml:2:1", "did you mean \"at\"?"])
        self.write("conf/datamodule/rows.yaml", "_target_: python:wrong.Row\n")
        self.refused(*SHORT_RUN, "datamodule=rows", says=["conf/datamodule/rows.yaml:1:11", "has no class Row"])
        self.refuses("wrong.Rows", "datamodule.ta=3", says=["did you mean 'datamodule.at'?"])
        self.refuses("wrong.Needs", says=["datamodule.path: required value missing"])

    def test_options(self):
        self.refuses("wrong.Unannotated", says=["its parameter source has no annotation: write one of int, float"])
        self.refuses("wrong.Strange", says=["its parameter source has the annotation bytes, which no config can give"])
        self.refuses("wrong.Clash", says=["its parameter batch_size has the name of an option that kiln has for every datamodule"])
        best = "+callbacks.b={_target_: 'python:wrong.Best', rate: %s}"
        self.refused(*TINY, best % "2", says=["expected a number from 0 to 1, got 2"])
        self.refused(*TINY, best % "0.1, n: 9", says=["expected an integer from 1 to 8, got 9"])
        self.refused(*TINY, best % "0.1, kind: c", says=["expected one of a, b"])
        out, _ = self.run_kiln(*TINY, best % "0.1, n: 8, name: q, where: p/q, sizes: [3], weights: {a: 2}, both: 7, kind: b, "
                               "flag: true")
        self.assertIn("options 0.1 8 True q b PosixPath('p/q') [3] {'a': 2.0} 7 1e-05 None inf", out)
        out, _ = self.run_kiln(*TINY, best % "0.1")
        self.assertIn("options 0.1 4 False None a PosixPath('x') [1, 2] {} None 1e-05 None inf", out)
        page, _ = self.run_kiln("show", "python:wrong.Best", program="kiln")
        for text in "Every type of option.", "how fast", "int 1..8", "a|b", "float 0..1", "map of float":
            self.assertIn(text, page)

    def test_dataclasses(self):
        self.refused(*TINY, "+callbacks.d={_target_: 'python:wrong.Data', rate: 2}", says=["expected a number from 0 to 1"])
        out, _ = self.run_kiln(*TINY, "+callbacks.d={_target_: 'python:wrong.Data', names: [a, b]}")
        self.assertIn("options 0.5 ['a', 'b']", out)

    def test_exceptions(self):
        self.refuses("wrong.Needs", "datamodule.path=q",
                     says=[f"python:wrong.Needs: ValueError: no such table: q ({self.file}:", "in __init__"])
        err = self.fails("wrong.Rows", says=["sample 5 of train: python:wrong.Rows: KeyError: 'column x'", "in __getitem__"])
        self.assertNotIn("Traceback", err)
        out, err = self.run_kiln(*SHORT_RUN, "datamodule=python:wrong.Rows", "--verbose", status=1)
        self.assertIn("Traceback (most recent call last)", out + err)
        self.fails("wrong.Exits", says=["SystemExit: enough"])

    def test_samples(self):
        self.fails("wrong.Uneven", says=["sample 7 of train: python:wrong.Uneven: \"vector\" is [3]; expected [2]", "\"length\": N"])
        self.fails("wrong.BadLabel", says=["sample 9 of train: python:wrong.BadLabel: \"label\" is 7; expected 0 to 1"])
        self.refuses("wrong.NoClasses", says=["give the class an attribute `classes`"])
        self.refuses("wrong.Mapping", says=["\"vector\" of a sample is a value of the type dict"])

    def test_a_process_that_dies_or_hangs(self):
        self.fails("wrong.Dies", says=["python:wrong.Dies: its Python process ended in", "(exit status 3); the last that it printed: "
                                       "out of cheese"])
        self.fails("wrong.Aborts", says=["python:wrong.Aborts: its Python process ended in __getitem__ (killed by SIGABRT)"])
        begun = time.monotonic()
        self.fails("wrong.Hangs", "datamodule.timeout=1s",
                   says=["python:wrong.Hangs: no answer from __getitem__ in 1 s; its process was ended", "option timeout"])
        self.assertLess(time.monotonic() - begun, 30)

    def test_no_host_outlives_kiln(self):
        for name in "Slow", "Hangs":
            process = self.start(*SHORT_RUN, f"datamodule=python:wrong.{name}")
            self.wait_for(lambda: len(self.hosts()) == 1 and os.path.isdir(self.path("outputs")), process)
            process.kill()
            process.communicate()
            end = time.monotonic() + 10
            while self.hosts() and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(self.hosts(), [], name)
            shutil.rmtree(self.path("outputs"))

    def test_an_interrupt_stops_while_python_works(self):
        process = self.start(*SHORT_RUN, "datamodule=python:wrong.Slow", "batch_size=2")
        self.wait_for(lambda: os.path.isdir(self.path("outputs")), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.hosts(), [])

    def test_python_is_missing_or_another(self):
        os.environ["KILN_PYTHON"] = "/no/such/python"
        self.refuses("wrong.Rows", says=["python:wrong.Rows needs Python, and there is no /no/such/python: install it", "kiln.python="])
        self.run_kiln(*TINY)  # which needs none
        shutil.copy("/bin/false", self.path("false"))
        self.refuses("wrong.Rows", f"kiln.python={self.path('false')}", says=["its Python process ended in", "exit status 1"])
        out, _ = self.run_kiln(*SHORT_RUN, *self.table, f"kiln.python={sys.executable}")
        self.assertIn("finished", out)

    def test_numpy_is_missing(self):
        self.write("numpy.py", "raise ImportError('not here')\n")
        self.write("image.py", "class T:\n    def __call__(self, image): return image\n")
        out = self.fit("run", *self.table)  # lists of numbers need none
        self.assertIn("finished", out)
        for i in range(8):
            self.write(f"images/{'train' if i < 6 else 'val'}/{'ab'[i % 2]}/{i}.png", read(self.png_path()))
        _, err = self.run_kiln("task=vision", "model=linear", "datamodule=image_folder", "datamodule.root=images", "trainer.threads=1",
                               "datamodule.transforms=['python:image.T']", "test=false", status=1)
        self.assertIn("python:image.T: a transform of Python needs numpy, which this Python lacks (not here): install it (pip install "
                      "numpy; Debian: apt install python3-numpy), or choose another Python with kiln.python=", err)

    def png_path(self):
        from kilntest import png

        return self.write("one.png", png(8, 8))


class Strangers(PythonCase):
    """A run folder of somebody else's names a class."""

    def setUp(self):
        super().setUp()
        self.write("mydata.py", read(self.path("mydata.py"), "r") + "\nopen('RAN', 'a').write('x')\n")
        self.fit("run", *self.table)
        os.remove(self.path("RAN"))
        self.own = os.environ["XDG_STATE_HOME"]

    def tearDown(self):
        os.environ["XDG_STATE_HOME"] = self.own
        super().tearDown()

    def another_user(self):
        os.environ["XDG_STATE_HOME"] = self.path("state")

    def test_a_class_that_this_user_has_run_is_run_again(self):
        self.run_kiln("eval", "run", "split=val", program="kiln")
        self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertTrue(os.path.exists(self.path("RAN")))

    def test_any_other_is_refused_before_its_code_runs(self):
        self.another_user()
        for args in ["eval", "run", "split=val"], ["train", "resume=run"]:
            _, err = self.run_kiln(*args, program="kiln", status=1)
            self.assertIn("python:mydata.Table is named by the config of a run, or one that is not your own project's", err)
            self.assertIn("you have not loaded it before", err)
            self.assertFalse(os.path.exists(self.path("RAN")))
        self.write("extra.py", "class Extra:\n    def on_validation_end(self, trainer): print('extra is mine')\n")
        _, err = self.run_kiln("eval", "run", "split=val", "+callbacks.extra=python:extra.Extra", program="kiln", status=1)
        self.assertIn("python:mydata.Table is named", err)  # not what the argument names
        self.assertNotIn("python:extra.Extra is named", err)
        self.run_kiln("eval", "run", "split=val", "--trust", program="kiln")
        self.assertTrue(os.path.exists(self.path("RAN")))

    def test_jobs_of_a_sweep_folder(self):
        sweep = ["-m", *SHORT_RUN, "datamodule=python:mydata.Table,python:second.Table", "datamodule.train=late.csv",
                 "datamodule.val=val.csv", "kiln.sweep.dir=sweep"]
        self.write("second.py", read(self.path("mydata.py"), "r"))
        out, err = self.run_kiln(*sweep, status=1)
        self.assertIn("FileNotFoundError: [Errno 2] No such file or directory: 'late.csv'", out + err)
        shutil.copy(self.path("train.csv"), self.path("late.csv"))
        self.another_user()
        os.remove(self.path("RAN"))
        out, err = self.run_kiln("-m", "--resume", "sweep", "--retry-failed", status=1)
        self.assertIn("is named by the config of a run, or one that is not your own project's", out + err)
        self.assertFalse(os.path.exists(self.path("RAN")))
        os.environ["XDG_STATE_HOME"] = self.own
        self.run_kiln("-m", "--resume", "sweep", "--retry-failed")

    def test_a_changed_module_is_refused_and_a_resumed_run_says_so(self):
        self.write("mydata.py", read(self.path("mydata.py"), "r") + "\n# changed\n")
        _, err = self.run_kiln("resume=run", status=1)
        self.assertIn("or it has changed since; allow it with --trust", err)
        self.run_kiln(*SHORT_RUN, *self.table, "kiln.run.dir=other")  # the user's own command
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=3")
        self.assertIn("mydata.py is not the one that was used before", out)

    def test_a_config_in_a_run_folder_names_no_program(self):
        self.another_user()
        self.write("run/.kiln/config.yaml", read(self.path("run/.kiln/config.yaml"), "r") + "\nkiln:\n  python: /bin/false\n")
        _, err = self.run_kiln("--config-path", "run/.kiln", status=1)
        self.assertIn("is no config of your own project, and names a program with kiln.python", err)

    def test_a_module_in_a_run_folder_is_not_found(self):
        self.write("run/evil.py", "open('RAN', 'w')\nclass X:\n    def __len__(self): return 1\n    def __getitem__(self, i): pass\n")
        _, err = self.run_kiln(*SHORT_RUN, "datamodule=python:evil.X", status=1, cwd=self.path("run"))
        self.assertIn("this folder is not searched, since it is that of a run", err)
        self.assertFalse(os.path.exists(self.path("run/RAN")))


if __name__ == "__main__":
    main()
