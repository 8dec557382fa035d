"""With everything acquired: the default predictor against gradient boosting.

The same subjects, the same splits, the same history: everything recorded up to each time. Gradient
boosting sees that history as one row per labeled (subject, time) pair: current, last, mean, lowest
and highest value of every column, how far the last is from the first and from the one before, how
long ago and how often it was recorded, the time and the free context. Both choose on validation and
are judged on test.

    python benchmarks/full_history.py pbc-event pbc-stage --seeds 10
    python benchmarks/full_history.py physionet2012 --seeds 5

Writes `results/full-history/<dataset>.csv`, one row per seed and model; rows that are there
already are not made again. With `--kept DIR` our predictors are not fitted again but are those that
the comparison in DIR kept (`nocta compare ... --out DIR`).
"""

from __future__ import annotations

import argparse
import csv
import time as clock
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.metrics import (
    LOWER_IS_BETTER,
    average_precision,
    cross_entropy,
    roc_auc,
)
from nocta.core.predictor import Predictor
from nocta.evaluation.frontier import paired_difference
from nocta.predictors.fitting import fit_predictor
from nocta.runs.setup import DataSource
from nocta.runs.store import JobStore

METRICS = ("ap", "roc_auc", "cross_entropy")
MODELS = ("nocta", "gradient boosting")
FIELDS = ("dataset", "seed", "model", *METRICS, "n_labels", "fit_seconds")
#: Leaves per tree and subjects per leaf: from stumps of stumps to scikit-learn's usual size.
GRID = ((4, 30), (8, 10), (16, 30), (31, 20))
MAX_TREES = 300


def everything(cohort: Cohort) -> History:
    """All that was recorded, asked for."""
    return History.of(cohort, np.ones_like(cohort.recorded))


def summaries(history: History) -> NDArray[np.float64]:
    """Each subject's past as seen from each time, `(n, L, F)`; NaN where there is none yet."""
    n, length, depth = history.values.shape
    last, previous, first, low, high, since = np.full((6, n, depth), np.nan)
    count, total = np.zeros((2, n, depth))
    rows = []
    for t in range(length):
        now = history.values[:, t].astype(float)
        seen = ~np.isnan(now)
        previous = np.where(seen, last, previous)
        last = np.where(seen, now, last)
        first = np.where(np.isnan(first), now, first)
        low, high = np.fmin(low, now), np.fmax(high, now)
        since = np.where(seen, 0.0, since + 1)
        count, total = count + seen, total + np.where(seen, now, 0.0)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        change = [last - first, last - previous]
        place = [np.full((n, 1), t), history.context]
        columns = [now, last, since, count, mean, low, high, *change, *place]
        rows.append(np.concatenate(columns, axis=1))
    return np.stack(rows, axis=1)


class Boosting:
    """Gradient boosting on summaries; size and number of trees are chosen on validation."""

    def fit(self, train: Cohort, val: Cohort, seed: int) -> Boosting:
        x, y = summaries(everything(train))[train.labeled], train.labels[train.labeled]
        x_val, y_val = summaries(everything(val))[val.labeled], val.labels[val.labeled]
        self.recorded = ~np.isnan(x).all(axis=0)  # scikit-learn cannot bin a column of NaN
        x, x_val = x[:, self.recorded], x_val[:, self.recorded]
        best = np.inf
        for leaves, per_leaf in GRID:
            model = HistGradientBoostingClassifier(
                learning_rate=0.06,
                max_iter=MAX_TREES,
                max_leaf_nodes=leaves,
                min_samples_leaf=per_leaf,
                l2_regularization=1.0,
                max_features=0.3,
                early_stopping=False,
                random_state=seed,
            ).fit(x, y)
            for n_trees, probabilities in enumerate(model.staged_predict_proba(x_val), start=1):
                loss = cross_entropy(y_val, probabilities)
                if loss < best:
                    best, self.model, self.n_trees = loss, model, n_trees
        return self

    def predict_proba(self, history: History) -> NDArray[np.float64]:
        x = summaries(history)[:, :, self.recorded]
        stages = self.model.staged_predict_proba(x.reshape(-1, x.shape[2]))
        found = next(p for i, p in enumerate(stages, start=1) if i == self.n_trees)
        return np.asarray(found.reshape(*x.shape[:2], -1))


def judge(predicted: NDArray[np.floating], test: Cohort) -> dict[str, float]:
    """Pooled over the labeled pairs of the test subjects."""
    labels, probabilities = test.labels[test.labeled], predicted[test.labeled]
    return {
        "ap": average_precision(labels, probabilities),
        "roc_auc": roc_auc(labels, probabilities),
        "cross_entropy": cross_entropy(labels, probabilities),
        "n_labels": len(labels),
    }


def run_model(source: DataSource, seed: int, name: str, kept: Path | None) -> dict[str, object]:
    """One model on one split."""
    train, val, test = source.split(source.load(seed), seed)
    started = clock.perf_counter()
    fitted: Predictor | Boosting
    found = JobStore(kept).predictor(seed) if name == MODELS[0] and kept else None
    if found is not None:
        fitted = found.predictor
    elif name == MODELS[0]:
        fitted = fit_predictor(train, val, "default", seed)
    else:
        fitted = Boosting().fit(train, val, seed)
    seconds = found.seconds if found is not None else clock.perf_counter() - started
    scores = judge(fitted.predict_proba(everything(test)), test)
    about = {"dataset": source.data, "seed": seed, "model": name}
    return {**about, **scores, "fit_seconds": round(seconds, 1)}


def read_rows(file: Path) -> list[dict[str, object]]:
    """Rows of an earlier run."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def report(rows: list[dict[str, object]]) -> str:
    """Per metric: the mean of both over seeds, and by how much ours is ahead, with its error.

    Seeds that only one of them has are left out.
    """
    seeds = [{str(r["seed"]) for r in rows if r["model"] == name} for name in MODELS]
    rows = [row for row in rows if str(row["seed"]) in seeds[0] & seeds[1]]
    lines = []
    for metric in METRICS:
        ours, theirs = (
            np.array([float(str(r[metric])) for r in rows if r["model"] == name]) for name in MODELS
        )
        means = f"{MODELS[0]} {ours.mean():.3f}, {MODELS[1]} {theirs.mean():.3f}"
        pair = (theirs, ours) if metric in LOWER_IS_BETTER else (ours, theirs)
        lines.append(f"{metric:14} {means}, better by {paired_difference(*pair)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--path", help="folder of the files, for data sets that you download")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="comparison whose predictors are judged")
    parser.add_argument("--out", type=Path, default=Path("results/full-history"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.datasets:
        file, source = arguments.out / f"{name}.csv", DataSource(name, path=arguments.path)
        rows = read_rows(file)
        done = {(int(str(row["seed"])), row["model"]) for row in rows}
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        for seed, model in [(s, m) for s in seeds for m in MODELS if (s, m) not in done]:
            rows.append(run_model(source, seed, model, arguments.kept))
            rows.sort(key=lambda r: (int(str(r["seed"])), MODELS.index(str(r["model"]))))
            with file.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, FIELDS)
                writer.writeheader()
                writer.writerows(rows)
        print(f"{name}\n{report(rows)}")


if __name__ == "__main__":
    main()
