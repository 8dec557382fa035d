"""Paired differences between methods of two comparisons of the same data and seeds.

A seed decides the split, so the same seed means the same test subjects wherever it was run; that
the number of subjects and labels agree is checked. The summary is that of `nocta compare`.

    python benchmarks/across.py results/pbc-stage results/pbc-stage-more

Writes `across.csv` into the second folder: every method of the first against those of the second. A
method that both have, with other options in the second, is named by that folder too:
`static@pbc-stage-static`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from nocta.core.errors import DataError
from nocta.runs.summary import SIDE_BY_SIDE, summarize_results

SAME = ["dataset", "availability", "split", "n_subjects", "n_labels"]


def across(first: pd.DataFrame, second: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of the summary that compare a method of one with a method of the other.

    Args:
        first: Results of one comparison.
        second: Results of the other.
        name: Of the second, for methods that both have.
    """
    ours = list(dict.fromkeys(first["method"]))
    shared = {m: f"{m}@{name}" for m in second["method"] if m in ours}
    second = second.assign(method=second["method"].replace(shared))
    theirs = list(dict.fromkeys(second["method"]))
    seeds = sorted(set(first["seed"]) & set(second["seed"]))
    if not seeds:
        raise DataError(
            f"No seed in common: {sorted(set(first['seed']))} in one comparison, "
            f"{sorted(set(second['seed']))} in the other."
        )
    both = pd.concat([first, second], ignore_index=True)
    both = both[both["seed"].isin(seeds)]
    for seed, rows in both.groupby("seed"):
        for column in SAME:
            found = rows[column].unique()
            if len(found) > 1:
                raise DataError(
                    f"Seed {seed}: {column} is {found[0]} in one comparison and {found[1]} in the "
                    f"other; they do not judge the same subjects under the same rules."
                )
    table = summarize_results(both, [*ours, *theirs])
    return table[table["method"].isin(ours) & table["versus"].isin(theirs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    arguments = parser.parse_args()
    frames = [pd.read_csv(p / "results.csv") for p in (arguments.first, arguments.second)]
    table = across(*frames, arguments.second.resolve().name)
    file = arguments.second / "across.csv"
    table.to_csv(file, index=False, lineterminator="\n")
    print(table[table["quality"].isin(SIDE_BY_SIDE)].to_string(index=False))
    print(f"In {file}")


if __name__ == "__main__":
    main()
