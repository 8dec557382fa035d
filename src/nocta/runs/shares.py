"""Results on a task whose exact optimum is known: shares of the optimum and of what it gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nocta.evaluation.attainable import (
    MEASURES,
    attainable_share,
    optimum_frontier,
    share_over_costs,
)
from nocta.evaluation.frontier import Frontier
from nocta.exact.optimum import accuracy_at
from nocta.exact.yardstick import Yardstick

if TYPE_CHECKING:
    import pandas as pd

#: By measure, the column with the share of the attainable gain.
GAIN_COLUMNS = {measure: f"gain_{measure}" for measure in MEASURES}
OPTIMUM_COLUMNS = (
    "method",
    "seed",
    "point",
    "cost",
    "accuracy",
    "optimum",
    "ratio",
    "gain_accuracy",
    "cross_entropy",
    "optimum_cross_entropy",
    "gain_cross_entropy",
)


def share_of_optimum(results: pd.DataFrame, yardstick: Yardstick) -> pd.DataFrame:
    """Every operating point of the methods' own beside the best possible at the same cost.

    `ratio` is accuracy divided by the optimum; `gain_accuracy` and `gain_cross_entropy` are shares
    of the attainable gain. After the points of a method come rows of all seeds: with `point` "mean"
    (over points and seeds), "costs" (shares of gain, mean over the whole range of costs) and
    "lowest" (the lowest share of gain in that range, of any seed).
    """
    import pandas as pd

    table = _without_ends(results).reindex(columns=["method", "seed", "cost", *MEASURES])
    table["point"] = table.groupby(["method", "seed"]).cumcount().astype(object)
    table["optimum"] = accuracy_at(yardstick.optimum, table["cost"].to_numpy())
    table["ratio"] = table["accuracy"] / table["optimum"]
    for measure, column in GAIN_COLUMNS.items():
        best = optimum_frontier(yardstick, measure)
        if best is not None:
            table[column] = attainable_share(best, table["cost"], table[measure])
            table[f"optimum_{measure}"] = best.at(table["cost"].to_numpy())
    table = table.reindex(columns=list(OPTIMUM_COLUMNS))
    table["seed"] = table["seed"].astype(object)
    over_costs = gain_over_costs(results, yardstick)
    tables = []
    for method, points in table.groupby("method", sort=False):
        ours = over_costs[over_costs["method"] == method]
        mean = points.drop(columns=["method", "seed", "point"]).mean().to_dict()
        by_measure = ours.groupby(ours["measure"].map(GAIN_COLUMNS))
        rows = [
            {"point": "mean", **mean},
            {"point": "costs", **by_measure["mean"].mean().to_dict()},
            {"point": "lowest", **by_measure["lowest"].min().to_dict()},
        ]
        tables += [points, pd.DataFrame(rows).assign(method=method, seed="all")]
    return pd.concat(tables, ignore_index=True)[list(OPTIMUM_COLUMNS)]


def _without_ends(results: pd.DataFrame) -> pd.DataFrame:
    """The rows but nothing and everything, with which the curves of all methods begin and end."""
    if "setting" not in results:
        return results
    return results[~results["setting"].str.startswith('{"acquire": ')]


def gain_over_costs(results: pd.DataFrame, yardstick: Yardstick) -> pd.DataFrame:
    """Share of the attainable gain over the whole range of costs, by method, seed and measure.

    Columns `method, seed, measure, mean, lowest, lowest_at`; see `share_over_costs`.
    """
    import pandas as pd

    rows = []
    for measure in MEASURES:
        best = optimum_frontier(yardstick, measure)
        known = results.dropna(subset=[measure]) if measure in results else results[:0]
        if best is None:
            continue
        for (method, seed), points in known.groupby(["method", "seed"], sort=False):
            curve = Frontier(points["cost"].to_numpy(), points[measure].to_numpy(), measure)
            found = share_over_costs(best, curve)._asdict()
            rows.append({"method": method, "seed": seed, "measure": measure, **found})
    return pd.DataFrame(rows, columns=["method", "seed", "measure", "mean", "lowest", "lowest_at"])
