"""Reads YAML as OmegaConf does, and compares values and their types. Shared by tests/cli/config/test_hydra_language.py and
tests/peers/hydra_diff.py."""
import math
import re

import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.1, but 1e3 is a float and a date is text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in rules if not tag.endswith((":timestamp", ":float"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(
    r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+
    |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
    |[-+]?\.(?:inf|Inf|INF)
    |\.(?:nan|NaN|NAN))$""", re.X), list("-+0123456789."))


def load(text):
    return yaml.load(text, Loader=Loader)


def encode(value):
    """A value as JSON can hold it: {"$float": "inf"}, {"$map": [[key, value], ...]}."""
    if isinstance(value, dict):
        if all(isinstance(k, str) and not k.startswith("$") for k in value):
            return {k: encode(v) for k, v in value.items()}
        return {"$map": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, list):
        return [encode(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    return value


def decode(value):
    if isinstance(value, dict):
        if set(value) == {"$map"}:
            return {decode(k): decode(v) for k, v in value["$map"]}
        if set(value) == {"$float"}:
            return float(value["$float"])
        return {k: decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [decode(v) for v in value]
    return value


def difference(want, got, path=""):
    """The first difference of values or types, in words; None: equal. Order of keys does not count."""
    if type(want) is not type(got):
        return f"{path or 'top'}: {want!r} became {got!r}"
    if isinstance(want, dict):
        typed = [{(type(k), k if k == k else "nan"): v for k, v in d.items()} for d in (want, got)]
        if set(typed[0]) != set(typed[1]):
            return f"{path or 'top'}: keys {list(want)} became {list(got)}"
        found = (difference(v, typed[1][k], f"{path}.{k[1]}") for k, v in typed[0].items())
        return next((f for f in found if f), None)
    if isinstance(want, list):
        if len(want) != len(got):
            return f"{path or 'top'}: {want!r} became {got!r}"
        found = (difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(want, got)))
        return next((f for f in found if f), None)
    if want != got and not (want != want and got != got):
        return f"{path or 'top'}: {want!r} became {got!r}"
    if isinstance(want, float) and math.copysign(1, want) != math.copysign(1, got) and want == want:
        return f"{path or 'top'}: {want!r} became {got!r}"
    return None
