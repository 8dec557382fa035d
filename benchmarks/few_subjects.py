"""A network against a linear model over summaries of the past, if subjects are few.

Both are fitted on the same training subjects under random masks and judged on the same test
subjects, from what some fixed plans acquire of them: random sets of every density, the first visit
alone, every second visit, everything. The network is the careful one of the `default` preset
(dropout, weight decay, early stopping); `both` is the mean of their probabilities.

    python benchmarks/few_subjects.py pbc-event pbc-stage --seeds 5

Writes `results/few-subjects/<dataset>.csv`, one row per seed, history and model; rows that are
there already are not made again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.metrics import average_precision, cross_entropy
from nocta.core.random_plans import random_requests
from nocta.evaluation.frontier import paired_difference
from nocta.predictors.fitting import ChoiceRules
from nocta.predictors.summary import SummaryPredictor
from nocta.runs.setup import DataSource

MODELS = ("network", "linear", "both")
N_DRAWS = 8
#: Units and dropout of the `default` preset's careful network below 2,000 subjects.
UNITS, DROPOUT = 32, 0.4


def histories(test: Cohort) -> dict[str, list[NDArray[np.bool_]]]:
    """What is asked for, by name; random sets several times."""
    shape, open_slots = test.recorded.shape, test.catalog.open_slots
    slot = np.arange(shape[1])[:, None]

    def asked(chosen: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        return [np.broadcast_to(open_slots & chosen, shape).copy()]

    draws = [
        random_requests(len(test), open_slots, np.random.default_rng(i)) for i in range(N_DRAWS)
    ]
    return {
        "random": draws,
        "first visit": asked(slot == 0),
        "every second visit": asked(slot % 2 == 0),
        "everything": asked(slot >= 0),
    }


def run_seed(source: DataSource, seed: int) -> list[dict[str, object]]:
    """All models and histories of one split."""
    train, val, test = source.split(source.load(seed), seed)
    network = ChoiceRules().candidate(train, DROPOUT, seed)
    network.hidden = UNITS
    fitted = [
        network.fit(train, val),
        SummaryPredictor(seed=seed).fit(train, val),
    ]
    rows: list[dict[str, object]] = []
    for name, masks in histories(test).items():
        scores: dict[str, list[tuple[float, float]]] = {model: [] for model in MODELS}
        for mask in masks:
            history = History.of(test, mask)
            found = [predictor.predict_proba(history) for predictor in fitted]
            for model, predicted in zip(MODELS, [*found, np.mean(found, axis=0)], strict=True):
                pair = test.labels[test.labeled], predicted[test.labeled]
                scores[model].append((average_precision(*pair), cross_entropy(*pair)))
        about = {"dataset": source.data, "seed": seed, "history": name}
        for model, pairs in scores.items():
            ap, loss = np.mean(pairs, axis=0)
            rows.append({**about, "model": model, "ap": ap, "cross_entropy": loss})
    return rows


def report(table: pd.DataFrame) -> str:
    """By how much the linear model is ahead of the network, per history."""
    lines = []
    for name, rows in table.groupby("history", sort=False):
        wide = rows.pivot(index="seed", columns="model", values="ap")
        ahead = paired_difference(wide["linear"].to_numpy(), wide["network"].to_numpy())
        means = ", ".join(f"{model} {wide[model].mean():.3f}" for model in MODELS)
        lines.append(f"{name:20} AP: {means}; linear less network {ahead}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--path", help="folder of the files, for data sets that you download")
    parser.add_argument("--out", type=Path, default=Path("results/few-subjects"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.datasets:
        file = arguments.out / f"{name}.csv"
        table = pd.read_csv(file) if file.is_file() else pd.DataFrame()
        done = set(table["seed"]) if len(table) else set()
        for seed in sorted(set(range(arguments.seeds)) - done):
            rows = pd.DataFrame(run_seed(DataSource(name, path=arguments.path), seed))
            table = pd.concat([table, rows], ignore_index=True)
            table.to_csv(file, index=False, lineterminator="\n")
        print(f"{name}\n{report(table)}")


if __name__ == "__main__":
    main()
