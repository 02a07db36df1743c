"""Predictions with the network of a checkpoint."""
from __future__ import annotations

import ctypes
import json
import os
import weakref
from typing import Any, Mapping, Sequence

import numpy as np

from ._library import DTYPES, MAX_RANK, RAW_PATH, RAW_TEXT, KilnError, check, encode, err, lib, take, text_of, texts
from ._registry import Registry
from .config import Override, words

_Dims = ctypes.c_int64 * MAX_RANK
_NUMBERS = {np.dtype(name): number for name, number in DTYPES.items() if name != "float64"}  # others become float32


class Predictions(dict):
    """Outputs by name: arrays [samples, ...], of a single sample without that axis; a list of arrays where samples differ in
    shape.

    results: values beside the outputs (texts, decoded sequences), a dict per sample.
    errors: messages of the samples that could not be prepared, by number; their outputs are NaN.
    classes: the names of the classes.
    """

    results: list[dict[str, Any]]
    errors: dict[int, str]
    classes: list[str]


class Model:
    """A network with its preprocessing, open for predictions. Any number of threads may call it.

    fields: what a sample is made of: {"image": {"types": ["path", "bytes", "array"], ...}}.
    """

    def __init__(self, registry: Registry, checkpoint: str, overrides: Sequence[str], max_calls: int):
        handle = ctypes.c_void_p()
        registry.check(lib.kiln_flat_predictor_open(registry.handle, encode(checkpoint), texts(overrides), max_calls,
                                                    ctypes.byref(handle), err()))
        self._handle, self._registry = handle, registry
        weakref.finalize(self, lib.kiln_predictor_free, handle)
        self.checkpoint = lib.kiln_predictor_checkpoint(handle).decode("utf-8", "surrogateescape")
        described = json.loads(text_of(lib.kiln_flat_predictor_describe, handle))
        self.fields: dict[str, dict[str, Any]] = {field.pop("name"): field for field in described["fields"]}
        self.features: dict[str, dict[str, Any]] = {feature.pop("name"): feature for feature in described["features"]}
        self.classes: list[str] = described["classes"]
        needed = [name for name, field in self.fields.items() if not field["optional"]] or list(self.fields)
        self._only = needed[0] if len(needed) == 1 else None
        feature = self.features.get(self._only or "", {})
        self._rank = len(feature.get("shape", ())) if "array" in self.fields.get(self._only or "", {}).get("types", ()) else None

    def predict(self, inputs: Any = None, /, **fields: Any) -> Predictions:
        """Predict one sample, or several.

        inputs: an array (a sample, or [samples, ...]), a text, a path or the bytes of a file, for networks that need one
            value; a mapping from fields to values; or a list of any of these.
        fields: the same mapping as arguments: arrays [samples, ...] or lists.

        Raises KilnError if no sample can be prepared; if some can, see Predictions.errors.
        """
        if type(inputs) is np.ndarray and not fields and inputs.ndim - 1 == self._rank:
            return self._predict_arrays({None: inputs}, len(inputs))
        if inputs is None:
            inputs = fields
        elif fields:
            raise TypeError("give fields by name, or one input")
        if isinstance(inputs, np.ndarray) and self._rank is not None and inputs.ndim == self._rank:
            return self._single(self._predict_arrays({None: inputs[None]}, 1))
        if isinstance(inputs, Mapping):
            return self._predict_mapping(inputs)
        if isinstance(inputs, (list, tuple)):
            return self._predict_list([self._named(item) for item in inputs])
        return self._single(self._predict_list([self._named(inputs)]))

    __call__ = predict

    # ---- Inputs ----

    def _named(self, item: Any) -> Mapping[str, Any]:
        if isinstance(item, Mapping):
            return item
        if self._only is None:
            raise TypeError(f"a sample needs {', '.join(self.fields)}: give a mapping with these")
        return {self._only: item}

    def _rank_of(self, name: str) -> int | None:
        """Axes of an array for that field, as far as a feature of the same name says so."""
        return len(self.features[name]["shape"]) if name in self.features else None

    def _predict_mapping(self, fields: Mapping[str, Any]) -> Predictions:
        arrays = {name: np.asarray(value) for name, value in fields.items()
                  if not isinstance(value, (str, bytes, os.PathLike)) and "array" in self.fields.get(name, {}).get("types", ())}
        ranks = {name: array.ndim - rank for name, array in arrays.items() if (rank := self._rank_of(name)) is not None}
        if len(arrays) == len(fields) == len(ranks) and set(ranks.values()) == {1}:
            counts = {len(array) for array in arrays.values()}
            if len(counts) != 1:
                raise ValueError("the arrays differ in their numbers of samples")
            return self._predict_arrays(arrays, counts.pop())
        many = {name for name, value in fields.items()
                if isinstance(value, (list, tuple)) or (name in ranks and ranks[name] == 1)}
        if not many:
            return self._single(self._predict_list([fields]))
        lengths = {len(fields[name]) for name in many}
        if len(lengths) != 1:
            raise ValueError("the lists differ in their numbers of samples")
        return self._predict_list([{name: value[i] if name in many else value for name, value in fields.items()}
                                   for i in range(lengths.pop())])

    def _predict_arrays(self, arrays: Mapping[str | None, np.ndarray], n: int) -> Predictions:
        samples, kept = lib.kiln_flat_samples_new(n), []
        try:
            for name, array in arrays.items():
                number = _NUMBERS.get(array.dtype)
                if number is None or not array.flags.c_contiguous:
                    array = np.ascontiguousarray(array, None if number is not None else np.float32)
                    number = _NUMBERS[array.dtype]
                kept.append(array)
                shape = array.shape
                status = lib.kiln_flat_samples_arrays(samples, encode(name), number, len(shape) - 1, _Dims(*shape[1:]),
                                                      array.__array_interface__["data"][0], err())
                if status < 0:
                    check(status)
            return self._run(samples, n)
        finally:
            lib.kiln_flat_samples_free(samples)

    def _predict_list(self, items: Sequence[Mapping[str, Any]]) -> Predictions:
        samples, kept = lib.kiln_flat_samples_new(len(items)), []
        try:
            for i, item in enumerate(items):
                for name, value in item.items():
                    kept.append(self._add(samples, i, name, value))
            return self._run(samples, len(items))
        finally:
            lib.kiln_flat_samples_free(samples)

    def _add(self, samples: int, i: int, name: str, value: Any) -> Any:
        """Add a value; returns what must live as long as the samples."""
        types = self.fields.get(name, {}).get("types", ())
        key = encode(name)
        if isinstance(value, os.PathLike) or (isinstance(value, str) and "text" not in types and "path" in types):
            check(lib.kiln_flat_samples_text(samples, i, key, RAW_PATH, encode(value), err()))
        elif isinstance(value, str):
            check(lib.kiln_flat_samples_text(samples, i, key, RAW_TEXT, value.encode(), err()))
        elif isinstance(value, (bytes, bytearray)):
            data = bytes(value)
            check(lib.kiln_flat_samples_bytes(samples, i, key, ctypes.cast(data, ctypes.c_void_p), len(data), err()))
            return data
        elif isinstance(value, (int, float)) and "number" in types:
            check(lib.kiln_flat_samples_number(samples, i, key, value, err()))
        else:
            array = np.ascontiguousarray(value)
            if array.dtype not in _NUMBERS:
                array = array.astype(np.float32)
            check(lib.kiln_flat_samples_array(samples, i, key, _NUMBERS[array.dtype], array.ndim, _Dims(*array.shape),
                                              array.ctypes.data, err()))
            return array
        return None

    # ---- Outputs ----

    def _run(self, samples: int, n: int) -> Predictions:
        handle = ctypes.c_void_p()
        status = lib.kiln_flat_predict(self._handle, samples, handle, err())
        if status < 0:
            self._registry.check(status)
        try:
            ret = self._read(handle, n)
        finally:
            lib.kiln_predictions_free(handle)
        return ret

    def _read(self, handle: ctypes.c_void_p, n: int) -> Predictions:
        ret = Predictions()
        ret.classes, ret.errors, ret.results = self.classes, {}, []
        message, rank, dims, same = ctypes.c_char_p(), ctypes.c_int(), _Dims(), ctypes.c_bool()
        at = 0
        while (at := lib.kiln_flat_predictions_failed(handle, at, message)) >= 0:
            ret.errors[at] = message.value.decode("utf-8", "replace")
            at += 1
        first = next((i for i in range(n) if i not in ret.errors), n) if ret.errors else 0
        while name := lib.kiln_flat_predictions_output(handle, first, len(ret), rank, dims, same):
            number = len(ret)
            if same.value:
                values: Any = np.empty((n, *dims[:rank.value]), np.float32)
                lib.kiln_flat_predictions_copy(handle, 0, n, number, values.__array_interface__["data"][0])
            else:
                values = [self._read_one(handle, i, number) for i in range(n)]
            ret[name.decode()] = values
        if ret.errors and first == n:
            raise KilnError(ret.errors[0])
        if first < n and (text := lib.kiln_flat_predictions_results(handle, first)):
            others = (lib.kiln_flat_predictions_results(handle, i) for i in range(n) if i != first)
            ret.results = [json.loads(take(other)) if other else {} for other in others]
            ret.results.insert(first, json.loads(take(text)))
        return ret

    def _read_one(self, handle: ctypes.c_void_p, i: int, output: int) -> np.ndarray | None:
        rank, dims, same = ctypes.c_int(), _Dims(), ctypes.c_bool()
        if not lib.kiln_flat_predictions_output(handle, i, output, rank, dims, same):
            return None
        values = np.empty(dims[:rank.value], np.float32)
        lib.kiln_flat_predictions_copy(handle, i, 1, output, values.ctypes.data)
        return values

    def _single(self, many: Predictions) -> Predictions:
        ret = Predictions({name: values[0] for name, values in many.items()})
        ret.classes, ret.errors, ret.results = many.classes, {}, many.results
        return ret

    def __repr__(self) -> str:
        return f"Model({self.checkpoint!r}, fields={list(self.fields)})"


def load(checkpoint: str | os.PathLike = "last", *overrides: Override, plugins: Sequence[str | os.PathLike] = (),
         max_calls: int = 0) -> Model:
    """Open a checkpoint for predictions: a checkpoint folder, a run folder (its last), "last" or "best" of the newest run.

    overrides: changes of the run's config; worth changing are trainer.threads (1 for the most samples per second of many
        threads that call) and datamodule.batch_size (the most samples computed together).
    max_calls: calls that compute at the same time; 0: one per processor.
    """
    return Model(Registry(map(os.fspath, plugins)), os.fspath(checkpoint), words(overrides), max_calls)
