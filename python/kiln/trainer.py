"""The trainer, as hooks and loops see it."""
from __future__ import annotations

import ctypes
import math

import numpy as np

from ._library import DTYPES, LOG_EPOCH, LOG_PROG_BAR, LOG_STEP, MAX_RANK, check, encode, err, lib

_NAMES = {number: name for name, number in DTYPES.items()}


def _array(address: int, dtype: str, rank: int, dims) -> np.ndarray:
    """A copy of numbers in C's memory."""
    shape = tuple(dims[:rank])
    bytes_ = int(math.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(ctypes.string_at(address, bytes_), dtype=dtype).reshape(shape).copy()


class Trainer:
    """A run that trains: what it has reached, and what can be changed. Valid in the hook that got it, or as long as
    the Fit is open."""

    def __init__(self, handle: int):
        self._valid: int | None = handle

    @property
    def _handle(self) -> int:
        if self._valid is None:
            raise RuntimeError("this trainer was of a hook, or of a fit, that is over")
        return self._valid

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return lib.kiln_trainer_epoch(self._handle)

    @property
    def step(self) -> int:
        """Optimizer steps that are done."""
        return lib.kiln_trainer_global_step(self._handle)

    @property
    def batch(self) -> int:
        """Batches of the running loop that are done."""
        return lib.kiln_trainer_batch(self._handle)

    @property
    def batches(self) -> int:
        """Batches of the running loop in all."""
        return lib.kiln_trainer_batches(self._handle)

    @property
    def phase(self) -> str:
        """ "fit", "sanity", "validate", "test" or "predict"."""
        return lib.kiln_trainer_phase(self._handle).decode()

    @property
    def run_dir(self) -> str:
        """The run folder; "" before it exists."""
        return lib.kiln_trainer_run_dir(self._handle).decode("utf-8", "surrogateescape")

    @property
    def loss(self) -> float:
        """Of the newest training batch; NaN if there is none."""
        value = ctypes.c_double(math.nan)
        lib.kiln_trainer_loss(self._handle, ctypes.byref(value))
        return value.value

    @property
    def metrics(self) -> dict[str, float]:
        """The last value of every metric."""
        ret, name, value = {}, ctypes.c_char_p(), ctypes.c_double()
        while lib.kiln_flat_metric(self._handle, len(ret), ctypes.byref(name), ctypes.byref(value)):
            ret[name.value.decode()] = value.value
        return ret

    def metric(self, name: str) -> float | None:
        """The last value of a metric; None if it has none yet."""
        value = ctypes.c_double()
        return value.value if lib.kiln_trainer_metric(self._handle, encode(name), ctypes.byref(value)) else None

    @property
    def learning_rate(self) -> float:
        """Of the first optimizer. Set it for the following steps; None: the schedule's again."""
        return lib.kiln_trainer_learning_rate(self._handle)

    @learning_rate.setter
    def learning_rate(self, value: float | None) -> None:
        lib.kiln_trainer_set_learning_rate(self._handle, -1.0 if value is None else value)

    def log(self, name: str, value: float, on_epoch: bool = False, prog_bar: bool = False) -> None:
        """Log a number, of this step or as a mean of the epoch."""
        flags = (LOG_EPOCH if on_epoch else LOG_STEP) | (LOG_PROG_BAR if prog_bar else 0)
        lib.kiln_trainer_log(self._handle, encode(name), float(value), flags)

    def print(self, text: str) -> None:
        """A line for the user and train.log."""
        lib.kiln_flat_print(self._handle, encode(text))

    def stop(self, reason: str) -> None:
        """End training after this batch."""
        lib.kiln_trainer_stop(self._handle, encode(reason))

    def save(self, name: str) -> None:
        """Save a checkpoint in the run's folder checkpoints/NAME, which stays."""
        check(lib.kiln_flat_save(self._handle, encode(name), err()))

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """What the step that just ran gives, [batch, ...]; for hooks after a batch."""
        ret: dict[str, np.ndarray] = {}
        name, rank, dims = ctypes.c_char_p(), ctypes.c_int(), (ctypes.c_int64 * MAX_RANK)()
        while address := lib.kiln_flat_output(self._handle, len(ret), ctypes.byref(name), ctypes.byref(rank), dims):
            ret[name.value.decode()] = _array(address, "float32", rank.value, dims)
        return ret

    def feature(self, name: str) -> np.ndarray | None:
        """A feature of the current batch, [batch, ...]; None if this set of samples has none of this name. For hooks
        of batches."""
        dtype, rank, dims = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int64 * MAX_RANK)()
        address = lib.kiln_flat_feature(self._handle, encode(name), ctypes.byref(dtype), ctypes.byref(rank), dims)
        return _array(address, _NAMES[dtype.value], rank.value, dims) if address else None
