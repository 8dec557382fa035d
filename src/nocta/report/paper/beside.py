"""The paper's numbers beside ours, as plain tables.

The paper's rows and our operating points have different costs. We interpolate ours at the paper's
cost for each seed, then average over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nocta.exact.optimum import accuracy_at
from nocta.report.paper.evidence import Evidence
from nocta.report.paper.page import Sheet
from nocta.report.paper.recipes import Arm, Recipe
from nocta.report.published import PaperRow, published_for
from nocta.runs.summary import (
    cost_range,
    frontiers_by_seed,
    mean_and_error,
    mean_points,
    summarize_results,
)

if TYPE_CHECKING:
    import pandas as pd

#: The most expensive point may be used for a cost up to this share beyond it.
NEAR = 0.05
#: Position of the low and the high cost in the common range of costs.
LOW, HIGH = 0.25, 0.75
OURS = ("nocta-ensemble", "nocta-contrastive", "nocta-amortized")


def sheets(recipe: Recipe, evidence: Evidence) -> list[Sheet]:
    """The tables of a recipe on one data set, most important first."""
    rows, place = printed_rows(recipe, evidence)
    first = paper_sheet(evidence, rows, place) if rows else regime_sheet(evidence)
    found = [first, difference_sheet(evidence), points_sheet(evidence)]
    if not rows and recipe.rows:
        found.append(printed_sheet(recipe))
    return [sheet for sheet in found if sheet is not None and len(sheet.frame)]


def printed_rows(recipe: Recipe, evidence: Evidence) -> tuple[list[PaperRow], str]:
    """The paper's rows on these data, and their place if it is not the recipe's own table."""
    rows, table = evidence.printed(recipe), published_for(evidence.setup.source)
    if rows or recipe.knobs or table is None:
        return rows, ""
    return list(table.rows), table.place


def quality_at(
    results: pd.DataFrame, label: str, metric: str, cost: float
) -> tuple[float, float, int]:
    """Mean and standard error over seeds of a method's quality at a cost, and the number of seeds.

    Quality is interpolated between operating points, and constant up to `NEAR` beyond the most
    expensive one. Seeds that do not reach the cost in either direction are left out.
    """
    values = []
    for frontier in frontiers_by_seed(results, label, metric).values():
        if not len(frontier):
            continue
        low, high = float(frontier.costs[0]), float(frontier.costs[-1])
        if low <= cost <= high + NEAR * cost:
            values.append(float(frontier.at(min(cost, high))))
    if not values:
        return math.nan, math.nan, 0
    return *mean_and_error(values), len(values)


def paper_sheet(evidence: Evidence, rows: Sequence[PaperRow], place: str = "") -> Sheet:
    """Every row of the paper, and ours at the same cost."""
    arms = {(arm.method, *arm.knob.items()): arm for arm in evidence.present}
    lines = []
    for row in rows:
        arm = arms.get((row.method, *row.knob.items()))
        line: dict[str, Any] = {"method": row.method, **row.knob}
        line |= {"cost": row.cost, "cost_spread": row.cost_spread}
        seeds = 0
        for metric in evidence.shown:
            if metric in row.metrics:
                line[f"paper_{metric}"] = row.metrics[metric]
                line[f"paper_{metric}_spread"] = row.spreads[metric]
            mean, error = math.nan, math.nan
            if arm is not None:
                mean, error, seeds = quality_at(evidence.results, arm.label, metric, row.cost)
            line[f"our_{metric}"], line[f"our_{metric}_error"] = mean, error
        if evidence.optimum is not None:
            line["optimum"] = float(accuracy_at(evidence.optimum, row.cost))
        lines.append({**line, "seeds": seeds})
    return Sheet(
        "",
        f"The paper's rows{f' ({place})' if place else ''}, and ours at the same cost",
        lines,
        "± after the paper's numbers is as printed; after ours it is one standard error over "
        "seeds. Ours are interpolated between the two operating points around the cost, or taken "
        f"from the most expensive point if it is at most {NEAR:.0%} cheaper. A dash or fewer seeds "
        "means that no seed, or not every seed, reaches that cost.",
    )


def regime_sheet(evidence: Evidence) -> Sheet | None:
    """Quality at a low and at a high cost that every method reaches."""
    costs = cost_range(evidence.results, [arm.label for arm in evidence.present])
    if costs is None or not costs[0] < costs[1]:
        return None
    lines = []
    for arm in evidence.present:
        for name, share in (("low", LOW), ("high", HIGH)):
            cost = costs[0] + share * (costs[1] - costs[0])
            line: dict[str, Any] = {"method": arm.method, **arm.knob, "regime": name, "cost": cost}
            for metric in evidence.shown:
                mean, error, seeds = quality_at(evidence.results, arm.label, metric, cost)
                line |= {metric: mean, f"{metric}_error": error}
            lines.append({**line, "seeds": seeds})
    return Sheet(
        "",
        "At a low and at a high cost",
        lines,
        f"At 25 % and 75 % of the range from {costs[0]:.2f} to {costs[1]:.2f}, the costs that all "
        f"methods reach. ±: one standard error over seeds.",
    )


def difference_sheet(evidence: Evidence) -> Sheet | None:
    """Paired differences: to the usual value of the varied option, or of NOCTA to other methods."""
    arms = {arm.label: arm for arm in evidence.present}
    references = _references(evidence.present)
    table = summarize_results(evidence.results, list(arms))
    lines = []
    for row in table[table["quality"].isin(evidence.shown)].itertuples():
        if not row.versus or not _is_asked(arms[row.method], arms[row.versus], references):
            continue
        ours, other = arms[row.method].varied, arms[row.versus].varied
        line = {"quality": row.quality, "method": ours, "less": other, "difference": row.mean}
        line |= {"difference_error": row.standard_error, "seeds": row.n_seeds}
        lines.append({**line, "cost_low": row.cost_low, "cost_high": row.cost_high})
    if not lines:
        return None
    return Sheet(
        "differences",
        "Paired differences",
        lines,
        "Mean over the common costs, paired by seed; ±: one standard error.",
    )


def _references(arms: Sequence[Arm]) -> dict[str, str]:
    """By method, the arm to compare with: the usual value, or else the paper's first."""
    usual = {arm.method: arm.label for arm in reversed(arms) if arm.usual}
    return {arm.method: arm.label for arm in reversed(arms)} | usual


