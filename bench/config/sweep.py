#!/usr/bin/env python3
"""What a sweep costs besides its jobs: 100 jobs of one step through `train -m`, less what
the same runs need one after the other in one process. The best of several rounds of each,
taken in turn, because other work on the machine only ever adds."""
import os
import resource
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release")
JOBS, ROUNDS = 100, 7
JOB = ["model=mlp", "model.hidden=[16]", "datamodule.train_count=64", "datamodule.val_count=64",
       "datamodule.test_count=64", "datamodule.batch_size=64", "trainer.max_steps=1", "trainer.threads=1"]


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sweep(folder):
    wall, cpu = time.monotonic(), children_cpu()
    subprocess.run([os.path.join(BUILD, "train"), "-m", *JOB, f"seed=range(1,{JOBS + 1})", "kiln.sweep.dir=sweep"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - wall, children_cpu() - cpu


def inside(folder):
    out = subprocess.run([os.path.join(BUILD, "bench/config/sweep_inside"), str(JOBS), "runs", *JOB],
                         cwd=folder, check=True, capture_output=True, text=True).stdout
    return tuple(float(word) for word in out.split())


def plan(folder):
    wall = time.monotonic()
    subprocess.run([os.path.join(BUILD, "train"), "-m", "--plan", "seed=range(0,100)", "batch_size=range(1,101)"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - wall


def main():
    rounds = {sweep: [], inside: []}
    for _ in range(ROUNDS):
        for measure, results in rounds.items():
            with tempfile.TemporaryDirectory() as folder:
                results.append(measure(folder))
    for i, what in enumerate(("wall", "processor")):
        best = {measure: min(r[i] for r in results) for measure, results in rounds.items()}
        print(f"{what}: {JOBS} jobs through -m {best[sweep]:.3f} s, in one process {best[inside]:.3f} s, "
              f"overhead {1e3 * (best[sweep] - best[inside]) / JOBS:.1f} ms a job")
    with tempfile.TemporaryDirectory() as folder:
        print(f"plan of 10,000 jobs: {min(plan(folder) for _ in range(ROUNDS)):.3f} s")


if __name__ == "__main__":
    main()
