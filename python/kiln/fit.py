"""Training and evaluating."""
from __future__ import annotations

import ctypes
import json
import os
import weakref
from typing import Any, Iterator, Mapping, Sequence, Union

import numpy as np

from . import components
from ._interrupt import Interrupts
from ._library import check, encode, err, lib, text_of, texts
from ._registry import Registry
from .components import Callback, DataModule, Feature, Metric
from .config import (Config, Override, compose_checkpoint, compose_resumed, compose_words, resolve_checkpoint, words)
from .progress import Progress
from .run import Run
from .trainer import Trainer

Path = Union[str, "os.PathLike[str]"]


class _Env:
    """The environment of a run, and what must live as long."""

    def __init__(self, registry: Registry, overrides: Sequence[str], progress: bool):
        self.registry = registry
        self.handle = lib.kiln_flat_env_new(registry.handle, None)
        if not self.handle:
            raise MemoryError
        weakref.finalize(self, lib.kiln_flat_env_free, self.handle)
        check(lib.kiln_flat_env_overrides(self.handle, texts(overrides), err()))
        self.progress = Progress(self.handle, progress)
        self.kept: list[Any] = []

    def stop(self) -> None:
        lib.kiln_flat_env_stop(self.handle, -1)

    def result(self) -> Run:
        return Run(lib.kiln_flat_run_dir(self.handle).decode("utf-8", "surrogateescape"))


def _infer(arrays: Mapping[str, np.ndarray], classes: Sequence[str] | int | None) -> dict[str, Feature]:
    """Features from the shapes and types of arrays."""
    ret = {}
    for name, values in arrays.items():
        shape, integer = np.shape(values)[1:], np.issubdtype(np.asarray(values).dtype, np.integer)
        if name == "label" and integer and not shape:
            ret[name] = components.label(classes if classes is not None else int(np.max(values)) + 1)
        elif name in ("label", "target") and not integer:
            ret[name] = components.target(*shape)
        elif not integer and len(shape) == 1:
            ret[name] = components.vector(*shape)
        elif len(shape) == 3:
            ret[name] = components.image(*shape)
        else:
            raise ValueError(f"array {name!r} has shape {np.shape(values)}: say what it is with "
                             f"features={{{name!r}: kiln.tokens(...)}} or another feature")
    return ret


def _give_data(env: _Env, data: Mapping[str, Mapping[str, np.ndarray]], features: Mapping[str, Feature] | None,
               classes: Sequence[str] | int | None) -> None:
    unknown = set(data) - {"train", "val", "test"}
    if unknown or "train" not in data:
        raise ValueError(f"data: expected arrays for train, and maybe for val and test; got {', '.join(data)}")
    handle = lib.kiln_flat_data_new()
    weakref.finalize(env, lib.kiln_flat_data_free, handle)
    described = {**_infer({name: a for name, a in data["train"].items() if name not in (features or {})}, classes),
                 **(features or {})}
    components.describe(handle, described)
    for split, arrays in data.items():
        components.give_arrays(handle, split, described, arrays, env.kept)
    lib.kiln_flat_env_data(env.handle, handle)


class _Request:
    """What fit and Fit have in common: everything up to the run."""

    def __init__(self, overrides: Sequence[Override | Config], *, callbacks: Sequence[Callback] = (),
                 metrics: Sequence[Metric] = (), datamodule: DataModule | None = None,
                 data: Mapping[str, Mapping[str, np.ndarray]] | None = None,
                 features: Mapping[str, Feature] | None = None, classes: Sequence[str] | int | None = None,
                 resume: Path | None = None, config_path: Path | None = None, config_name: str | None = None,
                 config_dirs: Sequence[Path] = (), plugins: Sequence[Path] = (), progress: bool = True):
        given = overrides[0] if overrides and isinstance(overrides[0], Config) else None
        if given is not None and (len(overrides) > 1 or callbacks or metrics or datamodule or resume):
            raise TypeError("a composed config is complete: pass overrides and components instead of it")
        if given is not None:
            self.config, registry = given, given._registry
            assert registry is not None
        else:
            registry = Registry(map(os.fspath, plugins))
            all_words = [*components.config_overrides(registry, callbacks, metrics, datamodule),
                         *words(overrides)]  # type: ignore[arg-type]
            if resume is not None:
                self.config = self._resumed(registry, resume, all_words)
            else:
                self.config = compose_words(registry, all_words, config_path, config_name, config_dirs or None)
        self.env = _Env(registry, self.config.overrides, progress)
        if resume is not None:
            check(lib.kiln_flat_env_resume(self.env.handle, encode(self.run), err()))
        if data is not None:
            _give_data(self.env, data, features, classes)

    def _resumed(self, registry: Registry, resume: Path, overrides: list[str]) -> Config:
        self.run = os.path.dirname(os.path.dirname(resolve_checkpoint(resume)))
        if os.stat(self.run).st_uid != os.getuid():
            raise PermissionError(f"{self.run} is another user's; `train resume={self.run}` checks what may be written there")
        return compose_resumed(registry, self.run, overrides)