def _is_asked(arm: Arm, other: Arm, references: dict[str, str]) -> bool:
    if arm.knob:
        return arm.method == other.method and references[arm.method] == other.label
    return arm.method in OURS and other.method not in OURS


def points_sheet(evidence: Evidence) -> Sheet:
    arms = {arm.label: arm for arm in evidence.present}
    columns = ["cost", *evidence.shown]
    lines = []
    for found in mean_points(evidence.results, list(arms), columns, evidence.yardstick):
        arm = arms[found.method]
        line: dict[str, Any] = {"method": arm.method, **arm.knob, "point": found.point + 1}
        for column, (mean, error) in found.means.items():
            line |= {column: mean, f"{column}_error": error}
        lines.append({**line, "seeds": found.n_seeds})
    return Sheet(
        "points",
        "Our operating points",
        lines,
        "Chosen on validation, or at given cost weights. ±: one standard error over seeds.",
    )


def printed_sheet(recipe: Recipe) -> Sheet:
    """The paper's rows on its own data."""
    lines = []
    for row in recipe.rows:
        line: dict[str, Any] = {"dataset": row.dataset, "method": row.method, **row.knob}
        line |= {"cost": row.cost, "cost_spread": row.cost_spread}
        for metric, value in row.metrics.items():
            line |= {metric: value, f"{metric}_spread": row.spreads[metric]}
        lines.append(line)
    return Sheet("paper", "The paper's rows, on its own data", lines, "As printed.")
