"""Steps with 1, 2, 4 and 8 threads on the cores that there are, and how evenly the threads share the work.

    python3 bench/scaling.py [NAME...]      mlp, resnet18, gpt, lstm; ROUNDS (default 3); THREADS="1 2 4 8"

Prints medians over rounds in which the numbers of threads take turns. `bound` is the processor time of all compute
threads over that of the busiest one: the speedup that as many cores could give. It is too low where threads end during
the run. More threads than cores take turns, so there a step may cost more only by what the scheduler adds."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402

NAMES = ["mlp", "resnet18", "gpt", "lstm"]
COUNTS = [int(n) for n in os.environ.get("THREADS", "1 2 4 8").split()]
SECONDS = "2"


def times(pid):
    """Processor time of each thread, in seconds."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            found.append(1e-9 * int(f.read().split()[0]))
    return sorted(found, reverse=True)


def watch(command, threads, cwd):
    """Standard output, and the bound at the last look before the end."""
    bound = 1.0
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True)
    while child.poll() is None:
        try:
            busy = times(child.pid)[:threads]
            bound = sum(busy) / busy[0] if busy[0] > 0 else bound
        except (OSError, IndexError):
            pass
        time.sleep(0.05)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: ended with {child.returncode}")
    return child.stdout.read(), bound


def step(name, threads, folder):
    what = run.ROWS[name][1]
    if isinstance(what, str):
        text, bound = watch([f"{run.BUILD}/bench/{what}", "--threads", str(threads), "--seconds", SECONDS], threads, folder)
        return run.json.loads(text)["ms"], bound
    target = os.path.join(folder, "run")
    shutil.rmtree(target, ignore_errors=True)
    _, bound = watch([f"{run.BUILD}/train", *what, "datamodule.count=320", f"kiln.run.dir={target}", f"trainer.threads={threads}",
                      "test=false", "trainer.max_epochs=1", "callbacks=none"], threads, folder)
    with open(os.path.join(target, "summary.json")) as f:
        return run.json.load(f)["step_ms_median"], bound


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or NAMES:
            results = {n: [] for n in COUNTS}
            for _ in range(run.ROUNDS):
                for n in COUNTS:
                    results[n].append(step(name, n, folder))
            for n in COUNTS:
                ms, bound = (statistics.median(values) for values in zip(*results[n]))
                print(f"{name:10s} {n} threads {ms:9.3f} ms   bound {bound:.2f}", flush=True)


main()
