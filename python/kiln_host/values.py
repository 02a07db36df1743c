"""Values between Python and kiln: arrays of numpy, torch and PIL, numbers, lists and texts."""
import array
import base64
import json

# Formats of the buffer protocol that kiln has as types.
TYPES = {"f": "f32", "d": "f64", "i": "i32", "B": "u8", "?": "u8"}
WIDER = "bhHIlLqQ"  # integers that become i64
FORMATS = {"f32": "f", "f64": "d", "i32": "i", "i64": "q", "u8": "B"}


class NumpyMissing(Exception):
    pass


def numpy(what):
    try:
        import numpy
    except ImportError as error:
        raise NumpyMissing(f"{what} needs numpy, which this Python lacks ({error}): install it (pip install numpy; Debian: "
                           "apt install python3-numpy), or choose another Python with kiln.python=/path/to/python") from None
    return numpy


def _of_buffer(value):
    """(type, shape, bytes) of an object with a buffer."""
    view = memoryview(value)
    code = view.format.lstrip("@=<") if view.format else "B"
    if code in TYPES:
        return TYPES[code], list(view.shape), view.tobytes()
    if code in ("l", "q") and view.itemsize == 8:
        return "i64", list(view.shape), view.tobytes()
    if code in WIDER:
        return "i64", list(view.shape), array.array("q", _flat(view.tolist())).tobytes()
    if code == "e":
        return "f32", list(view.shape), array.array("f", _flat(view.tolist())).tobytes()
    raise TypeError(f"an array of the type {getattr(value, 'dtype', view.format)}: expected numbers")


def _flat(value):
    if not isinstance(value, (list, tuple)):
        return [value]
    return [x for item in value for x in _flat(item)]


def _of_list(value):
    """(type, shape, bytes) of numbers in lists, and lists of them."""
    shape, at = [], value
    while isinstance(at, (list, tuple)):
        shape.append(len(at))
        at = at[0] if at else None
    flat = _flat(value)
    size = 1
    for n in shape:
        size *= n
    if size != len(flat):
        raise TypeError("lists of different lengths: expected a list of numbers, or of lists of equal lengths")
    if all(isinstance(x, int) for x in flat):
        return "i64", shape, array.array("q", flat).tobytes()
    try:
        return "f64", shape, array.array("d", flat).tobytes()
    except TypeError:
        raise TypeError(f"a list with {_named(next(x for x in flat if not isinstance(x, (int, float))))}: "
                        "expected numbers") from None


def _named(value):
    return f"a value of the type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def encode(value):
    """(type, shape, bytes) of a value that a sample may have; type "text": bytes in UTF-8."""
    if isinstance(value, str):
        return "text", [], value.encode("utf-8")
    if isinstance(value, (bytes, bytearray)):
        return "text", [], bytes(value)
    if isinstance(value, (bool, int)):
        return "i64", [], array.array("q", [value]).tobytes()
    if isinstance(value, float):
        return "f64", [], array.array("d", [value]).tobytes()
    if isinstance(value, (list, tuple)):
        if value and not isinstance(value[0], (int, float, list, tuple)) and hasattr(value[0], "__array__"):
            np = numpy("a list of arrays")
            return encode(np.stack([np.asarray(x) for x in value]))
        return _of_list(value)
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # torch
        value = value.detach().cpu().numpy()
    try:
        return _of_buffer(value)
    except (TypeError, BufferError, ValueError) as error:
        if not hasattr(value, "__array__") and not hasattr(value, "__array_interface__"):
            raise TypeError(f"{_named(value)}: expected an array, a number, a text or a list of numbers") from error
    dense = numpy("an image or array").asarray(value)
    if dense.dtype == object:
        raise TypeError(f"{_named(value)}: expected an array of numbers")
    return _of_buffer(dense)


def put(channel, value):
    """[type, shape, offset, bytes] of a value in the shared memory."""
    dtype, shape, data = encode(value)
    return [dtype, shape, channel.put(data), len(data)]


def get(channel, place, what):
    """A new numpy array of what kiln put there: [type, shape, offset, bytes]."""
    dtype, shape, at, size = place
    return numpy(what).frombuffer(channel.get(at, size), dtype=FORMATS[dtype]).reshape(shape).copy()


# ---- State in a checkpoint: JSON, which holds no code -------------------------------------------


def save_state(obj):
    """What state_dict of an object returns, as a text."""
    try:
        return json.dumps(state_out(obj.state_dict()), ensure_ascii=False, sort_keys=True)
    except TypeError as error:
        raise TypeError(f"state_dict: {error}: expected dicts, lists, numbers, texts and arrays") from None


def load_state(obj, text):
    obj.load_state_dict(state_in(json.loads(text)))


def state_out(value):
    """JSON for what a state_dict returned: dicts, lists, numbers, texts, arrays."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [state_out(x) for x in value]
    if isinstance(value, dict):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            raise TypeError(f"the key {wrong!r} is not a text")
        return {key: state_out(x) for key, x in value.items()}
    dtype, shape, data = encode(value)
    return {"__array__": dtype, "shape": shape, "data": base64.b64encode(data).decode()}


def state_in(value):
    if isinstance(value, list):
        return [state_in(x) for x in value]
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        data = base64.b64decode(value["data"])
        np = numpy("an array of a state_dict")
        return np.frombuffer(data, dtype=FORMATS[value["__array__"]]).reshape(value["shape"]).copy()
    return {key: state_in(x) for key, x in value.items()}
