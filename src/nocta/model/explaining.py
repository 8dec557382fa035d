"""`nocta.explain`: a model's recommendation for one subject, with its reasons."""

from __future__ import annotations

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.core.predictor import Predictor
from nocta.model.nocta import NOCTA
from nocta.planning.explanation import Explanation
from nocta.planning.explanation import explain as explain_policy
from nocta.predictors.encoding import InputEncoder

#: Of a normal distribution: the tenth, fiftieth and ninetieth percentile.
_LIKELY = (-1.2816, 0.0, 1.2816)


def explain(
    model: NOCTA,
    history: History,
    cost_weight: float | None = None,
    *,
    time: int | None = None,
    remaining: float | None = None,
    catalog: Catalog | None = None,
) -> Explanation:
    """The next acquisition of one subject and the reasons for it.

    Unlike `model.decide`, which is Algorithm 1 to the letter, a runner-up that is tied with the
    best plan is recommended if it is expected to cost less.

    Args:
        model: A fitted model.
        history: What is known of the subject.
        cost_weight: What one unit of cost is worth in loss (`alpha`); that of the model's default
            operating point by default.
        time: The slot the subject is at; by default the last one with a request.
        remaining: What may still be spent, without limit by default.
        catalog: Other prices, or features that are closed at some visits; the model's by default.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> train, val, test = tiny_cohort(n_subjects=60, seed=0).split(seed=0)
        >>> model = NOCTA(seed=0, options={"n_rounds": 0}).fit(train, val)
        >>> new = History.empty(test.catalog, test.context[:1])
        >>> why = explain(model, new, cost_weight=0.001)
        >>> sorted(effect.feature for effect in why.adds) == sorted(why.recommendation.features)
        True
    """
    model.check_history(history, remaining)
    return explain_policy(
        model.policy(cost_weight),
        history,
        catalog or model.catalog_,
        model.values(cost_weight),
        time=time,
        remaining=remaining,
        likely=likely_values(model),
    )


def likely_values(model: NOCTA) -> dict[str, list[float]]:
    """A low, a middle and a high value of each column, or all levels of a column with few.

    They come from the scales of the predictor's network; a predictor without one has none.
    """
    encoder = _encoder(model.planner_.predictor)
    if encoder is None:
        return {}
    categories = model.schema_.get("categories", {})
    scaler, found = encoder.values_, {}
    for d, column in enumerate(model.catalog_.columns):
        levels = encoder.level_value_[encoder.level_column_ == d]
        mean, spread = float(scaler.mean[d]), float(scaler.scale[d])
        if column in categories:
            found[column] = [float(code) for code in range(len(categories[column]))]
        elif levels.size:
            found[column] = [float(level) for level in levels]
        elif not scaler.log[d] and abs(mean**2 + spread**2 - mean) < 1e-4:
            found[column] = [0.0, 1.0]  # only a column of zeros and ones has this spread
        else:
            points = mean + spread * np.array(_LIKELY)
            points = np.expm1(points) if scaler.log[d] else points
            positive = bool(scaler.log[d]) or mean > spread
            found[column] = (np.maximum(points, 0.0) if positive else points).tolist()
    return found


def likely_context(model: NOCTA) -> dict[str, float]:
    """A value in the middle of each context column that is a number."""
    encoder = _encoder(model.planner_.predictor)
    if encoder is None:
        return {}
    scaler, names = encoder.context_, model.catalog_.context
    middle = np.where(scaler.log, np.expm1(scaler.mean), scaler.mean)
    return {n: float(m) for n, m in zip(names, middle, strict=True)}


def _encoder(predictor: Predictor) -> InputEncoder | None:
    members = getattr(predictor, "members", (predictor,))
    network = members[0].network
    encoder = None if network is None else network.encoder_
    return encoder if isinstance(encoder, InputEncoder) else None
