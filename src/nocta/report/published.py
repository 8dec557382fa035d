"""The paper's own numbers, transcribed in `published.toml` with their place in the paper."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from nocta.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from nocta.runs.setup import DataSource

METRICS = ("accuracy", "ap", "roc_auc")


@dataclass(frozen=True)
class PaperRow:
    """One printed row: means over five runs, and the spread printed after the ± sign, or NaN.

    The dataset is empty for a statement about none. The knob is the option that an ablation varied,
    for example `{"n_neighbors": 5}`, or the exponents of an order of growth.
    """

    dataset: str
    method: str
    cost: float
    cost_spread: float
    metrics: Mapping[str, float]
    spreads: Mapping[str, float]
    knob: Mapping[str, Any]


@dataclass(frozen=True)
class PaperTable:
    """A table, figure or statement of the paper, and its place in the paper."""

    name: str
    place: str
    caption: str
    rows: tuple[PaperRow, ...]


@cache
def _tables() -> dict[str, PaperTable]:
    text = resources.files(__package__).joinpath("published.toml").read_text("utf-8")
    return {
        name: PaperTable(
            name, table["place"], table["caption"], tuple(_row(r) for r in table["rows"])
        )
        for name, table in tomllib.loads(text).items()
    }


def _row(row: dict[str, Any]) -> PaperRow:
    known = {"dataset", "method", "cost", *METRICS}
    printed = {name: row[name] for name in METRICS if name in row}
    cost, cost_spread = [*row.get("cost", ()), math.nan, math.nan][:2]
    return PaperRow(
        dataset=row.get("dataset", ""),
        method=row["method"],
        cost=cost,
        cost_spread=cost_spread,
        metrics={name: mean for name, (mean, _) in printed.items()},
        spreads={name: spread for name, (_, spread) in printed.items()},
        knob={key: value for key, value in row.items() if key not in known},
    )


def paper_table(name: str) -> PaperTable:
    if name not in _tables():
        raise ConfigError(
            f"The paper has no table '{name}'.{did_you_mean(name, _tables())} "
            f"Known: {', '.join(_tables())}."
        )
    return _tables()[name]


def published_for(source: DataSource) -> PaperTable | None:
    """The table with the paper's full results on these data; `None` if it has none."""
    card = source.card if source.is_as_published else None
    return paper_table(card.published) if card is not None and card.published else None


def published_points(
    table: PaperTable | None, metric: str, methods: Collection[str] | None = None
) -> pd.DataFrame | None:
    """Method, cost and a metric of the rows that have it, for a figure; `None` if no row has."""
    import pandas as pd

    rows = [
        {"method": row.method, "cost": row.cost, metric: row.metrics[metric]}
        for row in (table.rows if table else ())
        if metric in row.metrics and (methods is None or row.method in methods)
    ]
    return pd.DataFrame(rows) if rows else None
