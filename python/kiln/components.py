"""Components written in Python: callbacks, metrics and datamodules, for experiments.

A subclass is a component with a name (its own in snake_case, or the attribute `name`) and options: its annotated
attributes. Configs name it like any other. C calls its methods through function pointers; what they raise ends the run
and is raised again by the call that ran it.
"""
from __future__ import annotations

import ctypes
import difflib
import inspect
import json
import re
import types
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Mapping, Sequence

import numpy as np

from ._library import DTYPES, E_PLUGIN, check, encode, err, functions, lib, texts
from .trainer import Trainer

if typing.TYPE_CHECKING:
    from ._registry import Registry

HOOKS = ("setup", "on_fit_start", "on_sanity_check_start", "on_sanity_check_end", "on_train_start", "on_train_epoch_start",
         "on_train_batch_start", "on_train_batch_end", "on_train_epoch_end", "on_validation_start",
         "on_validation_epoch_start", "on_validation_batch_start", "on_validation_batch_end", "on_validation_epoch_end",
         "on_validation_end", "on_train_end", "on_fit_end", "on_test_start", "on_test_epoch_start", "on_test_batch_start",
         "on_test_batch_end", "on_test_epoch_end", "on_test_end", "on_predict_start", "on_predict_epoch_start",
         "on_predict_batch_start", "on_predict_batch_end", "on_predict_epoch_end", "on_predict_end", "teardown")

_classes: dict[tuple[str, str], type[Component]] = {}  # by kind and name; a class that is defined again replaces the old one
_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}


class Component:
    """What callbacks, metrics and datamodules share: options.

    >>> class Patience(kiln.Callback):
    ...     monitor: str = "val/loss"
    ...     epochs: int = 3
    """

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:  # Callback, Metric, DataModule
            return
        if not cls.__dict__.get("name"):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
        cls._check()
        _classes[cls.kind, cls.name] = cls

    @classmethod
    def _check(cls) -> None:
        """A class that C would refuse is an error where it is defined."""
        for name, hint in option_types(cls):
            _option(cls, name, hint)

    def __init__(self, **options: Any):
        known = dict(option_types(type(self)))
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no option {name}; its options: {', '.join(known) or 'none'}")
            setattr(self, name, value)
        missing = [name for name in known if not hasattr(self, name)]
        if missing:
            raise TypeError(f"{type(self).__name__} needs {', '.join(missing)}")

    def options(self) -> dict[str, Any]:
        """The values of all options."""
        return {name: getattr(self, name) for name, _ in option_types(type(self))}


def option_types(cls: type[Component]) -> list[tuple[str, Any]]:
    """The annotated attributes that are options, with their types, in the order of definition."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base in (object, Component, Callback, Metric, DataModule):
            continue
        try:
            hints = typing.get_type_hints(base)
        except NameError as error:
            raise TypeError(f"{cls.__name__}: {error}") from None
        for name in base.__dict__.get("__annotations__", {}):
            if not name.startswith("_") and typing.get_origin(hints[name]) is not ClassVar:
                found[name] = hints[name]
    return list(found.items())


def _option(cls: type[Component], name: str, hint: Any) -> tuple[str, list[str] | None]:
    """The type of an option as C takes it ("int", "float?", "str[]"), and its choices."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _TYPES:
        return _TYPES[hint], None
    if origin is Literal and all(isinstance(arg, str) for arg in args):
        return "str", list(args)
    if origin in (typing.Union, getattr(types, "UnionType", None)) and len(args) == 2 and type(None) in args:
        inner, choices = _option(cls, name, args[0] if args[1] is type(None) else args[1])
        return inner + "?", choices
    if origin in (list, Sequence.__origin__) and len(args) == 1 and args[0] in _TYPES:  # type: ignore[attr-defined]
        return _TYPES[args[0]] + "[]", None
    raise TypeError(f"{cls.__name__}.{name}: an option is bool, int, float, str, Literal of texts, one of these or None, or a "
                    f"list; got {hint}")


