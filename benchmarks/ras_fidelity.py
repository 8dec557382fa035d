"""RAS on the task its authors made for it, beside the numbers they report.

Qin, van der Schaar and Lee (2023) describe subjects who begin to progress at a random time, nine
in ten slowly and one in ten fast. An expensive marker tells the risk, a cheap and noisy one hints
at it, two others oscillate and tell nothing. Everything is judged on test subjects, over several
draws, or over several splits of the one draw the authors released with their code:

    python benchmarks/ras_fidelity.py --seeds 5 --methods ras
    python benchmarks/ras_fidelity.py --seeds 5 --released synthetic_data.npz

Writes `results/ras-fidelity/drawn-ras.csv` and the like, one row per seed and operating point;
seeds that are there already are not run again. Labels are a coin toss, so even the true risk ranks
them imperfectly, and by how much depends on the test subjects: compare with the row "true risk".
"""

from __future__ import annotations

import argparse
import csv
import time as clock
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout, rollout
from nocta.methods.fixed import FixedPlanPolicy
from nocta.methods.ras.method import As, Ras

HORIZON, N_TIMES, N_SUBJECTS, FAST_SHARE = 2.0, 20, 2000, 0.1
COSTS = {"marker": 1.0, "hint": 0.1, "sine": 1.0, "cosine": 1.0}
SHORTEST, LONGEST = 0.2, 1.0
#: The authors integrate the deficiency over a horizon of 2, here it is a mean over slots.
WEIGHTS = tuple(HORIZON * w for w in (25.0, 50.0, 100.0, 200.0, 300.0, 400.0))
FIELDS = (
    "seed", "method", "prediction_weight", "cost", "ap", "roc_auc", "ap_held", "roc_auc_held",
    "drop_rate", "fit_seconds",
)  # fmt: skip


def draw_progressors(n: int = N_SUBJECTS, seed: int = 0) -> tuple[Cohort, NDArray[np.float64]]:
    """The authors' task as they describe it, and the true risk behind each label, `(n, L)`."""
    rng = np.random.default_rng(seed)
    times = np.linspace(0, HORIZON, N_TIMES)
    fast = np.arange(n) >= round((1 - FAST_SHARE) * n)
    speed = np.where(fast, 0.7, 0.3) + 0.1 * rng.normal(size=n)
    since = np.maximum(times - rng.exponential(size=(n, 1)), 0)
    grown = speed[:, None] * since
    phase = 3 * times + rng.normal(size=(n, 1))
    clean = [np.minimum(np.exp(grown) - grown - 1, 1), grown, np.sin(phase), np.cos(phase)]
    noise = np.array([0.01, 0.1, 0.1, 0.1]) * rng.normal(size=(n, N_TIMES, 4))
    values = np.stack(clean, axis=2) + noise
    risk = true_risk(values)
    return _cohort(values, rng.binomial(1, risk)), risk


def read_progressors(file: Path) -> tuple[Cohort, NDArray[np.float64]]:
    """The draw the authors released, and the true risk behind each label, `(n, L)`."""
    with np.load(file) as arrays:
        values, labels = arrays["x"], arrays["y"][..., 0]
    return _cohort(values, labels), true_risk(values)


