"""Times what happens before a run. Composing: 12 groups and 3 overrides, as a whole process and inside one, beside the real Hydra
when PEER is a Python that has it; and the config that ships, which has components to check. And a Tab in the shell."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(f"{__file__}/../../..")
BUILD = os.path.join(ROOT, "build/release")
PEER = os.environ.get("PEER")
GROUPS = 12
OVERRIDES = ["g3=two", "g7.width=99", "+extra=[1,2,3]"]
SHIPPED = ["model=resnet", "lr=0.3", "trainer.max_epochs=3"]

HYDRA_PROCESS = """
import hydra
@hydra.main(version_base=None, config_path=None, config_name="config")
def main(config): pass
main()
"""
HYDRA_INSIDE = """
import statistics, sys, time
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
times = []
with initialize_config_dir(sys.argv[1], version_base=None):
    for _ in range(31):
        start = time.perf_counter()
        OmegaConf.to_yaml(compose("config", sys.argv[2:]), resolve=True)
        times.append(time.perf_counter() - start)
print(statistics.median(times) * 1e6)
"""


def write_tree(folder):
    lines = ["defaults:"] + [f"  - g{i}: one" for i in range(GROUPS)] + ["  - _self_", "lr: 0.1", "seed: 1"]
    with open(f"{folder}/config.yaml", "w") as f:
        f.write("\n".join(lines) + "\n")
    for i in range(GROUPS):
        os.makedirs(f"{folder}/g{i}")
        for option in ["one", "two", "three"]:
            with open(f"{folder}/g{i}/{option}.yaml", "w") as f:
                f.write(f"name: {option}\nwidth: {i}\ndepth: 3\nrate: ${{lr}}\nsizes: [1, 2, 3]\n"
                        f"inner: {{a: 1.5, b: text, c: null}}\npath: /data/${{.name}}/{i}\n")


def process_ms(command, rounds):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def inside_us(path, overrides):
    out = subprocess.run([f"{BUILD}/bench/config/compose", path, "1000", *overrides], check=True,
                         capture_output=True, text=True).stdout
    return [float(x) for x in out.split()]


def row(what, value, bar, theirs=None):
    print(f"{what:44} {value:>9} {bar:>12} {theirs or '-':>10}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_tree(folder)
        hydra = inside = None
        if PEER:
            with open(f"{folder}/app.py", "w") as f:
                f.write(HYDRA_PROCESS)
            hydra = process_ms([PEER, f"{folder}/app.py", "--config-dir", folder, "--cfg", "job", *OVERRIDES], 11)
            inside = float(subprocess.run([PEER, "-c", HYDRA_INSIDE, folder, *OVERRIDES], check=True,
                                          capture_output=True, text=True).stdout)
        print(f"{'':44} {'kiln':>9} {'bar':>12} {'Hydra':>10}")
        train = [f"{BUILD}/train", "--cfg", "job", "--resolve"]
        row("12 groups, 3 overrides: whole process", f"{process_ms(train + ['--config-path', folder] + OVERRIDES, 51):.2f} ms",
            "5 ms", hydra and f"{hydra:.0f} ms")
        same, changing = inside_us(folder, OVERRIDES)
        row("the same inside one process", f"{same:.0f} us", "500 us", inside and f"{inside:.0f} us")
        row("each of 1000 different ones in a loop", f"{changing:.0f} us", "-")
        row("what ships, 3 overrides: whole process", f"{process_ms(train + SHIPPED, 51):.2f} ms", "-")
        same, changing = inside_us("-", SHIPPED)
        row("the same inside one process", f"{same:.0f} us", "-")
        tab = [f"{BUILD}/kiln", "complete", "fish"]
        row("a Tab after `train optimizer.`", f"{process_ms(tab + ['train optimizer.'], 51):.2f} ms", "10 ms")
        line = f"train --config-path {folder} g1=two g2=two g3.width=5 g4."
        row("a Tab in the 12 groups", f"{process_ms(tab + [line], 51):.2f} ms", "10 ms")


if __name__ == "__main__":
    sys.exit(main())