def _help(cls: type[Component], name: str) -> str:
    """The comment after the attribute, else its name."""
    try:
        match = re.search(rf"^\s*{name}\s*:.*?#\s*(.+)$", inspect.getsource(cls), re.M)
    except (OSError, TypeError):
        match = None
    return match[1].strip() if match else name.replace("_", " ")


# ---- Callbacks -------------------------------------------------------------------------------------------------------


class Callback(Component):
    """Hooks of a run, with Lightning's names: define those that you need, as `on_train_epoch_end(self, trainer)`.

    state_dict and load_state_dict save its state in checkpoints: a dict that JSON can hold.
    logs: the values that it logs, so that other callbacks can monitor them; as a mapping with "min" or "max", which are
    better: {"target/left": "min"}.
    """

    kind = "callback"
    logs: ClassVar[Mapping[str, str] | Sequence[str]] = ()

    @classmethod
    def _check(cls) -> None:
        super()._check()
        for name in dir(cls):
            if name.startswith("on_") and name not in HOOKS:
                nearest = difflib.get_close_matches(name, HOOKS, 1)
                raise TypeError(f"{cls.__name__}.{name} is no hook" + (f"; did you mean {nearest[0]}?" if nearest else ""))
        for name, mode in cls._logged().items():
            if mode not in ("min", "max", "auto"):
                raise TypeError(f"{cls.__name__}.logs: {name}: expected \"min\", \"max\" or \"auto\", got {mode!r}")

    @classmethod
    def _logged(cls) -> dict[str, str]:
        return dict(cls.logs) if isinstance(cls.logs, Mapping) else dict.fromkeys(cls.logs, "auto")

    def state_dict(self) -> dict[str, Any]:
        """What to save in a checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The same dict, when a run resumes; after setup."""


# ---- Metrics ---------------------------------------------------------------------------------------------------------


class Metric(Component):
    """A number computed from all rows of an epoch.

    takes: "classes" (scores of classes and labels) or "values" (predictions and targets).
    mode: whether larger values are better ("max") or smaller ones ("min"); "auto": unknown.
    """

    kind = "metric"
    takes: ClassVar[str] = "classes"
    mode: ClassVar[str] = "auto"

    @classmethod
    def _check(cls) -> None:
        super()._check()
        if cls.takes not in ("classes", "values"):
            raise TypeError(f"{cls.__name__}.takes: expected \"classes\" or \"values\", got {cls.takes!r}")
        if cls.mode not in ("min", "max", "auto"):
            raise TypeError(f"{cls.__name__}.mode: expected \"min\", \"max\" or \"auto\", got {cls.mode!r}")

    def compute(self, scores: np.ndarray, truth: np.ndarray) -> float | Mapping[str, float]:
        """scores f32 [rows, width]; truth: labels i32 [rows], or targets f32 [rows, width]. Several values as a mapping from
        names; "" is the metric's own. The arrays are only valid in this call."""
        raise NotImplementedError


# ---- Datamodules -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Feature:
    """One part of a sample: what it is, its shape and its type. See the functions image, vector, row, tokens, sequence
    and label."""

    content: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    varies: bool = False  # the first axis, up to shape[0]
    ids: int = 0  # whole numbers below that
    classes: tuple[str, ...] = ()


def image(height: int, width: int, channels: int = 3) -> Feature:
    """Pixels f32 [height, width, channels]."""
    return Feature("image", (height, width, channels))


def vector(features: int) -> Feature:
    """Numbers f32 [features]."""
    return Feature("vector", (features,))


def row(columns: int) -> Feature:
    """A row of a table: f32 [columns]."""
    return Feature("row", (columns,))


def tokens(longest: int, ids: int) -> Feature:
    """Ids i32 [time], at most `longest`, below `ids`."""
    return Feature("tokens", (longest,), "int32", True, ids)


def sequence(longest: int, features: int) -> Feature:
    """Numbers f32 [time, features], at most `longest` steps."""
    return Feature("sequence", (longest, features), varies=True)


