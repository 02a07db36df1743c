"""What a class is for kiln: its kind, its options from the annotations of its __init__, its file."""
import collections.abc
import dataclasses
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import pathlib
import re
import sys
import types
import typing

HOOKS = [
    "setup", "on_fit_start", "on_sanity_check_start", "on_sanity_check_end", "on_train_start", "on_train_epoch_start",
    "on_train_batch_start", "on_train_batch_end", "on_train_epoch_end", "on_validation_start", "on_validation_epoch_start",
    "on_validation_batch_start", "on_validation_batch_end", "on_validation_epoch_end", "on_validation_end", "on_train_end",
    "on_fit_end", "on_test_start", "on_test_epoch_start", "on_test_batch_start", "on_test_batch_end", "on_test_epoch_end",
    "on_test_end", "on_predict_start", "on_predict_epoch_start", "on_predict_batch_start", "on_predict_batch_end",
    "on_predict_epoch_end", "on_predict_end", "teardown", "on_exception",
]
NEEDS = {
    "datamodule": "__len__ and __getitem__",
    "transform": "__call__",
    "metric": "update and compute",
    "logger": "log",
    "callback": "a hook such as on_train_epoch_end",
}
SPLITS = ("train", "val", "test")


class Refused(Exception):
    """The class can't be used; the message says why and what to do."""


# ---- Finding the class --------------------------------------------------------------------------


def parts(name):
    module, dot, attribute = name.rpartition(".")
    if not dot or not all(part.isidentifier() for part in name.split(".")):
        raise Refused("expected python:MODULE.CLASS, such as python:mydata.Tweets")
    return module, attribute


def locate(name):
    """The file of the module, found without running any of it; None: it is part of Python itself."""
    module, _ = parts(name)
    if module in sys.builtin_module_names:
        return None
    path, spec, whole = None, None, ""
    for part in module.split("."):
        whole = whole + "." + part if whole else part
        spec = importlib.machinery.PathFinder.find_spec(whole, path)
        if spec is None:
            raise Refused(f"Python finds no module {whole}{_near_module(whole, path)}; it searches {_searched(path)}, with "
                          f"{sys.executable}: run kiln where the module is, install it, or choose another Python with "
                          "kiln.python=/path/to/python")
        path = spec.submodule_search_locations
    return os.path.abspath(spec.origin) if spec.has_location else None


def _searched(path):
    places = [place for place in (sys.path if path is None else list(path)) if os.path.isdir(place)]
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def _near_module(whole, path):
    import difflib
    import pkgutil

    last = whole.rpartition(".")[2]
    names = [m.name for m in pkgutil.iter_modules(None if path is None else list(path))]
    near = difflib.get_close_matches(last, names, 1, 0.75)
    return f"; did you mean {near[0]}?" if near else ""


def load(name):
    import difflib

    module, attribute = parts(name)
    namespace = importlib.import_module(module)
    found = getattr(namespace, attribute, None)
    if found is None:
        classes = [key for key, value in vars(namespace).items() if isinstance(value, type)
                   and value.__module__ == namespace.__name__]
        near = difflib.get_close_matches(attribute, classes, 1)
        raise Refused(f"the module {module} ({_file_of(namespace)}) has no class {attribute}"
                      + (f"; did you mean {near[0]}?" if near else "")
                      + (f"; its classes: {', '.join(classes[:12])}" if classes else "; it has no classes"))
    if not isinstance(found, type):
        raise Refused(f"it is no class ({type(found).__name__}): write a class that calls it")
    return found


def _file_of(module):
    return getattr(module, "__file__", None) or "part of Python"


# ---- Kinds --------------------------------------------------------------------------------------


def has(cls, name):
    return any(name in base.__dict__ for base in cls.__mro__ if base is not object)


