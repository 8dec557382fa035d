"""Every target, what was measured for it, and whether it is met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from large import Kind, growth

Results = dict[str, dict[str, Any]]
Table = Sequence[dict[str, str]]
#: A network that is hardly trained may stop at once; then there is nothing to time.
IDLE = "void: nobody is followed for more than two decisions"
NOT_YET = "not measured yet"
#: Choices may differ if the scores of two plans differ by less than this.
TIE = 1e-5
ESTIMATORS = ("amortized", "contrastive")
#: Growth is judged over these sizes, and must be at most this steep.
FEWEST, MOST, STEEPEST = 10_000, 1_000_000, 1.1
#: Scoring `MOST` subjects must stay below this many GiB.
MOST_GIB = 4.0


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool | None


def rows(results: Results, large: Table = ()) -> list[Row]:
    """Every target, and what was measured for it."""
    found: list[Row] = []
    if "reference" in results:
        found += [_ratio(name, results["reference"][name]) for name in ("contrastive", "amortized")]
    if "default" in results:
        found += [_served(name, results["default"]) for name in ESTIMATORS]
        found.append(_beside_ras(results["default"]))
    if "decide" in results:
        found += _decided(results["decide"])
    found += [row for step in ("fit", "rollout") for row in _grown(step, large)]
    found += _memory(large)
    if "rate" in results:
        for name, one in results["rate"]["scoring"].items():
            share = f"{one['of_product']:.1%} ({one['time_in_products']:.0%} of time in products)"
            found.append(Row(f"{name}: of the matrix-product rate", share, "", None))
    return found


# -- against the reference ---------------------------------------------------------------------


def _ratio(name: str, part: dict[str, Any]) -> Row:
    points, target = part["points"], part["target"]
    what, wanted = f"paper {name} against the reference", f"{target:.0f}x"
    if any(point["decisions_per_subject"] <= 2 for point in points):
        return Row(what, IDLE, wanted, None)
    ratios = " and ".join(f"{point['ratio']:.1f}x" for point in points)
    met = min(point["ratio"] for point in points) >= target and all(map(same_choices, points))
    return Row(what, f"{ratios} ({choices(points)})", wanted, met)


def same_choices(point: dict[str, Any]) -> bool:
    """Whether all subjects were treated alike, but for ties."""
    return bool(point["subjects_alike"] == point["subjects"] or point["widest_tie"] <= TIE)


def choices(points: Sequence[dict[str, Any]]) -> str:
    """How many subjects were treated alike, and why not all."""
    alike, everybody = (sum(p[name] for p in points) for name in ("subjects_alike", "subjects"))
    said = f"{alike} of {everybody} subjects alike"
    if alike == everybody:
        return said
    widest = max(point["widest_tie"] for point in points)
    why = "ties" if all(map(same_choices, points)) else "more than ties"
    return f"{said}, the others part at {why}: {widest:.0e} at most"


# -- milliseconds ------------------------------------------------------------------------------


def _served(name: str, part: dict[str, Any]) -> Row:
    ms, target = followed(part[name]["points"]), part[name]["target_ms"]
    what, wanted = f"default {name}: a trajectory", f"{target:.0f} ms"
    if not ms:
        return Row(what, IDLE, wanted, None)
    return Row(what, span(ms), wanted, max(ms) <= target)


def _beside_ras(part: dict[str, Any]) -> Row:
    """How near: the other figure was not taken in this process, so there is no verdict."""
    there, here = part["released_ras_ms"], followed(part["amortized"]["points"])
    what = "default amortized beside released RAS, a trajectory"
    if not here:
        return Row(what, IDLE, "5x, how near", None)
    low, high = (ms / max(here) for ms in there)
    measured = f"{digits(max(here))} ms here, {there[0]:.0f} to {there[1]:.0f} ms there: "
    return Row(what, f"{measured}{low:.1f}x to {high:.1f}x", "5x, how near", None)


def followed(points: Sequence[dict[str, Any]]) -> list[float]:
    """Milliseconds, if subjects were followed: stopping at once is not a trajectory."""
    return [point["ms"] for point in points if point["decisions_per_subject"] > 2]


def span(ms: Sequence[float]) -> str:
    """From the least to the most."""
    return f"{digits(min(ms))} to {digits(max(ms))} ms"


def digits(ms: float) -> str:
    """Two digits, or the whole number.

    Example:
        >>> digits(257.3), digits(0.456)
        ('257', '0.46')
    """
    return f"{ms:,.0f}" if ms >= 10 else f"{ms:.2g}"


def _decided(part: dict[str, Any]) -> list[Row]:
    found = []
    for name in ESTIMATORS:
        target = part["target_ms"] if name == "amortized" else None
        for mask in ("new", "seen"):
            own = [c for c in part["calls"] if (c["estimator"], c["mask"]) == (name, mask)]
            ms = [call["median_ms"] for call in own]
            what = f"default {name}: one decision of one subject, {mask} mask"
            wanted = "" if target is None else f"{target:.0f} ms"
            met = None if target is None else max(ms) <= target
            found.append(Row(what, span(ms), wanted, met))
    return found


# -- large cohorts -----------------------------------------------------------------------------


def _grown(step: str, large: Table) -> list[Row]:
    wanted = f"n^{STEEPEST} from {FEWEST:,} to {MOST:,}"
    found = []
    for one in growth(large):
        if one.kind.step == step:
            power = one.exponents["cpu_seconds"]
            whole = one.fewest <= FEWEST and one.most >= MOST
            met = power <= STEEPEST if whole else None
            found.append(Row(one.where, f"time ~ n^{power:.2f}", wanted, met))
    return found or [Row(f"{step}, growth with subjects", NOT_YET, wanted, None)]


def _memory(large: Table) -> list[Row]:
    wanted = f"{MOST_GIB:.0f} GiB"
    found = []
    for row in large:
        if row["step"] == "score" and int(row["subjects"]) >= MOST:
            gib = float(row["peak_mb"]) / 1024
            what = f"{Kind.of(row)}, {int(row['subjects']):,} subjects: peak memory"
            found.append(Row(what, f"{gib:.2f} GiB", wanted, gib < MOST_GIB))
    return found or [Row(f"score, {MOST:,} subjects: peak memory", NOT_YET, wanted, None)]
