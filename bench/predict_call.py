"""What a prediction of one sample costs from Python: kiln's package beside onnxruntime, one thread each.

    make && PYTHONPATH=python python bench/predict_call.py

Needs numpy; with onnx and onnxruntime the same network is measured there, too. The network is an MLP of 784-512-512-10 that the
script trains for a moment. Prints medians in microseconds over ROUNDS rounds of CALLS calls, the ways in turn:
  package  model.predict(array of one sample), a new one each time
  C        the call of C in it, kiln_predict, alone
  onnx     session.run of the same network"""
import ctypes
import os
import statistics
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np  # noqa: E402

import kiln  # noqa: E402
from kiln import _library  # noqa: E402

ROUNDS, CALLS = int(os.environ.get("ROUNDS", "9")), int(os.environ.get("CALLS", "2000"))


def times(call, inputs):
    """Seconds of each call."""
    ret = []
    for one in inputs:
        begin = time.perf_counter()
        call(one)
        ret.append(time.perf_counter() - begin)
    return ret


def c_call(model):
    """kiln_predict of a prepared sample, with the results freed; ctypes itself is in the time of an empty call."""
    lib, err = _library.lib, _library.err()
    sample = np.random.default_rng(1).random((1, 784), np.float32)
    samples = lib.kiln_flat_samples_new(1)
    lib.kiln_flat_samples_arrays(samples, None, 0, 1, (ctypes.c_int64 * 6)(784), sample.ctypes.data, err)
    handle = ctypes.c_void_p()

    def call(_):
        lib.kiln_flat_predict(model._handle, samples, handle, err)
        lib.kiln_predictions_free(handle)

    call.sample, call.empty = sample, lambda _: (lib.kiln_flat_version(), lib.kiln_flat_version())
    return call


def onnx_session(weights):
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    nodes, values, x = [], [], "x"
    for i in range(3):
        values += [numpy_helper.from_array(weights[f"layers.{i}.weight"], f"w{i}"), numpy_helper.from_array(weights[f"layers.{i}.bias"], f"b{i}")]
        nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], [f"h{i}"], transB=1))
        x = f"h{i}"
        if i < 2:
            nodes.append(helper.make_node("Relu", [x], [x + "r"]))
            x += "r"
    nodes.append(helper.make_node("Softmax", [x], ["y"], axis=1))
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 784])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 10])], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def read_safetensors(path):
    import json

    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:8 + size])
    return {name: np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in entries.items() if name != "__metadata__"}


def main():
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(1)
        data = {"train": {"pixels": rng.random((500, 784), np.float32), "label": np.arange(500) % 10}}
        run = kiln.fit("datamodule=arrays", "task=classification", "model=mlp", "trainer.max_epochs=1", "test=false",
                       f"kiln.run.dir={folder}/run", data=data, progress=False)
        model = run.model("last", "trainer.threads=1")
        weights = read_safetensors(run.checkpoint("last").path / "model.safetensors")
    inputs = np.random.default_rng(2).random((CALLS, 1, 784), np.float32)
    call = c_call(model)
    ways = {"package": lambda: times(model.predict, inputs), "C": lambda: times(call, inputs), "empty": lambda: times(call.empty, inputs)}
    try:
        session = onnx_session(weights)
        theirs = session.run(None, {"x": inputs[0]})[0]
        ways["onnx"] = lambda: times(lambda one: session.run(None, {"x": one}), inputs)
    except ImportError as error:
        print(f"without onnxruntime: {error}")
        theirs = None
    medians = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            medians[name].append(1e6 * statistics.median(way()))
    result = {name: statistics.median(all_) for name, all_ in medians.items()}
    inside = result["C"] - result["empty"]
    print(f"package {result['package']:.1f} us, C {inside:.1f} us, beyond C {result['package'] - inside:.1f} us"
          + (f", onnxruntime {result['onnx']:.1f} us" if "onnx" in result else ""))
    if theirs is not None:
        print(f"largest difference of probabilities: {np.abs(theirs - model.predict(inputs[0])['probabilities']).max():.2g}")


if __name__ == "__main__":
    main()
