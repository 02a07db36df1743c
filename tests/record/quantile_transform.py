"""What scikit-learn's QuantileTransformer gives: tests/data/quantile_transform.h.
    python tests/record/quantile_transform.py > tests/data/quantile_transform.h"""
import numpy as np
import sklearn.preprocessing


def row(name, values):
    print(f"static const double {name}[] = {{")
    print("".join(f"    {value!r},\n" for value in map(float, values)) + "};")


def main():
    rng = np.random.default_rng(1)
    # large, so that the noise of fitting is nothing; with values that occur often
    train = np.concatenate([rng.normal(size=270) * 1e6, np.repeat([-5e5, 0.0, 7e5], 40)])
    transformer = sklearn.preprocessing.QuantileTransformer(output_distribution="normal", n_quantiles=13)
    transformer.fit(train[:, None])
    queries = np.concatenate([[-1e9, train.min(), -5e5, -1.0, 0.0, 1.0, 7e5, train.max(), 1e9], rng.normal(size=20) * 1e6])
    print("/* Recorded by tests/record/quantile_transform.py from scikit-learn. */")
    row("quantile_train", train)
    row("quantile_expected", transformer.quantiles_[:, 0])
    row("quantile_queries", queries)
    row("quantile_values", transformer.transform(queries[:, None])[:, 0])


main()
