"""Part `growth`: how time and memory of a decision grow with n, L, M, |O| and K.

Networks are of the presets' sizes and hardly trained; cohorts are drawn at random. From one base
case of about the presets' size each size is doubled a few times while the others stay. What is
timed is planning for a few subjects after a quarter of their course, each with a mask of their
own: the quickest of some runs, each on an estimator that has seen no mask yet. Exponents are
fitted to all sizes but the base, where what does not grow weighs most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from measure import exponent_with_error, peak_mb, timed
from nocta.core.cohort import Cohort
from nocta.core.estimator import NoctEstimator
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.amortized_mlp import AmortizedMLPEstimator
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.embedding import Embedding
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.search import beam_search, draw_candidates, sample_search
from nocta.planning.space import ActionTable
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from scenes import Sizes, random_cohort, random_masks

_GLANCE = TrainingConfig(epochs=1, batch_size=64, learning_rate=1e-2, check_every=1)
_QUERIES = 8
_RUNS = 3


@dataclass(frozen=True)
class Case:
    """One size of everything.

    Args:
        n: Training subjects.
        length: Slots (`L`).
        width: Features (`M`).
        n_candidates: Plans per decision (`|O|`).
        n_neighbors: Who votes (`K`).
    """

    n: int = 4000
    length: int = 8
    width: int = 4
    n_candidates: int = 1000
    n_neighbors: int = 5


#: What is doubled, by estimator; the letter is the paper's.
GROWS = {
    "contrastive": {
        "n": "n",
        "length": "L",
        "width": "M",
        "n_candidates": "|O|",
        "n_neighbors": "K",
    },
    "amortized": {"length": "L", "width": "M", "n_candidates": "|O|"},
    "default amortized": {"length": "L", "width": "M"},
}


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Seconds and MiB per case, and the fitted exponents."""
    del models
    base = Case() if sizes.name != "tiny" else Case(60, 4, 2, 20, 2)
    found: dict[str, Any] = {"base": asdict(base), "queries": _QUERIES, "curves": []}
    for estimator, fields in GROWS.items():
        first = one_case(estimator, base)  # every curve of the estimator begins there
        for field, letter in fields.items():
            size = getattr(base, field)
            points = [first | {"size": size}]
            for larger in (size * 2**i for i in range(1, sizes.doublings + 1)):
                case = replace(base, **{field: larger})
                points.append(one_case(estimator, case) | {"size": larger})
            found["curves"].append(_curve(estimator, letter, points))
    return found


def _curve(estimator: str, letter: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    upper = points[1:] if len(points) > 2 else points
    sizes = [p["size"] for p in upper]
    out = {"estimator": estimator, "what": letter, "points": points, "fitted_from": sizes[0]}
    for name, field in (("time", "cpu_seconds"), ("memory", "peak_mb")):
        values = [p[field] for p in upper]
        if all(value is not None and value > 0 for value in values):
            out[f"{name}_exponent"], out[f"{name}_error"] = exponent_with_error(sizes, values)
    return out


def one_case(estimator: str, case: Case) -> dict[str, Any]:
    """Processor seconds and peak memory of planning for a few subjects."""
    build = {"contrastive": _contrastive, "amortized": _amortized, "default amortized": _beam}
    # Built again for each: retrieval keeps what it has seen of a mask.
    memory = peak_mb(build[estimator](case))
    runs = [timed(build[estimator](case))[1].cpu_seconds for _ in range(_RUNS)]
    return {"cpu_seconds": min(runs) / _QUERIES, "peak_mb": memory}


@cache
def _few(length: int, width: int) -> Cohort:
    """Few subjects to train on for an instant, and to plan for."""
    return random_cohort(120, length, width, seed=1)


@cache
def _predictor(length: int, width: int) -> MLPPredictor:
    few = _few(length, width)
    return MLPPredictor(training=_GLANCE).fit(few, few)


@cache
def _embedding(length: int, width: int) -> Embedding:
    few = _few(length, width)
    targets = LossTargets(few, [_predictor(length, width)], kinds=("cross-entropy",))
    embedding = Embedding(n_candidates=20, n_validation_masks=1, training=_GLANCE)
    return embedding.fit(few, targets, few, targets, [0.01])


def _contrastive(case: Case) -> Callable[[], Any]:
    size = case.length, case.width
    everybody, embedding = random_cohort(case.n, *size), _embedding(*size)
    bank = NeighborBank(
        everybody,
        "embedding",
        encoder=embedding.encoder_,
        embedding=embedding,
        n_neighbors=case.n_neighbors,
    )
    targets = LossTargets(everybody, [_predictor(*size)], kinds=("cross-entropy",))
    return _sampled(ContrastiveEstimator(bank, targets), case)


@cache
def _gain_network(length: int, width: int) -> AmortizedMLPEstimator:
    few = _few(length, width)
    return AmortizedMLPEstimator(training=_GLANCE).fit(_predictor(length, width), few, few)


def _amortized(case: Case) -> Callable[[], Any]:
    return _sampled(_gain_network(case.length, case.width), case)


def _sampled(estimator: NoctEstimator, case: Case) -> Callable[[], Any]:
    observation = queries(_few(case.length, case.width))
    plans = draw_candidates(observation, case.n_candidates, seed=0)
    weights = np.full(len(observation), 0.01)
    charges = observation.catalog.cost_of(plans)
    return lambda: sample_search(estimator, observation, plans, charges, weights)


@cache
def _plan_network(length: int, width: int) -> AmortizedEstimator:
    few = _few(length, width)
    targets = LossTargets(few, [RecurrentPredictor(training=_GLANCE).fit(few, few)])
    return AmortizedEstimator(training=_GLANCE).fit(few, targets, few, targets)


def _beam(case: Case) -> Callable[[], Any]:
    few, network = _few(case.length, case.width), _plan_network(case.length, case.width)
    observation, actions = queries(few), ActionTable.build(few.catalog, few)
    weights = np.full(len(observation), 0.01)
    return lambda: beam_search(network, observation, actions, weights)


def queries(cohort: Cohort) -> Observation:
    """Subjects after a quarter of their course, each with a mask of their own."""
    now = max(0, cohort.n_times // 4 - 1)
    asked = random_masks(_QUERIES, cohort.catalog, now, seed=5)
    asked[:, now, 0] = True
    return Observation(
        history=History.of(cohort.subset(np.arange(_QUERIES)), asked),
        time=np.full(_QUERIES, now),
        remaining=np.full(_QUERIES, np.inf),
        catalog=cohort.catalog,
        rows=np.arange(_QUERIES),
    )
