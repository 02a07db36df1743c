"""Writes tests/data/safetensors/reference.safetensors with the safetensors
package: one tensor of each type, known values. Needs torch and safetensors.

Usage: python tests/record/safetensors_file.py"""
import pathlib

import torch
from safetensors.torch import save_file

ramp = [0.0, -1.0, 0.5, 65504.0, 2.0**-24, 3.0]
tensors = {
    "layer.weight": torch.tensor(ramp, dtype=torch.float32).reshape(2, 3),
    "half": torch.tensor(ramp + [float("inf"), -0.0], dtype=torch.float16),
    "brain": torch.tensor(ramp, dtype=torch.bfloat16),
    "double": torch.tensor(ramp + [0.1], dtype=torch.float64),
    "layer.num_batches_tracked": torch.tensor(-(2**40), dtype=torch.int64),
    "ints": torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32),
    "bytes": torch.tensor([[0, 255, 7]], dtype=torch.uint8),
    "flags": torch.tensor([True, False]),
    "empty": torch.zeros(0, 4),
    "größe": torch.tensor([1.25]),
}
path = pathlib.Path(__file__).parent.parent / "data/safetensors/reference.safetensors"
path.parent.mkdir(exist_ok=True)
save_file(tensors, path, metadata={"format": "pt", "by": "the reference"})
