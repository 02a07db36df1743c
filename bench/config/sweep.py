#!/usr/bin/env python3
"""What a sweep costs besides its jobs: 100 jobs of one step through `train -m`, one and two at a
time, less what the same runs need one after the other in one process, or in two. The best of several
rounds of each, taken in turn, because other work on the machine only ever adds. Their folders are in
memory if TMPDIR is."""
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


def sweep(folder, at_once):
    wall, cpu = time.monotonic(), children_cpu()
    subprocess.run([os.path.join(BUILD, "train"), "-m", *JOB, f"seed=range(1,{JOBS + 1})", "kiln.sweep.dir=sweep",
                    f"kiln.launcher.n_jobs={at_once}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - wall, children_cpu() - cpu


def inside(folder, at_once):
    command = [os.path.join(BUILD, "bench/config/sweep_inside"), str(JOBS // at_once)]
    processes = [subprocess.Popen([*command, f"runs{i}", *JOB], cwd=folder, stdout=subprocess.PIPE, text=True)
                 for i in range(at_once)]
    times = [tuple(float(word) for word in process.communicate()[0].split()) for process in processes]
    return max(wall for wall, _ in times), sum(cpu for _, cpu in times)


def plan(folder):
    wall = time.monotonic()
    subprocess.run([os.path.join(BUILD, "train"), "-m", "--plan", "seed=range(0,100)", "batch_size=range(1,101)"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - wall


def main():
    for at_once in 1, 2:
        rounds = {sweep: [], inside: []}
        for _ in range(ROUNDS):
            for measure, results in rounds.items():
                with tempfile.TemporaryDirectory() as folder:
                    results.append(measure(folder, at_once))
        for i, what in enumerate(("wall", "processor")):
            best = {measure: min(r[i] for r in results) for measure, results in rounds.items()}
            print(f"{what}: {JOBS} jobs through -m, {at_once} at a time, {best[sweep]:.3f} s, without {best[inside]:.3f} s, "
                  f"overhead {1e3 * (best[sweep] - best[inside]) / JOBS:.1f} ms a job")
    with tempfile.TemporaryDirectory() as folder:
        print(f"plan of 10,000 jobs: {min(plan(folder) for _ in range(ROUNDS)):.3f} s")


if __name__ == "__main__":
    main()
