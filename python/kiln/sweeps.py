"""Sweeps: many runs from one call, each in a process of its own."""
from __future__ import annotations

import csv
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from typing import Any, Iterable, Sequence

from ._library import KilnError, encode, lib, take, texts
from .components import Component, _classes
from .config import Messages, Override, literal, words
from .progress import _in_notebook
from .run import Run


class Sweep:
    """The folder of a sweep: its trials and their runs."""

    def __init__(self, folder: str | os.PathLike):
        self.dir = pathlib.Path(folder).resolve()
        if not (self.dir / "results.csv").exists():
            raise FileNotFoundError(f"{self.dir} is no sweep: it has no results.csv")

    def rows(self) -> list[dict[str, Any]]:
        """The rows of results.csv: what each job varied, how it ended, its metric."""
        with open(self.dir / "results.csv", newline="") as file:
            return list(csv.DictReader(file))

    @property
    def results(self) -> Any:
        """The same as a pandas.DataFrame if pandas is installed."""
        try:
            import pandas
        except ImportError:
            return self.rows()
        return pandas.read_csv(self.dir / "results.csv")

    @property
    def runs(self) -> list[Run]:
        """The runs of the jobs that have started, in order."""
        found = [path for path in self.dir.iterdir() if path.name.isdigit() and (path / ".kiln").is_dir()]
        return [Run(path) for path in sorted(found, key=lambda path: int(path.name))]

    def __repr__(self) -> str:
        return f"Sweep({str(self.dir)!r}, {len(self.rows())} jobs)"


def _is_local(cls: type[Component]) -> bool:
    """Whether jobs can't import it."""
    return cls.__module__ == "__main__" or getattr(sys.modules.get(cls.__module__), "__spec__", None) is None


def _local(cls: type[Component]) -> str:
    return (f"{cls.__name__} is defined in this script or notebook; jobs of a sweep are other processes, which can only import it "
            "from a module: move it into a file")


def _modules(given: Iterable[Component]) -> list[str]:
    """The modules of all components, since a config may name any of them."""
    for component in given:
        if _is_local(type(component)):
            raise TypeError(_local(type(component)))
    return sorted({cls.__module__ for cls in _classes.values() if not _is_local(cls)})


def sweep(*overrides: Override, callbacks: Sequence[Component] = (), metrics: Sequence[Component] = (),
          datamodule: Component | None = None, resume: str | os.PathLike | None = None,
          config_path: str | os.PathLike | None = None, config_name: str | None = None,
          config_dirs: Sequence[str | os.PathLike] = (), plugins: Sequence[str | os.PathLike] = (),
          progress: bool = True) -> Sweep:
    """Run a sweep as `train -m` does: overrides may have several values ("lr=0.1,0.01"), a sweeper ("kiln/sweeper=tpe") and so
    on. Components of Python must be in a module that jobs can import, since each is a process of its own.

    Ctrl-C stops the jobs, which save; sweep(resume=sweep.dir) continues. Returns the sweep, also if jobs failed.
    """
    given = [(f"+callbacks.{c.name}", c) for c in callbacks] + [(f"+task.metrics.{m.name}", m) for m in metrics]
    more = [f"{key}={literal({'_target_': f'{c.kind}/{c.name}', **c.options()})}" for key, c in given]
    if datamodule is not None:
        more += [f"datamodule={datamodule.name}",
                 *(f"datamodule.{name}={literal(value)}" for name, value in datamodule.options().items())]
        given.append(("", datamodule))
    request = {"overrides": more + words(overrides), "modules": _modules(c for _, c in given), "path": sys.path,
               "config_path": config_path and os.fspath(config_path), "config_name": config_name,
               "config_dirs": [os.fspath(path) for path in config_dirs], "plugins": [os.path.abspath(path) for path in plugins],
               "resume": resume and os.path.abspath(resume), "progress": progress}
    return Sweep(_run(request))


def _run(request: dict[str, Any]) -> str:
    """Run it in a process that has not computed, and has one thread: jobs are forked from it. Returns its folder."""
    read, write = os.pipe()
    pipe = subprocess.PIPE if _in_notebook() else None
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).resolve().parents[1]),
                                                        *filter(None, [os.environ.get("PYTHONPATH")])])}
    program = "import sys, json, kiln.sweeps; kiln.sweeps._main(int(sys.argv[1]), json.loads(sys.argv[2]))"
    process = subprocess.Popen([sys.executable, "-c", program, str(write), json.dumps(request)], pass_fds=[write],
                               stdout=pipe, stderr=subprocess.STDOUT if pipe else None, text=True, env=env,
                               start_new_session=True)
    os.close(write)
    while True:  # until it has ended, also after Ctrl-C
        try:
            for line in process.stdout or ():
                print(line, end="")
            process.wait()
            break
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
    with open(read) as file:
        answer = json.loads(file.read() or "{}")
    if "dir" not in answer:
        error = answer.get("error", f"the sweep's process ended with status {process.returncode}")
        named = [_local(cls) for (_, name), cls in _classes.items() if re.search(f"['\"]{name}['\"]", error) and _is_local(cls)]
        raise KilnError("\n".join([error, *named]))
    return answer["dir"]


def _main(answer: int, request: dict[str, Any]) -> None:
    """The process of a sweep, which writes its folder to the file `answer`."""
    import ctypes

    from ._registry import Registry
    from .fit import _Env

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: it ends with the program that started it
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # jobs end without flushing
    sys.path[:] = request["path"]
    for module in request["modules"]:
        importlib.import_module(module)
    registry = Registry(request["plugins"])
    env = _Env(registry, [], request["progress"])
    messages, ret = Messages(), ctypes.c_void_p()
    status = lib.kiln_flat_sweep(env.handle, encode(request["config_path"]), encode(request["config_name"]),
                                 texts(request["config_dirs"] or None), texts(request["overrides"]), encode(request["resume"]),
                                 ctypes.byref(ret), messages.handle)
    try:
        messages.check(status)
        reply = {"dir": take(ret)}
    except KilnError as error:
        reply = {"error": str(error)}
    with open(answer, "w") as file:
        json.dump(reply, file)

