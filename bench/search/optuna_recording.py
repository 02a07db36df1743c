"""What recording costs Optuna: 100 trials with 10 reports each and a median pruner that is asked after each report, as
search/recording.c does with kiln's journal. Optuna's storages do not sync to disk.

    PYTHON bench/search/optuna_recording.py [ROUNDS]"""
import os
import statistics
import sys
import tempfile
import time

import optuna
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

TRIALS, REPORTS = 100, 10


def run(storage):
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=1), pruner=optuna.pruners.MedianPruner())
    start = time.perf_counter()
    for n in range(TRIALS):
        trial = study.ask()
        trial.suggest_float("lr", 1e-5, 1, log=True)
        trial.suggest_categorical("model", ["mlp", "cnn"])
        for epoch in range(1, REPORTS + 1):
            trial.report(1 / epoch + 0.01 * (n * 37 % 100), epoch)
            trial.should_prune()
        study.tell(trial, 1 / REPORTS + 0.01 * (n * 37 % 100))
    return 1e3 * (time.perf_counter() - start) / TRIALS


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, make in (("in memory", lambda folder: InMemoryStorage()),
                       ("journal file", lambda folder: JournalStorage(JournalFileBackend(os.path.join(folder, "journal.log")))),
                       ("SQLite", lambda folder: RDBStorage(f"sqlite:///{folder}/study.db"))):
        times = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(dir=".") as folder:
                times.append(run(make(folder)))
        print(f"{name}: {statistics.median(times):.2f} ms a trial ({min(times):.2f} to {max(times):.2f})", flush=True)


if __name__ == "__main__":
    main()
