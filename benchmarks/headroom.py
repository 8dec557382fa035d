"""How much there is to gain by acquiring more: gradient boosting on parts of what was recorded.

The same subjects and the same split throughout: everything, only the first slot, only the features
of one group (or one feature, if it has none), and nothing but time and context. A data set leaves
room for planning if everything is far ahead of the first slot and of every single group.

    python benchmarks/headroom.py cmapss --path data/cmapss
    python benchmarks/headroom.py physionet2019 --data-option slot_hours=6 --data-option n_slots=8

Writes `results/headroom/<dataset>.csv`, one row per part and seed.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from full_history import METRICS, Boosting, everything, judge
from nocta.cli.data import parse_data_options
from nocta.core.cohort import Cohort
from nocta.runs.setup import DataSource

FIELDS = ("dataset", "seed", "part", *METRICS, "n_labels")


def parts(cohort: Cohort) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Name and slots `(L, M)` of every part."""
    features = cohort.catalog.features
    whole = np.ones((cohort.n_times, len(features)), dtype=bool)
    yield "everything", whole
    yield "first slot", whole & (np.arange(cohort.n_times) == 0)[:, None]
    groups = list(dict.fromkeys(f.group or f.name for f in features))
    for group in groups if len(groups) > 1 else []:
        yield group, whole & np.array([(f.group or f.name) == group for f in features])
    yield "nothing", ~whole


def only(cohort: Cohort, slots: NDArray[np.bool_]) -> Cohort:
    """The cohort as if nothing but these slots had been recorded."""
    kept = cohort.catalog.expand(slots)
    return replace(cohort, values=np.where(kept, cohort.values, np.nan).astype(np.float32))


def rows(source: DataSource, seed: int) -> Iterator[dict[str, object]]:
    """One row per part."""
    train, val, test = source.split(source.load(seed), seed)
    for name, slots in parts(train):
        seen = [only(cohort, slots) for cohort in (train, val, test)]
        model = Boosting().fit(seen[0], seen[1], seed)
        scores = judge(model.predict_proba(everything(seen[2])), seen[2])
        yield {"dataset": source.data, "seed": seed, "part": name, **scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--path", help="folder of the files, for data sets that you download")
    parser.add_argument("--data-option", action="append", metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("results/headroom"))
    arguments = parser.parse_args()
    options = parse_data_options(arguments.dataset, arguments.data_option)
    source = DataSource(arguments.dataset, path=arguments.path, data_options=options)
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / f"{arguments.dataset}.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        for row in (r for seed in range(arguments.seeds) for r in rows(source, seed)):
            writer.writerow(row)
            stream.flush()
            shown = ", ".join(f"{m} {row[m]:.3f}" for m in METRICS)
            print(f"{row['part']:22} {shown}", flush=True)


if __name__ == "__main__":
    main()
