"""Time of inference with one sample: kiln beside PyTorch and onnxruntime, in turn on the same machine.

    PEER=python-with-torch python3 bench/infer.py [NAME...]        all, or those of AIMS

Prints the median of each way over paired rounds (ROUNDS, default 3), and kiln's time over the better
of PyTorch's ways and over onnxruntime's. PEER needs torch, torchvision, onnx and onnxruntime; a way that
it lacks is left out with a line that says so."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = os.environ.get("PEER")
THREADS = os.environ.get("THREADS", "2")
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SECONDS = os.environ.get("SECONDS", "4")

AIMS = {"resnet18": 0.7, "unet": 0.7, "gpt": 0.7}
WAYS = {"resnet18": ["eager", "channels-last", "compile", "compile-channels-last", "onnx"],
        "unet": ["eager", "channels-last", "compile", "compile-channels-last", "onnx"],
        "gpt": ["eager", "compile", "onnx"]}


# ---- The peers' side, run by PEER ------------------------------------------------------------------

def network(name):
    import torch
    import torchvision
    from peer import Gpt, UNet
    torch.manual_seed(1)
    if name == "resnet18":
        return torchvision.models.resnet18().eval(), torch.randn(1, 3, 224, 224)
    if name == "unet":
        return UNet().eval(), torch.randn(1, 3, 256, 256)
    return Gpt().eval(), torch.randint(65, (1, 256))


def by_torch(name, way):
    import torch
    model, x = network(name)
    if "channels-last" in way:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if "compile" in way:
        model = torch.compile(model)

    def step():
        with torch.inference_mode():
            return model(x)
    return step


def by_onnx(name, threads):
    import onnxruntime
    import torch
    model, x = network(name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, input_names=["x"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {"x": x.numpy()}
    return lambda: session.run(None, feeds)


def measure_peer(name, way, threads, seconds):
    import torch
    torch.set_num_threads(threads)
    step = by_onnx(name, threads) if way == "onnx" else by_torch(name, way)
    times = []

    for _ in range(4):
        step()
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"ms": statistics.median(times)}))


# ---- Pairs ------------------------------------------------------------------------------------------

def kiln(name):
    program = f"{ROOT}/build/release/bench/infer"
    if not os.path.exists(program):
        sys.exit(f"infer.py: {program} is missing; `make bench-infer` builds it")
    text = subprocess.run([program, name, "--threads", THREADS, "--seconds", SECONDS],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(text)["ms"]


def peer(name, way):
    text = subprocess.run([PEER, os.path.abspath(__file__), "--peer", name, way, "--threads", THREADS,
                           "--seconds", SECONDS], check=True, capture_output=True, text=True).stdout
    return json.loads(text.splitlines()[-1])["ms"]


def row(name):
    ours, theirs = [], {way: [] for way in WAYS[name]} if PEER else {}
    for _ in range(ROUNDS):
        ours.append(kiln(name))
        for way in list(theirs):
            try:
                theirs[way].append(peer(name, way))
            except subprocess.CalledProcessError as error:
                print(f"  {name} {way}: left out: {(error.stderr.splitlines() or ['failed'])[-1]}", flush=True)
                del theirs[way]
    medians = {way: statistics.median(times) for way, times in theirs.items()}
    print(f"{name:10s} kiln {statistics.median(ours):8.2f} ms", *(f"  {way} {ms:8.2f} ms" for way, ms in medians.items()))
    torch_ways = [way for way in medians if way != "onnx"]
    for title, ways in (("PyTorch", torch_ways), ("onnxruntime", [way for way in medians if way == "onnx"])):
        if ways:
            best = min(ways, key=medians.get)
            ratio = statistics.median(a / b for a, b in zip(ours, theirs[best]))
            print(f"{'':10s} over {title} ({best}) {ratio:.2f} (aim {AIMS[name]})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--peer", nargs=2, metavar=("NAME", "WAY"), help="measure one way; run by PEER")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4.0)
    args = parser.parse_args()
    if args.peer:
        measure_peer(*args.peer, args.threads, args.seconds)
        return
    for name in args.names or AIMS:
        if name not in AIMS:
            sys.exit(f"infer.py: no benchmark \"{name}\"; there are: {', '.join(AIMS)}")
    print(f"{THREADS} threads, {ROUNDS} paired rounds" + ("" if PEER else "; set PEER for the peers' side"))
    for name in args.names or AIMS:
        row(name)


if __name__ == "__main__":
    main()