def fit(*overrides: Override | Config, **options: Any) -> Run:
    """Train as `train` does, with the same overrides and the same bytes; returns the run.

    overrides: texts ("model=mlp", "lr=0.1"), mappings ({"lr": 0.1}), or one composed Config.
    callbacks, metrics, datamodule: objects of components in Python. They become part of the config.
    data: arrays for datamodule=arrays: {"train": {"point": array, "label": array}, "val": {...}}; features and classes
        describe them where shapes don't.
    resume: a run folder, or "last": continue that run, with overrides on top.
    config_path, config_name, config_dirs, plugins: as for compose.
    progress: show the log and a progress bar (a terminal, a notebook).

    Ctrl-C stops the run after its batch, with a checkpoint; the run's status is then "interrupted", and
    fit(resume=run.dir) continues it. Raises ConfigError for a wrong config, KilnError for a run that fails.
    """
    request = _Request(overrides, **options)
    env = request.env
    with Interrupts(env.stop):
        status = lib.kiln_flat_fit(env.handle, request.config._handle, err())
    env.progress.close()
    env.registry.check(status)
    return env.result()


class Fit:
    """A fit that is driven batch by batch, with the arguments of fit.

    >>> with kiln.Fit("model=mlp", progress=False) as training:
    ...     for trainer in training:
    ...         if trainer.metrics.get("val/loss", 1.0) < 0.1:
    ...             trainer.stop("good enough")
    >>> training.run.status
    'stopped'

    After the `with` block `run` is the run. Leaving the block before the last batch, by an exception too, ends the run as an
    interrupt does: with a checkpoint from which it can be resumed.
    """

    def __init__(self, *overrides: Override | Config, **options: Any):
        self._request = _Request(overrides, **options)
        self._handle: ctypes.c_void_p | None = None
        self._more = ctypes.c_bool(True)
        self.run: Run | None = None

    def __enter__(self) -> Fit:
        handle = ctypes.c_void_p()
        env = self._request.env
        env.registry.check(lib.kiln_flat_fit_open(env.handle, self._request.config._handle, ctypes.byref(handle), err()))
        self._handle = handle
        self.trainer = Trainer(lib.kiln_fit_trainer(handle))
        return self

    def step(self) -> bool:
        """Train the next batch, with what is due after it (validation, the end of the epoch). False after the last one."""
        if self._handle is None:
            raise RuntimeError("the fit is not open: use it in a `with` block")
        self._request.env.registry.check(lib.kiln_fit_step(self._handle, ctypes.byref(self._more), err()))
        return self._more.value

    def __iter__(self) -> Iterator[Trainer]:
        """The trainer, after each batch."""
        while self._more.value:
            self.step()
            yield self.trainer

    def __exit__(self, kind: Any, *_: Any) -> None:
        env, handle = self._request.env, self._handle
        self._handle = self.trainer._valid = None
        status = lib.kiln_flat_fit_close(env.handle, handle, err())
        env.progress.close()
        self.run = env.result() if lib.kiln_flat_run_dir(env.handle) else None
        if kind is None:
            env.registry.check(status)


def evaluate(checkpoint: Path = "last", *overrides: Override, split: str = "test", plugins: Sequence[Path] = (),
             data: Mapping[str, Mapping[str, np.ndarray]] | None = None, features: Mapping[str, Feature] | None = None,
             classes: Sequence[str] | int | None = None) -> dict[str, float]:
    """The metrics of a checkpoint (a run folder, a checkpoint, "last", "best") on a split, as `kiln eval`."""
    registry = Registry(map(os.fspath, plugins))
    all_words = words(overrides)
    config = compose_checkpoint(registry, resolve_checkpoint(checkpoint), all_words)
    env = _Env(registry, all_words, False)
    if data is not None:
        _give_data(env, {"train": next(iter(data.values())), **data}, features, classes)
    ret = ctypes.c_void_p()
    with Interrupts(env.stop):
        status = lib.kiln_flat_eval(env.handle, config._handle, encode(split), ctypes.byref(ret), err())
    registry.check(status)
    from ._library import take

    return {name: float("nan") if value is None else value for name, value in json.loads(take(ret))["metrics"].items()}


__all__ = ["Fit", "evaluate", "fit", "text_of"]