def kinds_of(cls):
    found = []
    if has(cls, "__len__") and has(cls, "__getitem__"):
        found.append("datamodule")
    if has(cls, "update") and has(cls, "compute"):
        found.append("metric")
    if has(cls, "log"):
        found.append("logger")
    if any(has(cls, hook) for hook in HOOKS):
        found.append("callback")
    if has(cls, "__call__"):
        found.append("transform")
    return found


def choose_kind(cls, kind):
    found = kinds_of(cls)
    if kind is None:
        if not found:
            needs = "; ".join(f"a {kind}: {methods}" for kind, methods in NEEDS.items())
            raise Refused(f"it is no component: it has none of the methods that kiln calls ({needs})")
        kind = found[0]
    if kind not in NEEDS:
        raise Refused(f"a {kind} can't be written in Python; these can: {', '.join(NEEDS)}")
    if kind not in found:
        misspelled = _near_hook(cls) if kind == "callback" else ""
        raise Refused(f"it is no {kind}: a {kind} has {NEEDS[kind]}" + misspelled
                      + (f"; its methods are those of a {found[0]}" if found else ""))
    if kind == "callback":
        _check_hooks(cls)
    return kind


def _near_hook(cls):
    import difflib

    for key in dir(cls):
        near = difflib.get_close_matches(key, HOOKS, 1, 0.8) if not key.startswith("_") else []
        if near:
            return f"; did you mean {near[0]} by {key}?"
    return ""


def _check_hooks(cls):
    """Refuse a method that looks like a hook and would never be called."""
    import difflib

    for key in dir(cls):
        if key.startswith("on_") and key not in HOOKS:
            near = difflib.get_close_matches(key, HOOKS, 1, 0.8)
            raise Refused(f"{key} is no hook of a callback in Python"
                          + (f"; did you mean {near[0]}?" if near else f"; these are: {', '.join(HOOKS)}"))


# ---- Options ------------------------------------------------------------------------------------


def strip(annotation):
    """(annotation, metadata, optional) without Annotated and Optional."""
    metadata, optional = [], False
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            metadata += annotation.__metadata__
            annotation = annotation.__origin__
        elif origin is typing.Union or (hasattr(types, "UnionType") and isinstance(annotation, types.UnionType)):
            options = [a for a in typing.get_args(annotation) if a is not type(None)]
            optional = optional or len(options) < len(typing.get_args(annotation))
            if set(options) <= {str, pathlib.Path, os.PathLike} and len(options) > 1:
                options = [pathlib.Path if pathlib.Path in options else str]
            elif set(options) == {int, float}:
                options = [float]
            if len(options) != 1:
                return None, metadata, optional
            annotation = options[0]
        else:
            return annotation, metadata, optional


def _one(annotation):
    """The type of one value, as a dict; None: kiln has no such type."""
    scalar = {bool: "bool", int: "i64", float: "f64", str: "str", pathlib.Path: "path"}.get(annotation)
    if scalar is not None:
        return {"type": scalar}
    if typing.get_origin(annotation) is typing.Literal:
        choices = typing.get_args(annotation)
        if all(isinstance(c, str) for c in choices):
            return {"type": "enum", "choices": list(choices)}
    return None