def label(classes: Sequence[str] | int) -> Feature:
    """A class, by its names or their number."""
    names = tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(map(str, classes))
    return Feature("label", (), "int32", False, 0, names)


def target(*shape: int) -> Feature:
    """Numbers to predict: f32 of that shape; none: one number."""
    return Feature("label", tuple(shape))


class DataModule(Component):
    """Samples for training, validation and test.

    Batch size, sampler and the like are options that it has besides its own: datamodule.batch_size=32.
    """

    kind = "datamodule"

    def setup(self, stage: str, seed: int) -> None:
        """Read or make the data; `stage` is "fit", "validate" or "test"."""

    def features(self) -> Mapping[str, Feature]:
        """What a sample is made of, by name."""
        raise NotImplementedError

    def dataset(self, split: str) -> Mapping[str, np.ndarray] | Sequence | None:
        """The samples of "train", "val" or "test"; None: there are none.

        A mapping from feature names to arrays [n, ...] is read without calling Python for each sample. Anything with
        len() and [index] gives samples one by one, as mappings, from several threads: slow, but never wrong.
        """
        raise NotImplementedError


# ---- What C calls ----------------------------------------------------------------------------------------------------


def describe(data: int, features: Mapping[str, Feature]) -> None:
    """Describe features to C."""
    for name, feature in features.items():
        dims = (ctypes.c_int64 * max(len(feature.shape), 1))(*feature.shape)
        check(lib.kiln_flat_data_feature(data, encode(name), encode(feature.content), DTYPES[feature.dtype],
                                         len(feature.shape), dims, feature.varies, feature.ids, err()))
        if feature.classes:
            check(lib.kiln_flat_data_classes(data, texts(feature.classes), len(feature.classes), err()))


def _check_ids(name: str, feature: Feature, values: np.ndarray) -> None:
    most = len(feature.classes) or feature.ids
    if feature.dtype == "int32" and most and values.size and not feature.classes and values.min() < 0:
        raise ValueError(f"{name}: id {values.min()}; expected 0 to {most - 1}")
    if feature.dtype == "int32" and most and values.size and values.max() >= most:
        raise ValueError(f"{name}: id {values.max()}; expected 0 to {most - 1}")


def give_arrays(data: int, split: str, features: Mapping[str, Feature], arrays: Mapping[str, np.ndarray],
                keep: list[Any]) -> None:
    """Give C the arrays of a split; `keep` must live as long as they are used."""
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"the arrays of {split} differ in their numbers of samples: {counts}")
    check(lib.kiln_flat_data_samples(data, encode(split), next(iter(counts.values()), 0), err()))
    for name, values in arrays.items():
        if name not in features:
            raise ValueError(f"array {name!r} of {split}: no such feature; there are {', '.join(features)}")
        feature = features[name]
        array = np.ascontiguousarray(values)
        if array.dtype.name not in DTYPES or array.dtype.byteorder == ">":
            array = array.astype(feature.dtype)
        if array.shape[1:] != feature.shape:
            raise ValueError(f"array {name!r} of {split}: samples of shape {array.shape[1:]}; expected {feature.shape}")
        _check_ids(f"array {name!r} of {split}", feature, array)
        keep.append(array)
        check(lib.kiln_flat_data_array(data, encode(split), encode(name), DTYPES[array.dtype.name], array.ctypes.data, None,
                                       err()))


