"""Ctrl-C while C runs: the run stops after its batch, saves a checkpoint and returns."""
from __future__ import annotations

import os
import signal
import threading
from typing import Any, Callable

# Python's own handlers run only between two bytecodes, so not while the main thread is in C. But the signal's number
# arrives in the wakeup file at once, where a thread waits for it.


class Interrupts:
    """Calls `stop` on SIGINT, in place of KeyboardInterrupt. Does nothing outside of the main thread, and where the program
    has a handler of its own."""

    def __init__(self, stop: Callable[[], None]):
        self._stop = stop
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread() or \
                signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return self
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before = signal.signal(signal.SIGINT, lambda *_: self._stop())
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._watcher = threading.Thread(target=self._watch, name="kiln-interrupts", daemon=True)
        self._watcher.start()
        return self

    def _watch(self) -> None:
        while numbers := os.read(self._read, 64):
            if signal.SIGINT in numbers:
                self._stop()

    def __exit__(self, *_: Any) -> None:
        if self._before is None:
            return
        signal.set_wakeup_fd(self._wakeup)
        signal.signal(signal.SIGINT, self._before)
        os.close(self._write)
        self._watcher.join()
        os.close(self._read)
        self._before = None