def _shaped(annotation):
    """The type of an option: one value, a list of them, or a mapping to them."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        items = [a for a in args if a is not Ellipsis]
        item, metadata, optional = strip(items[0]) if items and all(a == items[0] for a in items) else (None, [], False)
        one = _one(item) if not optional else None
        return ({**one, "shape": "list"}, metadata) if one else (None, [])
    if origin in (dict, collections.abc.Mapping) and args[0] is str:
        item, metadata, optional = strip(args[1])
        one = _one(item) if not optional else None
        return ({**one, "shape": "map"}, metadata) if one else (None, [])
    one = _one(annotation)
    return ({**one, "shape": "one"}, []) if one else (None, [])


def _limits(option, metadata):
    """Bounds and help from Annotated[int, Ge(1), Le(9), "help"], (1, 9) or range(1, 10)."""
    low, high = -math.inf, math.inf
    step = (lambda x, to: x + (1 if to > 0 else -1)) if option["type"] == "i64" else (lambda x, to: math.nextafter(x, to))
    for item in metadata:
        if isinstance(item, str):
            option.setdefault("help", item)
        elif isinstance(item, range):
            low, high = item.start, item.stop - 1
        elif isinstance(item, (tuple, list)) and len(item) == 2:
            low, high = item
        else:
            ge, gt, le, lt = (getattr(item, name, None) for name in ("ge", "gt", "le", "lt"))
            low = ge if ge is not None else step(gt, math.inf) if gt is not None else low
            high = le if le is not None else step(lt, -math.inf) if lt is not None else high
    option["min"], option["max"] = _bound(low, -math.inf), _bound(high, math.inf)


def _bound(x, default):
    """A bound as a text that C reads: JSON has no infinities."""
    return repr(float(default if x is None else x))


def _yaml(value):
    """A default as YAML; None: kiln can't write it."""
    if isinstance(value, pathlib.Path):
        value = str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if isinstance(value, (list, tuple)):
        items = [_yaml(x) for x in value]
        return None if None in items else "[" + ", ".join(items) + "]"
    if isinstance(value, dict):
        items = [(json.dumps(k, ensure_ascii=False), _yaml(v)) for k, v in value.items()]
        return None if any(v is None for _, v in items) else "{" + ", ".join(f"{k}: {v}" for k, v in items) + "}"
    if value is None or isinstance(value, (bool, int, str)):
        return json.dumps(value, ensure_ascii=False)
    return None


def _inferred(default):
    """The annotation of a parameter that has only a default."""
    return type(default) if isinstance(default, (bool, int, float, str, pathlib.Path)) else None


def docs(*texts):
    """The help of parameters in docstrings: `name: text`, `name (int): text`, `:param name: text`."""
    found = {}
    for text in texts:
        for line in (text or "").splitlines():
            match = re.match(r"\s*(?::param\s+)?\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s+(\S.*)", line)
            if match:
                found.setdefault(match.group(1), match.group(2).strip())
    return found


def _option(name, annotation, default, required, meta, help_text):
    bare, metadata, optional = strip(annotation)
    option, inner = _shaped(bare)
    if option is None:
        return None
    optional = optional or (default is None and not required)
    _limits(option, metadata + inner + ([meta["range"]] if "range" in meta else []))
    for key in ("min", "max"):
        if key in meta:
            option[key] = _bound(meta[key], 0)
    option["help"] = str(meta.get("help") or option.get("help") or help_text or "no description in the class")
    default = None if required else _yaml(default)
    if default is None and not required:
        return None
    return {**option, "name": name, "optional": optional, "default": default}


def options_of(cls, special):
    """The options of a class, in the order of its parameters; those named in `special` are kiln's to give."""
    fields = {f.name: f for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    if not fields and not has(cls, "__init__"):
        return []
    try:
        hints = typing.get_type_hints(cls if fields else cls.__init__, include_extras=True)
    except NameError as error:
        raise Refused(f"an annotation of its __init__ names something that does not exist: {error}") from None
    helps, options = docs(cls.__doc__, cls.__init__.__doc__), []
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        required = parameter.default is inspect.Parameter.empty
        default, key = parameter.default, parameter.name
        field = fields.get(key)
        if field is not None and field.default_factory is not dataclasses.MISSING:
            default, required = field.default_factory(), False
        if key in special or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        annotation = hints.get(key) or (None if required else _inferred(default))
        option = annotation and _option(key, annotation, default, required, dict(field.metadata) if field else {},
                                        helps.get(key))
        if option:
            options.append(option)
        elif required:
            raise Refused(f"its parameter {key} " + ("has no annotation" if key not in hints else
                          f"has the annotation {_shown(hints[key])}, which no config can give") + ": write one of int, float, "
                          "bool, str, pathlib.Path, Literal[\"a\", \"b\"], list[...], dict[str, ...] or Optional[...], or give it "
                          "a default")
    return options


def _shown(annotation):
    return getattr(annotation, "__qualname__", None) if isinstance(annotation, type) else str(annotation)


def convert(cls, options):
    """Options as the class expects them: paths and tuples, which JSON does not have."""
    hints = typing.get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__, include_extras=True) \
        if has(cls, "__init__") else {}
    for key, value in options.items():
        bare = strip(hints.get(key))[0]
        if isinstance(value, dict) and set(value) == {"float"} and bare is float:
            options[key] = float(value["float"])
        if value is None:
            continue
        if bare is pathlib.Path:
            options[key] = pathlib.Path(value)
        elif typing.get_origin(bare) is tuple:
            options[key] = tuple(value)
        elif typing.get_args(bare)[:1] == (pathlib.Path,):
            options[key] = [pathlib.Path(x) for x in value]
    return options


