#!/usr/bin/env python3
"""Optuna's samplers on the functions of bench/search/search.c: prints the same lines.

    PEER/bin/python bench/search/optuna_peer.py [SEEDS [FIRST_SEED]]

PEER is an environment with optuna, cmaes and scipy. Times are of the processor, and include the function."""
import math
import statistics
import sys
import time
import warnings

import numpy as np
import optuna
from optuna.samplers import CmaEsSampler, RandomSampler, TPESampler


def branin(trial):
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    bend = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return bend * bend + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


SCALE = np.array([1.0, 1.2, 3.0, 3.2])
A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])
P = np.array([[0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
              [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]])


def hartmann(trial):
    x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(6)])
    return -float(SCALE @ np.exp(-(A * (x - P) ** 2).sum(axis=1)))


def rosenbrock(trial):
    x = [trial.suggest_float(f"x{i}", -5, 10) for i in range(5)]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def mixed(trial):
    model = trial.suggest_categorical("model", [0, 1, 2])
    rate = math.log10(trial.suggest_float("lr", 1e-5, 1, log=True))
    layers = trial.suggest_int("layers", 1, 10)
    units = math.log2(trial.suggest_int("units", 8, 512, log=True) / 96)
    activation = trial.suggest_categorical("activation", [0, 1, 2, 3])
    momentum = trial.suggest_float("momentum", 0, 1) - 0.9 if model == 0 else 0
    return ([0, 0.1, 0.4][model] + [0.2, 0, 0.1, 0.3][activation] + 0.3 * (rate + 3 + 0.25 * (layers - 3)) ** 2 +
            0.02 * (layers - 5) ** 2 + 0.1 * units**2 + 4 * momentum**2)


FUNCTIONS = [("branin", branin, 0.39788735772973816, 100), ("hartmann6", hartmann, -3.322368011415514, 200),
             ("rosenbrock5", rosenbrock, 0.0, 300), ("mixed", mixed, 0.0, 100)]
SAMPLERS = [("RandomSampler", lambda seed, group: RandomSampler(seed=seed)),
            ("TPESampler", lambda seed, group: TPESampler(seed=seed)),
            ("TPESampler multivariate",
             lambda seed, group: TPESampler(seed=seed, multivariate=True, group=group)),
            ("CmaEsSampler", lambda seed, group: CmaEsSampler(seed=seed))]


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for name, function, least, trials in FUNCTIONS:
        for sampler, make in SAMPLERS:
            if name == "mixed" and sampler == "CmaEsSampler":
                continue
            regrets = []
            start = time.process_time()
            for seed in range(first, first + seeds):
                study = optuna.create_study(sampler=make(seed, name == "mixed"))
                study.optimize(function, n_trials=trials)
                regrets.append(study.best_value - least)
            seconds = time.process_time() - start
            rng = np.random.default_rng(1)
            low, high = np.quantile(np.median(rng.choice(regrets, (1000, seeds)), axis=1), [0.025, 0.975])
            print(f"{name:12} {sampler:22} {seeds:4} seeds  {statistics.median(regrets):8.4g}  [{low:.4g}, {high:.4g}]"
                  f"  {1e6 * seconds / (seeds * trials):.1f} us", flush=True)


if __name__ == "__main__":
    main()