class _Binding:
    """A class as a component of a registry: the functions that C calls, and the objects that they are for."""

    def __init__(self, registry: Registry, cls: type[Component]):
        import weakref

        self.registry = weakref.ref(registry)
        self.cls, self.objects, self.kept, self.count = cls, {}, {}, 0
        self.functions: list[Any] = []  # they must outlive the component
        handle = ctypes.c_void_p()
        summary = (inspect.getdoc(cls) or "").split("\n")[0] if "__doc__" in cls.__dict__ and cls.__doc__ else ""
        check(lib.kiln_flat_component_new(encode(cls.kind), encode(cls.name), encode(summary or f"{cls.__name__}, in Python"),
                                          self._function("KilnFlatCreate", self._create),
                                          self._function("KilnFlatDestroy", self._destroy), None, ctypes.byref(handle), err()))
        self.handle = handle
        for name, hint in option_types(cls):
            kind, choices = _option(cls, name, hint)
            default = encode(_yaml(getattr(cls, name))) if hasattr(cls, name) else None
            check(lib.kiln_flat_component_option(handle, encode(name), encode(kind), default, texts(choices),
                                                 encode(_help(cls, name)), err()))
        {"callback": self._bind_callback, "metric": self._bind_metric, "datamodule": self._bind_datamodule}[cls.kind]()
        check(lib.kiln_flat_component_add(handle, registry.handle, err()))

    def free(self) -> None:
        lib.kiln_flat_component_free(self.handle)

    def _function(self, name: str, method: Any) -> Any:
        """A function pointer whose exceptions become errors of kiln."""

        def call(*arguments: Any) -> int | None:
            try:
                method(*arguments)
                return 0
            except BaseException as error:  # nothing may be raised through C
                registry = self.registry()
                if registry is not None:
                    registry.raised = error
                text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                return lib.kiln_flat_error_set(arguments[-1], E_PLUGIN, encode(text))

        def call_void(*arguments: Any) -> None:
            method(*arguments)

        function = functions[name](call if functions[name]._restype_ is ctypes.c_int else call_void)
        self.functions.append(function)
        return function

    # Every component

    def _create(self, _ctx: int, path: bytes, options: bytes, ret: Any, _err: int) -> None:
        registry = self.registry()
        given = registry.objects.get(path.decode()) if registry else None
        values = json.loads(options)
        if type(given) is self.cls:  # the user's own object, with what the config says
            for name, value in values.items():
                setattr(given, name, value)
        self.count += 1
        self.objects[self.count] = given if type(given) is self.cls else self.cls(**values)
        ret[0] = self.count

    def _destroy(self, _ctx: int, key: int) -> None:
        self.objects.pop(key, None)
        self.kept.pop(key, None)

    # Callbacks

    def _bind_callback(self) -> None:
        hook = self._function("KilnFlatHook", self._hook)
        for name in HOOKS:
            if callable(getattr(self.cls, name, None)):
                check(lib.kiln_flat_callback_hook(self.handle, encode(name), hook, err()))
        for name, mode in self.cls._logged().items():
            check(lib.kiln_flat_callback_logs(self.handle, encode(name), encode(mode), err()))
        if self.cls.state_dict is not Callback.state_dict:
            lib.kiln_flat_callback_state(self.handle, self._function("KilnFlatSave", self._save),
                                         self._function("KilnFlatLoad", self._load))

    def _hook(self, key: int, hook: bytes, handle: int, _err: int) -> None:
        trainer = Trainer(handle)
        try:
            getattr(self.objects[key], hook.decode())(trainer)
        finally:
            trainer._valid = None

    def _save(self, key: int, state: int, _err: int) -> None:
        lib.kiln_state_set_str(state, b"python", encode(json.dumps(self.objects[key].state_dict())))

    def _load(self, key: int, state: int, _err: int) -> None:
        text = ctypes.c_char_p()
        if lib.kiln_state_get_str(state, b"python", ctypes.byref(text)):
            self.objects[key].load_state_dict(json.loads(text.value))

    # Metrics

    def _bind_metric(self) -> None:
        check(lib.kiln_flat_metric_ops(self.handle, encode(self.cls.takes), encode(self.cls.mode),
                                       self._function("KilnFlatCompute", self._compute), err()))

    def _compute(self, key: int, state: int, rows: int, width: int, scores: int, truth: int, _err: int) -> None:
        def view(address: int, count: int, kind: Any) -> np.ndarray:
            return np.ctypeslib.as_array((kind * count).from_address(address)) if count else np.empty(0, kind)

        labels = self.cls.takes == "classes"
        targets = view(truth, rows if labels else rows * width, ctypes.c_int32 if labels else ctypes.c_float)
        if rows == 0:
            values: Any = float("nan")
        else:
            values = self.objects[key].compute(view(scores, rows * width, ctypes.c_float).reshape(rows, width),
                                               targets if labels else targets.reshape(rows, width))
        for name, value in values.items() if isinstance(values, Mapping) else [("", values)]:
            check(lib.kiln_metric_state_report(state, encode(name) if name else None, float(value), err()))

    # Datamodules

    def _bind_datamodule(self) -> None:
        lib.kiln_flat_datamodule_ops(self.handle, self._function("KilnFlatSetup", self._setup),
                                     self._function("KilnFlatGet", self._get))

    def _setup(self, key: int, stage: bytes, seed: int, data: int, _err: int) -> None:
        module = self.objects[key]
        module.setup(stage.decode(), seed)
        features = dict(module.features())
        describe(data, features)
        arrays: list[Any] = []
        sets: dict[str, Any] = {}
        for split in ("train", "val", "test"):
            samples = module.dataset(split)
            if samples is None:
                continue
            if isinstance(samples, Mapping):
                give_arrays(data, split, features, samples, arrays)
            else:
                sets[split] = samples
                check(lib.kiln_flat_data_samples(data, encode(split), len(samples), err()))
        self.kept[key] = (features, sets, arrays)

    def _get(self, key: int, split: bytes, index: int, to: Any, lengths: Any, _err: int) -> None:
        features, sets, _ = self.kept[key]
        sample = sets[split.decode()][index]
        for i, (name, feature) in enumerate(features.items()):
            if not to[i]:
                continue
            values = np.asarray(sample[name], dtype=feature.dtype, order="C")
            want = (len(values), *feature.shape[1:]) if feature.varies and values.ndim else feature.shape
            if values.shape != want or (feature.varies and not 0 < len(values) <= feature.shape[0]):
                raise ValueError(f"sample {index} of {split.decode()}: {name} has shape {values.shape}; expected "
                                 f"{'at most ' if feature.varies else ''}{feature.shape}")
            _check_ids(f"sample {index} of {split.decode()}: {name}", feature, values)
            ctypes.memmove(to[i], values.ctypes.data, values.nbytes)
            if feature.varies:
                lengths[i] = len(values)


