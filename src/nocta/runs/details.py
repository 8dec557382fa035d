"""What the report shows about one rollout: over time, per feature, calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.metrics import evaluate_pairs, reliability, summarize
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import bootstrap_bands
from nocta.runs.record import CalibrationCurve, PointDetails, Together

VISIT_FEE = "visit fee"
N_RESAMPLES = 200
#: Keep this many of the pairs that are most often acquired together.
MAX_PAIRS = 200


def describe_rollout(
    rollout: Rollout, catalog: Catalog, *, metric: str, seed: int, threshold: float
) -> PointDetails:
    """Describe a rollout for the report; the metric gets a bootstrap band over subjects."""
    labeled = rollout.labels >= 0
    curve, band = None, None
    if labeled.any():
        found = reliability(rollout.labels[labeled], rollout.probabilities[labeled])
        curve = CalibrationCurve(
            found.stated.tolist(), found.observed.tolist(), found.counts.tolist()
        )
    if labeled.any() and np.unique(rollout.units).size > 1:
        bands = bootstrap_bands([rollout], metric, N_RESAMPLES, seed)
        band = float(bands.quality_low[0]), float(bands.quality_high[0])
    return PointDetails(
        **summarize(rollout, per_time=False, threshold=threshold),
        per_time=_per_time(rollout, {metric, "accuracy", "cross_entropy"}),
        band=band,
        calibration=curve,
        acquired=rollout.history.acquired.mean(axis=0).tolist(),
        together=acquired_together(rollout.history.acquired),
        ledger=ledger(rollout, catalog),
    )


def _per_time(rollout: Rollout, metrics: set[str]) -> dict[str, list[float]]:
    labels, probabilities = rollout.labels, rollout.probabilities
    slots = [
        evaluate_pairs(labels[:, t : t + 1], probabilities[:, t : t + 1], metrics)
        for t in range(labels.shape[1])
    ]
    return {
        "cost": rollout.cost_per_visit.mean(axis=0).tolist(),
        **{name: [slot[name] for slot in slots] for name in sorted(metrics)},
    }


def acquired_together(acquired: NDArray[np.bool_], most: int = MAX_PAIRS) -> list[Together]:
    """What the same subjects acquire at an earlier and at a later slot, most often first."""
    n, n_times, n_features = acquired.shape
    flat = acquired.reshape(n, -1).astype(np.float32)
    shares = flat.T @ flat / max(n, 1)
    slot = np.repeat(np.arange(n_times), n_features)
    shares[slot[:, None] >= slot[None, :]] = 0.0
    order = np.argsort(-shares, axis=None, kind="stable")[:most]
    pairs = zip(*np.unravel_index(order, shares.shape), strict=True)
    return [
        (*divmod(int(a), n_features), *divmod(int(b), n_features), float(shares[a, b]))
        for a, b in pairs
        if shares[a, b] > 0
    ]


def ledger(rollout: Rollout, catalog: Catalog) -> dict[str, float]:
    """Mean charge per subject by feature, group fee and visit fee; the sum is `rollout.cost`."""
    acquired = rollout.history.acquired
    per_feature = np.einsum("nlm,lm->m", acquired.astype(float), catalog.costs) / len(rollout)
    out = dict(zip(catalog.names, per_feature.tolist(), strict=True))
    groups = zip(catalog.group_fees, catalog.group_members, catalog.group_fee_values, strict=True)
    for group, members, fee in groups:
        visits = acquired[..., members].any(axis=2).sum(axis=1).mean()
        out[f"{group} fee"] = float(fee * visits)
    if catalog.visit_fee:
        out[VISIT_FEE] = float(catalog.visit_fee * acquired.any(axis=2).sum(axis=1).mean())
    return out