# ---- Descriptions -------------------------------------------------------------------------------


def parameters(function):
    """The names of a function's parameters."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def splits_of(cls):
    """What the class may get as `split`, by kiln's names: {"train": "train", "val": "validation"}. None: it has no such
    parameter."""
    if "split" not in parameters(cls.__init__):
        return None
    hint = typing.get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__).get("split")
    if typing.get_origin(hint) is not typing.Literal:
        return {split: split for split in SPLITS}
    names = {"train": ("train", "training"), "val": ("val", "valid", "validation", "dev"), "test": ("test", "testing")}
    found = {split: next((n for n in names[split] if n in typing.get_args(hint)), None) for split in SPLITS}
    return {split: name for split, name in found.items() if name}


def split_of_a_user(cls):
    """What the object that preprocesses a user's samples gets as `split`: "predict" where the class says that it takes that,
    else what the test split gets, or the next one that there is."""
    given = splits_of(cls)
    hint = typing.get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__).get("split")
    if "predict" in typing.get_args(hint):
        return "predict"
    return next(given[split] for split in ("test", "val", "train") if split in given)


def _metric_takes(cls):
    taken = parameters(cls.update)
    for takes in ("labels", "targets"):
        if takes in taken:
            return takes
    raise Refused("its update takes neither labels nor targets: write update(self, scores, labels) for classes, or "
                  "update(self, predictions, targets) for numbers")


def _logged(cls):
    """The values that a callback logs, each with "min", "max" or "auto"."""
    logs = getattr(cls, "logs", None) or []
    logged = {str(key): logs[key] if isinstance(logs, dict) else "auto" for key in logs}
    for key, mode in logged.items():
        if mode not in ("min", "max", "auto"):
            raise Refused(f"its logs give {key} the mode {mode!r}: expected \"min\", \"max\" or \"auto\"")
    return logged


def describe(name, kind):
    cls = load(name)
    kind = choose_kind(cls, kind)
    module = sys.modules[cls.__module__]
    doc = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    if dataclasses.is_dataclass(cls) and doc.startswith(cls.__name__ + "("):
        doc = ""
    better = getattr(cls, "higher_is_better", None)
    logged = _logged(cls) if kind == "callback" else {}
    return {
        "kind": kind,
        "summary": doc or f"{name}, a class of Python",
        "options": options_of(cls, {"split"} if kind == "datamodule" and splits_of(cls) is not None else set()),
        "file": _file_of(module),
        "version": ".".join(map(str, sys.version_info[:3])),
        "hooks": [hook for hook in HOOKS if has(cls, hook)] if kind == "callback" else [],
        "has": [method for method in ("state_dict", "load_state_dict", "flush", "open", "close", "size") if has(cls, method)],
        "takes": _metric_takes(cls) if kind == "metric" else "",
        "mode": "auto" if better is None else "max" if better else "min",
        "logs": list(logged),
        "log_modes": list(logged.values()),
    }
