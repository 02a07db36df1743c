"""Past runs, from their folders."""
from __future__ import annotations

import csv
import json
import os
import pathlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._library import encode, lib, text_of
from .config import Config, Override, compose_words

if TYPE_CHECKING:
    from .model import Model


@dataclass(frozen=True)
class Checkpoint:
    """A saved state of a run: its folder, where in the run it was saved, and the links to it ("best", "last")."""

    path: pathlib.Path
    epoch: int
    step: int
    links: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.path.name


def _cell(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


class Run:
    """A run folder: its config, metrics, checkpoints and plots.

    >>> run = kiln.Run("outputs/2026-11-20/21-03-11")
    >>> run.config["optimizer.lr"], run.metrics["val/loss"]
    """

    def __init__(self, folder: str | os.PathLike = "last"):
        path = pathlib.Path(folder)
        if not path.is_dir() and str(folder) in ("last", "best"):
            path = pathlib.Path(text_of(lib.kiln_checkpoint_resolve, encode(folder), b"outputs")).parents[1]
        if not (path / ".kiln").is_dir():
            raise FileNotFoundError(f"{path} is no run folder: there is no {path / '.kiln'}")
        self.dir = path.resolve()

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json: status, last and best metrics, times; {} while the run trains."""
        try:
            return json.loads((self.dir / "summary.json").read_text())
        except FileNotFoundError:
            return {}

    @property
    def status(self) -> str:
        """ "finished", "stopped", "interrupted", "failed", or "" for a run that has not ended."""
        return self.summary.get("status", "")

    @property
    def config(self) -> Config:
        """The values that the run was trained with."""
        return compose_words(None, [], self.dir / ".kiln", "config")

    def explain(self, key: str = "") -> str:
        """Where the value of `key` came from."""
        return text_of(lib.kiln_flat_explain_run, encode(self.dir), encode(key))

    @property
    def metrics(self) -> Any:
        """The rows of metrics.csv: a pandas.DataFrame if pandas is installed, else a dict of lists. Values that a row does not
        have are NaN, or None in lists."""
        rows = self.rows()
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    def rows(self) -> dict[str, list[Any]]:
        """The same as a dict of lists, with or without pandas."""
        path = self.dir / "metrics.csv"
        if not path.exists():
            raise FileNotFoundError(f"{path}: the run has no logger csv")
        with open(path, newline="") as file:
            reader = csv.reader(file)
            names = next(reader, [])
            columns: list[list[Any]] = [[] for _ in names]
            for row in reader:
                for i, column in enumerate(columns):
                    column.append(_cell(row[i]) if i < len(row) else None)
        return dict(zip(names, columns))

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """In the order in which they were saved."""
        folder = self.dir / "checkpoints"
        links: dict[str, list[str]] = {}
        found = []
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.is_symlink():
                links.setdefault(os.readlink(path), []).append(path.name)
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.is_symlink() or not (path / "state.json").exists():
                continue
            state = json.loads((path / "state.json").read_text())
            found.append(Checkpoint(path, state["epoch"], state["step"], tuple(links.get(path.name, ()))))
        return sorted(found, key=lambda checkpoint: (checkpoint.step, checkpoint.name))

    def checkpoint(self, name: str = "last") -> Checkpoint:
        """The checkpoint of that name or link."""
        for checkpoint in self.checkpoints:
            if name == checkpoint.name or name in checkpoint.links:
                return checkpoint
        raise KeyError(f"{self.dir} has no checkpoint {name}; there are "
                       f"{', '.join(c.name for c in self.checkpoints) or 'none'}")

    @property
    def plots(self) -> list[pathlib.Path]:
        """The pictures that callback plots drew."""
        return sorted((self.dir / "plots").glob("**/*.png"))

    @property
    def log(self) -> str:
        """train.log."""
        return (self.dir / "train.log").read_text(errors="replace")

    def model(self, checkpoint: str = "last", *overrides: Override, **options: Any) -> Model:
        """The network of a checkpoint, for predictions (kiln.load)."""
        from .model import load

        return load(self.checkpoint(checkpoint).path, *overrides, **options)

    def evaluate(self, split: str = "test", checkpoint: str = "last", *overrides: Override, **options: Any) -> dict[str, float]:
        """The metrics of a checkpoint on a split (kiln.evaluate)."""
        from .fit import evaluate

        return evaluate(self.checkpoint(checkpoint).path, *overrides, split=split, **options)

    def resume(self, *overrides: Override, **options: Any) -> Run:
        """Continue the run where it stopped (kiln.fit with resume)."""
        from .fit import fit

        return fit(*overrides, resume=self.dir, **options)

    def __repr__(self) -> str:
        return f"Run({str(self.dir)!r}, status={self.status!r})"
