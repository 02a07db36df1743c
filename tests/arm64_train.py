"""Trains with two builds of kiln, the second under qemu-aarch64, and compares the weights: arm64_train.py BUILD ARM64_BUILD."""
import array
import json
import os
import subprocess
import sys
import tempfile

RUNS = {
    "mlp": ["model=mlp", "model.hidden=[16]"],
    "mlp, adam": ["model=mlp", "model.hidden=[16]", "optimizer=adam", "lr=0.001"],
    "cnn": ["model=cnn", "model.channels=[4,8]", "trainer.convolution=direct"],
    "bf16": ["model=mlp", "model.hidden=[16]", "trainer.precision=bf16-mixed"],
}
SHORT = ["datamodule.train_count=256", "datamodule.val_count=32", "datamodule.test_count=32", "batch_size=32",
         "trainer.max_epochs=1", "trainer.threads=2"]
# Of the largest weight: sums are rounded in another order, in f32, or of values that are rounded to bf16.
TOLERANCE, TOLERANCE_BF16 = 1e-5, 1e-3


def train(folder, program, args):
    subprocess.run([*program, *args, *SHORT, f"kiln.run.dir={folder}"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "KILN_ISA": ""})
    return weights(os.path.join(folder, "checkpoints/last/model.safetensors"))


def weights(path):
    """{name: floats} of a safetensors file, without its integers."""
    with open(path, "rb") as f:
        data = f.read()
    size = int.from_bytes(data[:8], "little")
    ret = {}
    for name, tensor in json.loads(data[8:8 + size]).items():
        if tensor.get("dtype") == "F32":
            begin, end = tensor["data_offsets"]
            ret[name] = array.array("f", data[8 + size + begin:8 + size + end])
    return ret


def main():
    here, there = ([os.path.join(sys.argv[1], "train")], ["qemu-aarch64", os.path.join(sys.argv[2], "train")])
    failed = False
    for name, args in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            want, got = train(folder + "/here", here, args), train(folder + "/there", there, args)
        assert want.keys() == got.keys() and want, (list(want), list(got))
        largest = max(abs(x) for values in want.values() for x in values)
        apart = max(abs(x - y) for key in want for x, y in zip(want[key], got[key], strict=True))
        limit = TOLERANCE_BF16 if name == "bf16" else TOLERANCE
        failed = failed or not apart <= limit * largest
        print(f"{name}: weights differ by {apart / largest:.1e} of the largest, limit {limit:g}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