def _yaml(value: Any) -> str:
    """A default as YAML."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    return json.dumps(value)


def bind(registry: Registry) -> list[_Binding]:
    """Add all classes to a registry."""
    return [_Binding(registry, cls) for cls in _classes.values()]


def config_overrides(registry: Registry, callbacks: Sequence[Component], metrics: Sequence[Component],
                     datamodule: Component | None) -> list[str]:
    """Overrides that put the user's own objects into a config, and note them for it."""
    from .config import literal

    ret = []
    places = [(f"callbacks.{c.name}", c) for c in callbacks] + [(f"task.metrics.{m.name}", m) for m in metrics]
    for path, component in places:
        _check_object(component, "callback" if path.startswith("callbacks") else "metric")
        if path in registry.objects:
            raise ValueError(f"two components are called {component.name}; give one another `name`")
        registry.objects[path] = component
        ret.append(f"+{path}={literal({'_target_': f'{component.kind}/{component.name}', **component.options()})}")
    if datamodule is not None:
        _check_object(datamodule, "datamodule")
        registry.objects["datamodule"] = datamodule
        ret.append(f"datamodule={datamodule.name}")
        ret += [f"datamodule.{name}={literal(value)}" for name, value in datamodule.options().items()]
    return ret


def _check_object(component: Any, kind: str) -> None:
    if not isinstance(component, Component) or component.kind != kind:
        raise TypeError(f"expected an object of a subclass of kiln.{ {'datamodule': 'DataModule'}.get(kind, kind.title())}, "
                        f"got {component!r}")
