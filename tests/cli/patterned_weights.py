"""Weights that are a function of their names and shapes, so that a test and the script that recorded its values have the
same ones without a file of them: pseudo-random numbers, repeated."""

import array
import json
import math
import zlib

PERIOD = 4099


def random_numbers():
    """PERIOD numbers from -1 to 1."""
    x, numbers = 1, []
    for _ in range(PERIOD):
        x = (x * 1103515245 + 12345) % 2**31
        numbers.append(x / 2**30 - 1)
    return numbers


RANDOM = random_numbers()


def weights(name, shape):
    """The bytes of a tensor of f32 in a network of PyTorch's names: He's distribution, normalization near the identity."""
    middle, size = 0.0, 0.1
    if name.endswith("running_var") or name.endswith("weight") and len(shape) == 1:
        middle, size = 1.0, 0.2
    elif name.endswith("layer_scale"):
        middle, size = 0.5, 0.2
    elif len(shape) > 1:
        size = math.sqrt(6 / math.prod(shape[1:]))
    first = zlib.crc32(name.encode()) % PERIOD
    period = array.array("f", (middle + size * u for u in RANDOM[first:] + RANDOM[:first])).tobytes()
    n = 4 * math.prod(shape)
    return (period * (n // len(period) + 1))[:n]


def write(source, path):
    """Write the safetensors file `source` with these weights in place of its floats."""
    with open(source, "rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
        data = bytearray(file.read())
    tensors = json.loads(header)
    tensors.pop("__metadata__", None)
    for name, tensor in tensors.items():
        if tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            data[begin:end] = weights(name, tensor["shape"])
    text = json.dumps(tensors).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
