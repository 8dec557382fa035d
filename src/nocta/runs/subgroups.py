"""Subgroups by context (age bands, sex, site): cost, quality and calibration of each.

Intervals are over subjects drawn with replacement within the subgroup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.metrics import evaluate_pairs
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import bootstrap_bands, bootstrap_mean
from nocta.runs.record import Interval, Subgroup

N_RESAMPLES = 200
#: A context column with more distinct values is cut into bands of about equal size.
MAX_LEVELS = 6
N_BANDS = 3
#: With fewer subjects, a subgroup is listed without numbers.
MIN_SUBJECTS = 10
#: Cuts of context columns, by name.
Bands = Mapping[str, list[float]]
_UNKNOWN: Interval = (math.nan, math.nan, math.nan)


def describe_subgroups(
    rollout: Rollout, cohort: Cohort, *, metric: str, seed: int, bands: Bands | None = None
) -> list[Subgroup]:
    """Every subgroup of the subjects that were rolled out, by each context column on its own.

    `bands` are the cuts of `context_bands`, those of these subjects by default.
    """
    bands = context_bands(cohort) if bands is None else bands
    return [
        _describe(name, rollout.subset(members), metric, seed)
        for name, members in context_groups(cohort, bands)
    ]


def context_bands(cohort: Cohort) -> Bands:
    """Where each context column of many values is cut, at numbers of two digits.

    Bands hold about equally many subjects. Columns of few values are not cut.
    """
    out = {}
    for column, values in zip(cohort.catalog.context, cohort.context.T, strict=True):
        if len(np.unique(values[~np.isnan(values)])) > MAX_LEVELS:
            inner = np.nanquantile(values, np.linspace(0, 1, N_BANDS + 1)[1:-1])
            out[column] = sorted({float(f"{cut:.2g}") for cut in inner})
    return out


def context_groups(cohort: Cohort, bands: Bands) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Names and members of the subgroups; one that holds everybody or nobody is left out."""
    categories = (cohort.schema or {}).get("categories", {})
    for column, values in zip(cohort.catalog.context, cohort.context.T, strict=True):
        cut = bands.get(column)
        found = _levels(column, values, categories.get(column)) if cut is None else ()
        for name, here in (*found, *_bands(column, values, cut or [])):
            if 0 < here.sum() < len(cohort):
                yield name, np.flatnonzero(here)


def _levels(
    column: str, values: NDArray[np.float32], names: list[str] | None
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    levels = np.unique(values[~np.isnan(values)])
    if names is None and "=" in column and set(levels.tolist()) <= {0.0, 1.0}:
        yield column, values == 1  # one category of a column without order
        return
    for level in levels.tolist():
        known = names is not None and 0 <= level < len(names)
        shown = names[int(level)] if names is not None and known else f"{level:g}"
        yield f"{column} = {shown}", values == np.float32(level)


def _bands(
    column: str, values: NDArray[np.float32], cuts: list[float]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for low, high in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True) if cuts else ():
        text = f"below {high:g}" if np.isinf(low) else f"{low:g} to {high:g}"
        text = f"{low:g} or more" if np.isinf(high) else text
        yield f"{column} {text}", (values >= low) & (values < high)
    yield f"{column} not known", np.isnan(values)


def _describe(name: str, some: Rollout, metric: str, seed: int) -> Subgroup:
    labeled = some.labels >= 0
    cost = quality = calibration = _UNKNOWN
    if len(some) >= MIN_SUBJECTS and np.unique(some.units).size > 1:
        found = bootstrap_bands([some], metric, N_RESAMPLES, seed)
        cost = (some.cost, float(found.cost_low[0]), float(found.cost_high[0]))
        if labeled.any():
            value = evaluate_pairs(some.labels, some.probabilities, [metric])[metric]
            quality = (value, float(found.quality_low[0]), float(found.quality_high[0]))
            calibration = bootstrap_mean(some, calibration_gaps(some), N_RESAMPLES, seed)
    return Subgroup(
        name=name,
        n_subjects=len(some),
        n_labels=int(labeled.sum()),
        cost=cost,
        quality=quality,
        calibration=calibration,
    )


def calibration_gaps(rollout: Rollout) -> NDArray[np.float64]:
    """What came true less what was stated, `(n, L)`: of the positive class or the predicted one."""
    labels, stated = rollout.labels, rollout.probabilities.astype(float)
    if stated.shape[2] == 2:
        return np.asarray((labels == 1) - stated[..., 1])
    return np.asarray((labels == stated.argmax(axis=2)) - stated.max(axis=2))
