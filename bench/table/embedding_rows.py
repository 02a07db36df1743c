"""Training with hashed ids: the time of a step and the memory with tables of 10 thousand and of 10 million embedding rows,
of which a batch uses at most 256, by the optimizers that update single rows.

    python3 bench/table/embedding_rows.py [ROWS ...]

The time is the median of the epochs after the first, in which each row that the data have is first touched: then
the system gives it memory. model=dlrm, vectors of 16 features, one thread."""
import csv
import os
import random
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLES, BATCH, EPOCHS = 60000, 256, 6
OPTIMIZERS = {"sgd": ["optimizer.momentum=0", "optimizer.weight_decay=0"], "adagrad": [], "adam": []}


def run(folder, optimizer, rows):
    """Milliseconds of a step, and MiB at the peak."""
    name = os.path.join(folder, f"{optimizer}-{rows}")
    command = [os.path.join(ROOT, "build/release/train"), "task=regression", "model=dlrm", "datamodule=table",
               f"datamodule.files.train=[{folder}/ids.csv]", "datamodule.target=y", "datamodule.target_type=number",
               f"+datamodule.hash_buckets={{user: {rows}, item: 10000}}", "datamodule.val_fraction=0", f"optimizer={optimizer}",
               "optimizer.sparse=true", *OPTIMIZERS[optimizer], f"batch_size={BATCH}", f"trainer.max_epochs={EPOCHS}",
               "callbacks=none", "trainer.threads=1", "trainer.enable_checkpointing=false", "trainer.enable_progress_bar=false",
               f"kiln.run.dir={name}", "seed=1"]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        child = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)])
        _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{command} failed")
    with open(os.path.join(name, "metrics.csv"), encoding="utf-8") as file:
        ends = [float(row["wall_time"]) for row in csv.DictReader(file) if row["train/loss_epoch"]]
    epochs = [later - earlier for earlier, later in zip(ends, ends[1:])]
    return 1e3 * statistics.median(epochs) / (SAMPLES / BATCH), usage.ru_maxrss / 1024


def main():
    draw = random.Random(1)
    sizes = [int(size) for size in sys.argv[1:]] or [10_000, 10_000_000]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "ids.csv"), "w", encoding="utf-8") as file:
            file.write("user,item,y\n")
            file.writelines(f"u{draw.randrange(10 ** 9)},i{draw.randrange(10 ** 9)},{draw.random():.3f}\n" for _ in range(SAMPLES))
        for optimizer in OPTIMIZERS:
            for rows in sizes:
                print("%-8s %9d rows  %.2f ms a step  %.0f MiB" % (optimizer, rows, *run(folder, optimizer, rows)), flush=True)


if __name__ == "__main__":
    main()
