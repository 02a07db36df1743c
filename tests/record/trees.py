"""What XGBoost's Python package computes, for task=trees: tests/data/trees/*.svm and values.json.

    PYTHON tests/record/trees.py        (a Python with xgboost 1.7.4, the version of Debian's C library, and numpy)

Parameters and metrics have the same names in both; kiln seeds each round (seed_per_iteration)."""
import json
import pathlib

import numpy as np
import xgboost as xgb

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "trees"
COLUMNS, ROUNDS = 6, 8
CASES = {
    "numbers": [dict(eval_metric=["rmse", "mae"]),
                dict(tree_method="exact", subsample=0.7, seed=3, max_depth=3, eta=0.2, gamma=0.1, min_child_weight=2, alpha=0.5),
                dict(tree_method="approx", max_bin=16),
                dict(grow_policy="lossguide", max_leaves=5, max_depth=0, num_parallel_tree=2, subsample=0.5),
                dict(monotone_constraints={"x.0": 1, "x.1": -1}, base_score=2.0, max_delta_step=1.0),
                dict(colsample_bytree=0.6, colsample_bynode=0.7, max_depth=4, eta=0.2),
                dict(objective="reg:absoluteerror"), dict(objective="reg:pseudohubererror"), dict(objective="count:poisson"),
                dict(objective="reg:tweedie", tweedie_variance_power=1.3), dict(objective="reg:gamma")],
    "binary": [dict(eval_metric=["logloss", "error", "error@0.3", "auc", "aucpr"]), dict(scale_pos_weight=3.0, max_depth=2)],
    "classes": [dict(eval_metric=["mlogloss", "merror"]), dict(eta=0.1, **{"lambda": 0.0})],
    "ranking": [dict(eval_metric=["ndcg@3", "ndcg@3-", "map@5", "ndcg"]), dict(objective="rank:pairwise"),
                dict(objective="rank:map")],
}


def draw(kind, n, rng):
    """Rows with missing values, targets, and for rankings the size of each query, of which some have one document and some
    nothing relevant."""
    x = rng.normal(size=(n, COLUMNS)).round(2).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    signal = np.nan_to_num(x[:, 0]) * 2 - np.nan_to_num(x[:, 1]) + np.where(np.nan_to_num(x[:, 2]) > 0, 1.5, -0.5)
    signal = signal + rng.normal(size=n) * 0.3
    if kind == "numbers":
        return x, (np.abs(signal) + 0.5).round(3), None
    if kind == "binary":
        return x, (signal > 0.7).astype(int), None
    level = np.digitize(signal, [-1.0, 1.5])
    if kind == "classes":
        return x, level, None
    sizes = [1, 1]
    while sum(sizes) < n:
        sizes.append(min(int(rng.integers(2, 9)), n - sum(sizes)))
    level[2:2 + sizes[2]] = 0
    return x, level, sizes


def write(path, x, y, sizes):
    queries = np.repeat(np.arange(len(sizes)), sizes) if sizes else None
    with open(path, "w") as f:
        for i, (row, target) in enumerate(zip(x, y)):
            words = [f"{target:g}"] + ([f"qid:{queries[i]}"] if sizes else [])
            f.write(" ".join(words + [f"{j + 1}:{v:g}" for j, v in enumerate(row) if not np.isnan(v)]) + "\n")


def matrix(x, y, sizes):
    data = xgb.DMatrix(x, label=y)
    if sizes:
        data.set_group(sizes)
    return data


def boost(given, train, test):
    """The model and its metrics. Of rounds of hist that sample, each has a new updater, as kiln makes it."""
    evals, history = [(train, "train"), (test, "val")], {}
    if given["tree_method"] != "hist" or not any("sample" in name for name in given):
        return xgb.train(given, train, ROUNDS, evals=evals, evals_result=history, verbose_eval=False), history
    model = xgb.Booster(given, [train, test])
    for i in range(ROUNDS):
        model.set_param({"updater": "prune"})
        model.num_features()  # which configures the booster
        model.set_param({**given, "updater": "grow_quantile_histmaker"})
        model.update(train, i)
        for word in model.eval_set(evals, i).split()[1:]:
            name, value = word.split(":")
            split, metric = name.split("-", 1)
            history.setdefault(split, {}).setdefault(metric, []).append(float(value))
    return model, history


def record(kind, options, train, test):
    objective = {"numbers": "reg:squarederror", "binary": "binary:logistic", "classes": "multi:softprob",
                 "ranking": "rank:ndcg"}[kind]
    given = {"objective": objective, "tree_method": "hist", "seed": 1, **options, "nthread": 1, "seed_per_iteration": True}
    if kind == "classes":
        given["num_class"] = 3
    if "monotone_constraints" in given:
        given["monotone_constraints"] = tuple(given["monotone_constraints"].get(f"x.{i}", 0) for i in range(COLUMNS))
    model, history = boost(given, train, test)
    return {
        "data": kind,
        "options": options,
        "metrics": {f"{split}/{name}": [float(f"{v:.9g}") for v in values]
                    for split, by_name in history.items() for name, values in by_name.items()},
        "predictions": [[float(f"{v:.7g}") for v in np.atleast_1d(row)] for row in model.predict(test)],
        "contributions": np.asarray(model.predict(test, pred_contribs=True), np.float64)[:3].round(6).tolist(),
        "gain": {f"x.{name[1:]}": float(f"{v:.6g}") for name, v in model.get_score(importance_type="gain").items()},
    }


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    values = []
    for kind, list_of_options in CASES.items():
        parts = [draw(kind, n, rng) for n in (120, 40)]
        for name, part in zip(("train", "test"), parts):
            write(FOLDER / f"{kind}.{name}.svm", *part)
        for options in list_of_options:
            values.append(record(kind, options, *(matrix(*part) for part in parts)))
    with open(FOLDER / "values.json", "w") as f:
        f.write("[" + ",\n".join(json.dumps(v) for v in values) + "]\n")


main()
