"""Registries: the built-in components, those of plugins, and those written in Python."""
from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Iterable

from ._library import check, encode, err, lib

if TYPE_CHECKING:
    from .components import Component


class Registry:
    """The components that a config can name. Holds what their functions need as long as it lives."""

    def __init__(self, plugins: Iterable[str] = ()):
        from . import components  # it needs this module

        handle = ctypes.c_void_p()
        check(lib.kiln_registry_new(ctypes.byref(handle), err()))
        self.handle = handle
        self.raised: BaseException | None = None  # by a function of a component, since the last call of C
        self.objects: dict[str, Component] = {}  # of the user, by their place in the config
        self._bindings = components.bind(self)
        # Components outlive the registry; references to bindings end with it.
        weakref.finalize(self, _free, handle, self._bindings)
        for path in plugins:
            check(lib.kiln_registry_load(handle, encode(path), err()))

    def check(self, status: int) -> None:
        """Raise the error of a call, caused by what a component raised in it."""
        raised, self.raised = self.raised, None
        check(status, raised)


def _free(handle, bindings) -> None:
    lib.kiln_registry_free(handle)
    for binding in bindings:
        binding.free()
