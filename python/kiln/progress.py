"""Where a run's log and progress go: a terminal, a notebook, a file, or nowhere."""
from __future__ import annotations

import html
import os
import shutil
import sys
import time
from typing import Any

from ._library import functions, lib


def _in_notebook() -> bool:
    try:
        return type(sys.modules["IPython"].get_ipython()).__name__ == "ZMQInteractiveShell"
    except (KeyError, AttributeError):
        return False


class Progress:
    """Connects an environment of runs with sys.stdout. In a terminal with kiln's progress bar; in a notebook with one of the
    notebook's; elsewhere line by line."""

    def __init__(self, env: Any, show: bool):
        self._functions: list[Any] = []  # they must outlive the environment
        self._notebook = Notebook() if show and _in_notebook() else None
        if show:
            stream = sys.stdout
            terminal = bool(getattr(stream, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"
            lib.kiln_flat_env_console(env, self._keep("KilnFlatWrite", self._write), terminal,
                                      terminal and "NO_COLOR" not in os.environ,
                                      (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8",
                                      shutil.get_terminal_size((100, 24)).columns if terminal else 100)
        if self._notebook is not None:
            lib.kiln_flat_env_progress(env, self._keep("KilnFlatProgress", self._notebook.progress))
            lib.kiln_flat_env_rows(env, self._keep("KilnFlatRow", self._notebook.row))

    def _keep(self, name: str, function: Any) -> Any:
        self._functions.append(functions[name](function))
        return self._functions[-1]

    def _write(self, _ctx: int, text: bytes) -> None:
        try:
            sys.stdout.write(text.decode("utf-8", "replace"))
            sys.stdout.flush()
        except (OSError, ValueError):
            pass  # a closed output ends no run

    def close(self) -> None:
        if self._notebook is not None:
            self._notebook.draw(True)


class Notebook:
    """A bar and the latest values, redrawn in their place."""

    EVERY = 0.25  # seconds

    def __init__(self) -> None:
        from IPython import display

        self._display = display
        self._handle: Any = None
        self._drawn = 0.0
        self._at = (0, -1, 0, -1)
        self._values: dict[str, float] = {}

    def progress(self, _ctx: int, epoch: int, max_epochs: int, step: int, max_steps: int) -> None:
        self._at = (epoch, max_epochs, step, max_steps)
        self.draw(True)

    def row(self, _ctx: int, _phase: bytes, epoch: int, step: int, names: Any, values: Any, n: int) -> None:
        self._at = (max(epoch, self._at[0]), self._at[1], step, self._at[3])
        self._values.update((names[i].decode(), values[i]) for i in range(n))
        self.draw(False)

    def draw(self, now: bool) -> None:
        if not now and time.monotonic() - self._drawn < self.EVERY:
            return
        self._drawn = time.monotonic()
        epoch, max_epochs, step, max_steps = self._at
        done = max(epoch / max_epochs if max_epochs > 0 else 0.0, step / max_steps if max_steps > 0 else 0.0)
        where = f"epoch {epoch}{f' of {max_epochs}' if max_epochs > 0 else ''}, step {step}"
        values = "  ".join(f"{html.escape(name)} <b>{value:.4g}</b>" for name, value in self._values.items()
                           if "/" in name or name == "loss")
        drawn = self._display.HTML(f'<progress value="{done:.3f}" max="1"></progress> {where}<br><small>{values}</small>')
        if self._handle is None:
            self._handle = self._display.display(drawn, display_id=True)
        else:
            self._handle.update(drawn)
