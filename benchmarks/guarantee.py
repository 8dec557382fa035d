"""Is the promise of `nocta choose --risk` kept? 500 repetitions on a task with a known true risk.

Operating points are schedules of a finite version of the synthetic task that acquire both features
at the first k visits; the Bayes filter predicts. In each repetition new subjects choose the
cheapest point that promises a limit, and the promise is broken if the true risk of that point is
above it. Limits lie just below the true risk of a point, where a promise is easiest to break. A
plug-in choice, the cheapest point whose observed risk is within the limit, is there to compare.

    python benchmarks/guarantee.py

Writes `results/guarantee/guarantee.csv` and `guarantee.md`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.rollout import rollout
from nocta.evaluation.detection import Positive
from nocta.evaluation.risk import RISKS, Control, UnitRisk
from nocta.exact import build_graph, constant_policy, synthetic_task
from nocta.methods.fixed import FixedPlanPolicy
from nocta.model.choice.guarantee import Promise
from nocta.predictors.bayes import BayesPredictor

CONTROLS: tuple[Control, ...] = ("fixed-sequence", "bonferroni")
CONFIDENCE = 0.9


class Case(NamedTuple):
    """Losses of every point and subject `(k, n)`, cheapest point first, and their true means."""

    risk: str
    losses: NDArray[np.float64]
    true: NDArray[np.float64]


def draw(n_subjects: int, seed: int, horizon: int) -> Cohort:
    """New subjects of the task."""
    task = synthetic_task(horizon=horizon)
    values, labels = task.sample(n_subjects, np.random.default_rng(seed))
    features = tuple(Feature(name, (name,), 1.0) for name in task.feature_names)
    return Cohort(
        values=values.astype(np.float32),
        labels=labels,
        visits=np.ones(labels.shape, dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=Catalog(features=features, n_times=horizon),
        classes=tuple(str(c) for c in range(task.n_classes)),
        name="synthetic",
    )


def schedules(horizon: int) -> list[NDArray[np.bool_]]:
    """Both features at the first k visits, `(L, M)`, cheapest first."""
    visits = np.arange(horizon)[:, None]
    return [np.broadcast_to(visits < k, (horizon, 2)) for k in range(1, horizon + 1)]


def cases(n_subjects: int, seed: int, horizon: int = 5) -> list[Case]:
    """The losses of new subjects: their share of wrong visits, and whether the last one is wrong.

    Both true risks are exact, from the belief graph. What happens before the last visit is what
    happens in the same task without it.
    """
    plans = schedules(horizon)
    whole, before = exact_errors(plans, horizon), exact_errors(plans, horizon - 1)
    shares, last = _losses(draw(n_subjects, seed, horizon), plans)
    return [
        Case("error", shares, whole),
        Case("error at the last visit", last, horizon * whole - (horizon - 1) * before),
    ]


def exact_errors(plans: list[NDArray[np.bool_]], horizon: int) -> NDArray[np.float64]:
    """The true share of wrong visits of each schedule, up to a horizon, `(k,)`."""
    graph = build_graph(synthetic_task(horizon=horizon))
    actions = [[3 if visit.all() else 0 for visit in plan[:horizon]] for plan in plans]
    return np.array([1 - constant_policy(graph, a).evaluate().accuracy for a in actions])


def _losses(cohort: Cohort, plans: list[NDArray[np.bool_]]) -> list[NDArray[np.float64]]:
    predictor = BayesPredictor(synthetic_task(horizon=cohort.n_times))
    rollouts = [rollout(FixedPlanPolicy(plan, predictor), cohort) for plan in plans]
    shares = [RISKS["error"](found, Positive()).values for found in rollouts]
    last = [found.probabilities[:, -1].argmax(axis=1) != found.labels[:, -1] for found in rollouts]
    return [np.array(shares), np.array(last, dtype=float)]


def repeat(case: Case, control: Control, n: int, n_repetitions: int) -> list[dict[str, object]]:
    """One row per limit: how often a promise was made and broken."""
    rows: list[dict[str, object]] = []
    for k in range(len(case.true) - 1):
        limit = float(case.true[k]) * (1 - 1e-6)  # point k breaks it by a hair
        promise = Promise(risk="error", limit=limit, confidence=CONFIDENCE, control=control)
        chosen, plugged = [], []
        for i in range(n_repetitions):
            risks = [UnitRisk(row) for row in case.losses[:, i * n : (i + 1) * n]]
            kept = promise.promised([risk.p_value(limit) for risk in risks])
            seen = np.array([risk.mean for risk in risks]) <= limit
            chosen.append(int(kept.argmax()) if kept.any() else -1)
            plugged.append(int(seen.argmax()) if seen.any() else -1)
        rows.append(
            {
                "risk": case.risk,
                "test": "binomial" if risks[0].is_binary else "Hoeffding-Bentkus",
                "control": control,
                "subjects": n,
                "limit": round(limit, 4),
                "confidence": CONFIDENCE,
                "repetitions": n_repetitions,
                "promised": float(np.mean(np.array(chosen) >= 0)),
                "broken": _broken(chosen, case.true, limit),
                "broken_plug_in": _broken(plugged, case.true, limit),
            }
        )
    return rows


def _broken(chosen: list[int], true: NDArray[np.float64], limit: float) -> float:
    """Share of repetitions whose point has a true risk above the limit."""
    points = np.array(chosen)
    return float(np.mean((points >= 0) & (true[np.maximum(points, 0)] > limit)))


def simulate(n_repetitions: int, sizes: tuple[int, ...], seed: int, horizon: int) -> pd.DataFrame:
    """All cases, controls, sizes and limits."""
    found = cases(n_repetitions * max(sizes), seed, horizon)
    return pd.DataFrame(
        [
            row
            for case in found
            for control in CONTROLS
            for n in sizes
            for row in repeat(case, control, n, n_repetitions)
        ]
    )


def most_broken(n_repetitions: int) -> float:
    """The largest share of broken promises that chance explains (99.9 % of the time)."""
    from scipy.stats import binom

    return float(binom.ppf(0.999, n_repetitions, 1 - CONFIDENCE)) / n_repetitions


def page(table: pd.DataFrame, seed: int) -> str:
    """What was found, as Markdown."""
    n = int(table["repetitions"].iloc[0])
    worst = table.groupby(["risk", "test", "control", "subjects"], sort=False).agg(
        limits=("limit", "size"),
        promised=("promised", "mean"),
        broken=("broken", "max"),
        plug_in=("broken_plug_in", "max"),
    )
    lines = [
        "# Promises kept",
        f"{n} repetitions per row and limit, seed {seed}; confidence {CONFIDENCE:.0%}, so at most "
        f"{1 - CONFIDENCE:.0%} of the promises may be broken (by chance up to "
        f"{most_broken(n):.1%} in one row and limit). "
        "`broken` and `plug-in` are the worst of the limits. Made by "
        "`python benchmarks/guarantee.py`.",
        "| risk | test | control | subjects | limits | a promise was made | broken | plug-in |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        + "\n".join(
            f"| {' | '.join(map(str, key))} | {row.limits:.0f} | {row.promised:.0%} | "
            f"{row.broken:.1%} | {row.plug_in:.1%} |"
            for key, row in worst.iterrows()
        ),
        "Limits lie just below the true risk of a point, where a promise is easiest to break. The "
        "plug-in choice takes the cheapest point whose observed risk is within the limit.",
    ]
    return "\n\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--subjects", default="100,400")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/guarantee"))
    given = parser.parse_args()
    sizes = tuple(int(size) for size in given.subjects.split(","))
    table = simulate(given.repetitions, sizes, given.seed, horizon=5)
    given.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(given.out / "guarantee.csv", index=False, lineterminator="\n")
    (given.out / "guarantee.md").write_text(page(table, given.seed), "utf-8")
    print(page(table, given.seed))


if __name__ == "__main__":
    main()
