"""Times reading a CSV of a million rows beside pandas' C parser: 2 threads here; pandas has one, and two since version 3.

    PYTHON bench/table/read.py [ROWS]     PYTHON has pandas

20 columns: 8 floats with 6 digits, 4 with 17, 5 whole numbers, 2 of categories, and the target. kiln's time is from the
file to batches of 256 scaled samples; pandas' is that of read_csv alone. Pairs of runs; prints medians."""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = 3


def write(path, rows):
    draw = np.random.default_rng(1)
    table = {f"f{i}": draw.normal(size=rows).round(6) for i in range(8)}
    table |= {f"d{i}": draw.normal(size=rows) for i in range(4)}
    table |= {f"n{i}": draw.integers(0, 10 ** (i + 1), rows) for i in range(5)}
    table |= {f"c{i}": draw.choice(["Bonn", "Kiel", "Oldenburg", "Ulm", "Xanten"], rows) for i in range(2)}
    table["target"] = draw.normal(size=rows).round(4)
    pd.DataFrame(table).to_csv(path, index=False)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "table.csv")
        write(path, rows)
        times = {"floor": [], "kiln": [], "pandas": []}
        for _ in range(PAIRS):
            out = subprocess.run([ROOT / "build/release/bench/table/read", path, "target"], check=True, capture_output=True,
                                 text=True).stdout.split()
            start = time.perf_counter()
            frame = pd.read_csv(path, engine="c")
            times["pandas"].append(time.perf_counter() - start)
            times["floor"].append(float(out[0]))
            times["kiln"].append(float(out[1]) + float(out[2]))
            if int(out[4]) != len(frame):
                sys.exit(f"kiln has {out[4]} samples, pandas {len(frame)} rows")
        size = path.stat().st_size / 1e6
    for name, seconds in times.items():
        print(f"{name:8} {statistics.median(seconds):6.3f} s  {size / statistics.median(seconds):7.1f} MB/s")
    print(f"ratio {statistics.median(times['pandas']) / statistics.median(times['kiln']):.2f}")


main()
