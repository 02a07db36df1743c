"""Values of a user's sample: what `preprocess` of a datamodule takes, as its annotations say, and the arguments of a call."""
import inspect
import os
import pathlib
import typing

from kiln_host import describe, values

# What a parameter wants: the types of values that can be it, and its help if nothing says more.
FORMS = {
    "path": (["path"], "a file"),
    "bytes": (["path", "bytes"], "the content of a file"),
    "str": (["text"], "a text"),
    "float": (["number"], "a number"),
    "int": (["number"], "a whole number"),
    "list": (["array"], "numbers"),
    "ndarray": (["array"], "an array"),
}


def _form(annotation):
    name = getattr(typing.get_origin(annotation) or annotation, "__name__", "").lower()
    return name if name in FORMS else None


def _parameters(cls):
    """(name, annotation, metadata, optional) of each parameter of preprocess."""
    try:
        hints = typing.get_type_hints(cls.preprocess, include_extras=True)
    except NameError as error:
        raise describe.Refused(f"an annotation of its preprocess names something that does not exist: {error}") from None
    parameters = list(inspect.signature(cls.preprocess).parameters.values())
    bound = isinstance(inspect.getattr_static(cls, "preprocess"), (staticmethod, classmethod))
    for parameter in parameters if bound else parameters[1:]:
        annotation, metadata, optional = describe.strip(hints.get(parameter.name))
        if _form(annotation) is None:
            raise describe.Refused(
                f"the parameter {parameter.name} of its preprocess "
                + ("has no annotation" if parameter.name not in hints else "has an annotation that kiln has no value for")
                + ": write one of pathlib.Path, bytes, str, float, int, list[float] or numpy.ndarray")
        yield parameter.name, annotation, metadata, parameter.default is not inspect.Parameter.empty


def fields(cls):
    """What preprocess takes; empty: the class has none."""
    if not describe.has(cls, "preprocess"):
        return []
    helps, found = describe.docs(cls.preprocess.__doc__), []
    for name, annotation, metadata, optional in _parameters(cls):
        texts = [text for text in metadata if isinstance(text, str)]
        types, usual = FORMS[_form(annotation)]
        found.append({"name": name, "types": types, "optional": optional,
                      "help": next((text for text in texts if not text.startswith(".")), helps.get(name) or usual),
                      "endings": [text.lower() for text in texts if text.startswith(".")]})
    if not found:
        raise describe.Refused("its preprocess takes nothing: give it a parameter for each value of a user's sample, "
                               "preprocess(self, path: pathlib.Path), say")
    return found


def forms(cls):
    """The form of each parameter, by its name."""
    return {name: _form(annotation) for name, annotation, _, _ in _parameters(cls)}


def argument(channel, form, kind, value):
    """A value as its parameter wants it: kiln gives a number's text, or the place of anything else."""
    if kind == "number":
        number = float(value)
        return int(number) if form == "int" and number.is_integer() else number
    if form == "ndarray":
        return values.get(channel, value, "a parameter numpy.ndarray of preprocess")
    dtype, shape, at, size = value
    data = channel.get(at, size)
    if form == "list":
        return memoryview(data).cast(values.FORMATS[dtype], shape).tolist() if size > 0 else []
    if kind == "path":
        path = pathlib.Path(os.fsdecode(data))
        return path.read_bytes() if form == "bytes" else path
    return data.decode("utf-8") if form == "str" else data
