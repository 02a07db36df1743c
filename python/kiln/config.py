"""Composing configs, as the command `train` does: groups, files, overrides, checks."""
from __future__ import annotations

import ctypes
import json
import math
import os
import warnings
import weakref
from typing import Any, Iterable, Iterator, Mapping, Sequence, Union

from ._library import ConfigError, check, encode, err, lib, take, text_of, texts
from ._registry import Registry

Override = Union[str, Mapping[str, Any]]


def quote(key: str, value: str) -> str:
    """KEY='VALUE' as an override needs it."""
    return take(lib.kiln_flat_override(encode(key), encode(value)))


def literal(value: Any) -> str:
    """A value as the right side of an override: numbers, texts, None, and lists and mappings of them."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    if isinstance(value, (str, os.PathLike)):
        return quote("x", os.fspath(value))[2:]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Iterable):
        return "[" + ",".join(map(literal, value)) + "]"
    if hasattr(value, "item"):  # a number of numpy's
        return literal(value.item())
    raise TypeError(f"{value!r} of type {type(value).__name__} can't be a value of a config")


def words(overrides: Sequence[Override]) -> list[str]:
    """Overrides as the words of a command line."""
    ret = []
    for override in overrides:
        if isinstance(override, str):
            ret.append(override)
        elif isinstance(override, Mapping):
            ret += [f"{key}={literal(value)}" for key, value in override.items()]
        elif isinstance(override, (list, tuple)):
            raise TypeError(f"override {override!r}: give each one as an argument of its own: *{list(override)!r}")
        else:
            raise TypeError(f"override {override!r}: expected a text like 'lr=0.1', or a mapping like {{'lr': 0.1}}")
    return ret


class Messages:
    """Collects what is wrong with a config."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        if lib.kiln_errors_new(ctypes.byref(self.handle)) < 0:
            raise MemoryError
        weakref.finalize(self, lib.kiln_errors_free, self.handle)

    def check(self, status: int, cause: BaseException | None = None) -> None:
        """Raise the errors, or warn of the warnings."""
        n = lib.kiln_errors_count(self.handle)
        found = [(lib.kiln_errors_is_warning(self.handle, i), lib.kiln_errors_text(self.handle, i).decode("utf-8", "replace"))
                 for i in range(n)]
        if status < 0:
            wrong = [text for is_warning, text in found if not is_warning]
            raise ConfigError(wrong or ["out of memory"], lib.kiln_status_name(status).decode()) from cause
        for is_warning, text in found:
            if is_warning:
                warnings.warn(text, stacklevel=4)


class Config(Mapping):
    """A composed and checked config: a mapping from keys ("optimizer.lr") to values.

    >>> config = kiln.compose("model=mlp", "lr=0.1")
    >>> config["optimizer.lr"], config.origin("optimizer.lr")
    (0.1, 'argument 2 `lr=0.1`')
    """

    def __init__(self, handle: ctypes.c_void_p, registry: Registry | None, overrides: Sequence[str] = ()):
        self._handle, self._registry, self.overrides = handle, registry, list(overrides)
        weakref.finalize(self, lib.kiln_config_free, handle)
        self._values: dict[str, Any] = json.loads(text_of(lib.kiln_flat_config_json, handle))
        self._origins: dict[str, str] = {}

    def to_dict(self) -> dict[str, Any]:
        """All values as nested dicts and lists, resolved."""
        return json.loads(json.dumps(self._values))

    def to_yaml(self, key: str = "", resolve: bool = True) -> str:
        """The config, or the part at `key`, as YAML; with `resolve=False` as it is written, with its ${...}."""
        return text_of(lib.kiln_config_yaml, self._handle, encode(key), resolve)

    @property
    def origins(self) -> dict[str, str]:
        """Where each value was set: a file with line and column, an argument, or a component's default."""
        if not self._origins:
            self._origins = json.loads(text_of(lib.kiln_flat_config_origins, self._handle))
        return dict(self._origins)

    def origin(self, key: str) -> str:
        """Where the value of `key` was set; that of a list is its own."""
        origins = self.origins
        if key not in origins:
            self[key]  # raises KeyError if there is none
            raise KeyError(f"{key} is a mapping: its values have origins")
        return origins[key]

    def explain(self, key: str = "") -> str:
        """The history of a value: what set it, and every value that was replaced."""
        return text_of(lib.kiln_config_explain, self._handle, encode(key))

    def __getitem__(self, key: str) -> Any:
        value: Any = self._values
        for part in key.split("."):
            try:
                value = value[int(part)] if isinstance(value, list) else value[part]
            except (KeyError, IndexError, ValueError, TypeError):
                raise KeyError(key) from None
        return value

    def __iter__(self) -> Iterator[str]:
        def walk(prefix: str, value: Any) -> Iterator[str]:
            if not isinstance(value, dict) or not value:
                yield prefix
                return
            for name, item in value.items():
                yield from walk(f"{prefix}.{name}" if prefix else name, item)

        return walk("", self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return self.to_yaml()


def compose_words(registry: Registry | None, overrides: Sequence[str], config_path=None, config_name=None,
                  config_dirs=None) -> Config:
    handle, messages = ctypes.c_void_p(), Messages()
    status = lib.kiln_flat_compose(registry.handle if registry else None, encode(config_path), encode(config_name),
                                   texts(config_dirs), texts(overrides), ctypes.byref(handle), messages.handle)
    raised = registry.raised if registry else None
    messages.check(status, raised)
    return Config(handle, registry, overrides)


def compose(*overrides: Override, config_path: str | os.PathLike | None = None, config_name: str | None = None,
            config_dirs: Sequence[str | os.PathLike] = (), plugins: Sequence[str | os.PathLike] = ()) -> Config:
    """Compose a config and check it, as `train` does before it runs.

    overrides: texts as on the command line ("model=mlp", "lr=0.1"), or mappings ({"lr": 0.1}).
    config_path, config_name: the folder and the name of the primary config; by default conf/config.yaml, or the
        config that comes with kiln.
    config_dirs: more folders with groups. plugins: shared objects with components.

    Raises ConfigError with everything that is wrong.
    """
    return compose_words(Registry(plugins), words(overrides), config_path, config_name, config_dirs or None)


def compose_resumed(registry: Registry, run: str, overrides: Sequence[str]) -> Config:
    handle, messages = ctypes.c_void_p(), Messages()
    status = lib.kiln_flat_compose_resumed(registry.handle, encode(run), texts(overrides), ctypes.byref(handle),
                                           messages.handle)
    messages.check(status, registry.raised)
    return Config(handle, registry, overrides)


def compose_checkpoint(registry: Registry, checkpoint: str, overrides: Sequence[str]) -> Config:
    handle = ctypes.c_void_p()
    registry.check(lib.kiln_flat_compose_checkpoint(registry.handle, encode(checkpoint), texts(overrides),
                                                    ctypes.byref(handle), err()))
    return Config(handle, registry, overrides)


def resolve_checkpoint(path: str | os.PathLike, runs: str = "outputs") -> str:
    """The checkpoint folder that a run folder, a checkpoint, "last" or "best" names."""
    return text_of(lib.kiln_checkpoint_resolve, encode(path), encode(runs))


__all__ = ["Config", "Override", "check", "compose"]
