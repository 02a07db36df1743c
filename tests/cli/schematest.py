"""Shared by tests of schemas: reads YAML as kiln does and validates it."""
import re

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.1 with floats like 5e-4, as OmegaConf and kiln have them."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers
            if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*"
               r"([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$"), list("-+0123456789."))


def tagged(loader, suffix, node):
    """What an editor that knows kiln's tags (yaml.customTags) makes of !append [x], !delete, ..."""
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    make = loader.construct_sequence if isinstance(node, yaml.SequenceNode) else loader.construct_mapping
    return make(node, deep=True)


Loader.add_multi_constructor("!", tagged)


def load(text):
    return yaml.load(text, Loader)


def errors(schema, text):
    """What the schema says against the YAML text, one line each."""
    validator = jsonschema.Draft7Validator(schema)
    return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}"
            for e in validator.iter_errors(load(text) or {})]