def true_risk(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Probability of the label, from the marker."""
    return np.asarray(np.exp(-3 * (1 - values[..., 0]) ** 2), dtype=float)


def _cohort(values: NDArray[np.floating[Any]], labels: NDArray[Any]) -> Cohort:
    n = len(values)
    return Cohort(
        values=values.astype(np.float32),
        labels=labels.astype(np.int64),
        visits=np.ones((n, N_TIMES), dtype=bool),
        context=np.zeros((n, 0), dtype=np.float32),
        subjects=np.arange(n),
        catalog=Catalog(tuple(Feature(m, (m,), c) for m, c in COSTS.items()), N_TIMES),
        classes=("no", "yes"),
        name="progressors",
        slot_times=tuple(np.linspace(0, HORIZON, N_TIMES)),
        time_unit="years",
    )


def scores(labels: NDArray[np.int64], yes: NDArray[np.floating[Any]]) -> tuple[float, float]:
    """Average precision and ROC AUC as the authors compute them: the mean over both classes."""
    truth, found = labels.reshape(-1), yes.reshape(-1)
    both = ((truth, found), (1 - truth, 1 - found))
    precision = np.mean([average_precision_score(*pair) for pair in both])
    return float(precision), float(np.mean([roc_auc_score(*pair) for pair in both]))


def held_since_last_visit(outcome: Rollout) -> NDArray[np.float32]:
    """The authors' rule: at every slot, the prediction made at the last visit."""
    visited = outcome.history.requested.any(axis=2)
    slots = np.arange(outcome.labels.shape[1])
    last = np.maximum.accumulate(np.where(visited, slots, 0), axis=1)
    return np.take_along_axis(outcome.probabilities[..., 1], last, axis=1)


def measure(policy: Policy, test: Cohort) -> dict[str, float]:
    """One operating point on the test subjects."""
    outcome = rollout(policy, test)
    ap, roc = scores(test.labels, outcome.probabilities[..., 1])
    ap_held, roc_held = scores(test.labels, held_since_last_visit(outcome))
    return {
        "cost": outcome.cost, "ap": ap, "roc_auc": roc, "ap_held": ap_held,
        "roc_auc_held": roc_held,
    }  # fmt: skip


def run(seed: int, methods: list[str], encoder: str, released: Path | None) -> list[dict[str, Any]]:
    """Truth, full observation and the methods on one draw or one split of the released draw."""
    cohort, risk = draw_progressors(seed=seed) if released is None else read_progressors(released)
    train, val, test = cohort.split((0.64, 0.16, 0.2), seed=seed)
    ap, roc = scores(test.labels, risk[test.subjects])
    rows: list[dict[str, Any]] = [{"method": "true risk", "ap": ap, "roc_auc": roc}]
    options: dict[str, Any] = {"grid": WEIGHTS, "encoder": encoder}
    sensing = {
        "ras": Ras(intervals=(SHORTEST, LONGEST), **options),
        "as": As(interval=LONGEST, **options),
    }
    for name in methods:
        method = sensing[name]
        started = clock.perf_counter()
        method.fit(train, val, seed=seed)
        common = {
            "drop_rate": method.drop_rate_, "fit_seconds": round(clock.perf_counter() - started, 1)
        }  # fmt: skip
        if name == methods[0]:
            full = np.zeros((N_TIMES, len(COSTS)), dtype=bool)
            full[::2] = True  # the shortest interval on this grid
            found = measure(FixedPlanPolicy(full, method.predictor_), test)
            rows.append({"method": "full observation", **found})
        for setting in method.settings(val, len(WEIGHTS)):
            found = measure(method.policy(setting), test)
            rows.append({"method": method.name, **setting, **found, **common})
    return [{"seed": seed, **row} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=("ras", "as"), default=["ras", "as"])
    parser.add_argument("--encoder", choices=("gru", "cde"), default="gru")
    parser.add_argument("--released", type=Path, help="the authors' synthetic_data.npz")
    parser.add_argument("--out", type=Path, default=Path("results/ras-fidelity"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    name = "drawn" if options.released is None else "released"
    name += "".join(f"-{method}" for method in options.methods)
    suffix = "" if options.encoder == "gru" else f"-{options.encoder}"
    file = options.out / f"{name}{suffix}.csv"
    done: list[dict[str, Any]] = []
    if file.exists():
        with file.open(newline="") as lines:
            done = list(csv.DictReader(lines))
    finished = {int(row["seed"]) for row in done}
    for seed in range(options.seeds):
        if seed in finished:
            continue
        done += run(seed, options.methods, options.encoder, options.released)
        with file.open("w", newline="") as lines:
            writer = csv.DictWriter(lines, FIELDS)
            writer.writeheader()
            writer.writerows(done)
        for row in done:
            if int(row["seed"]) == seed:
                shown = [f"{k}={v:.4g}" for k, v in row.items() if isinstance(v, float)]
                print(seed, row["method"], *shown, flush=True)


if __name__ == "__main__":
    main()
