"""The predictor of a cohort without choosing sizes: capacity follows the data.

A first network is fitted. It counts as overfitted if it does worse on validation than on its own
training subjects, or if much loss is left with everything known: then the labels are noisy, and a
network that judges itself mistakes noise for knowledge. If it is overfitted, or if subjects are
few, it competes with a network with dropout and with a linear model over summaries of the past.
The winner is fitted once per fold, so that the losses of training subjects are out of fold. With
few subjects, validation is unreliable, so the simplest wins unless another is far ahead; with
more, the mean of network and linear model wins if it is better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import DataError
from nocta.core.options import Preset
from nocta.core.random_plans import random_requests
from nocta.predictors.cross_fitted import (
    SMALL,
    CrossFittedPredictor,
    check_fit,
    check_output,
    cross_fit,
)
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.neural import ClassWeight, NeuralPredictor, cross_entropy
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.registry import new_predictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig

_STEPS = 4400
_QUICK_EPOCHS = 60
_MOST_JUDGED = 50_000
#: Rows encoded at once; a multiple of the batches of `NeuralPredictor`, so results are the same.
_AT_ONCE = 4 * 4096


@dataclass(frozen=True)
class ChoiceRules:
    """How the `default` preset chooses between predictors."""

    #: A network overfits if its validation loss exceeds its training loss this many times.
    overfit: float = 1.02
    #: With few subjects, a predictor with more freedom needs at most this multiple of the loss: a
    #: network against a linear model, one without dropout against one with.
    clearly_better: float = 0.9
    #: Labels are noisy if the loss with everything known exceeds this share of the loss with
    #: nothing known.
    noisy: float = 0.25
    many: int = 20_000  # with this many training subjects or more, noise in the labels averages out
    small: int = SMALL  # with fewer training subjects than this, subjects are few

    def candidate(self, train: Cohort, dropout: float, seed: int) -> RecurrentPredictor:
        """A network whose size and training follow the number of subjects."""
        few = len(train) < self.small
        batch_size = 64 if few else 128
        epochs = int(np.clip(_STEPS * batch_size / len(train), 40, 200))
        training = TrainingConfig(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=4e-3,
            weight_decay=1e-2 if dropout else 0.0,
            check_every=max(1, epochs // 50),
            patience=12,
        )
        return RecurrentPredictor(
            hidden=32 if few else 64, dropout=dropout, training=training, seed=seed
        )


def fit_predictor(
    train: Cohort,
    val: Cohort,
    preset: Preset = "default",
    seed: int = 0,
    progress: bool = False,
    *,
    kind: str = "learned",
    quick: bool = False,
    class_weight: ClassWeight = None,
    rules: ChoiceRules = ChoiceRules(),  # noqa: B008 - frozen
) -> CrossFittedPredictor:
    """Fit what the preset recommends for this cohort, or a plug-in.

    `"paper"` is the published network; `"default"` adapts to the cohort. `kind` is `"learned"`, or
    the name of a plug-in, which is fitted once per fold. A quick run fits one predictor, a network
    for a few epochs. With a `class_weight` the network no longer judges itself, and estimators
    learn from realized losses; plug-ins ignore it.
    """
    for part, cohort in (("training", train), ("validation", val)):
        if not cohort.labeled.any():
            raise DataError(f"No {part} subject has a label; there is nothing to learn from.")
    if kind != "learned":
        return _fit_plug_in(kind, train, val, seed, progress, quick)
    expected = class_weight is None
    if preset == "paper":
        published = MLPPredictor(class_weight=class_weight, seed=seed)
        if quick:
            published.training = replace(published.training, epochs=_QUICK_EPOCHS)
        published.fit(train, val, progress=progress)
        return CrossFittedPredictor.single(published, train, expected=False)
    first = rules.candidate(train, 0.0, seed)
    first.class_weight = class_weight
    if quick:
        first.training = replace(first.training, epochs=_QUICK_EPOCHS)
    first.fit(train, val, progress=progress)
    alone = CrossFittedPredictor.single(first, train, expected)
    if quick:
        return alone
    small = len(train) < rules.small
    overfitted = random_mask_loss(first, val) > rules.overfit * random_mask_loss(first, train) or (
        len(train) < rules.many and share_left(first, val) > rules.noisy
    )
    best: NeuralPredictor = first
    if overfitted or small:
        best = _most_careful(first, train, val, small, progress, rules)
    if best is first and not overfitted:
        return alone
    return cross_fit(best, train, val, 5 if small else 3, seed, progress, expected=expected)


def _fit_plug_in(
    name: str, train: Cohort, val: Cohort, seed: int, progress: bool, quick: bool
) -> CrossFittedPredictor:
    model: Any = new_predictor(name)
    if not quick:
        return cross_fit(model, train, val, None, seed, progress)
    check_fit(model)
    model.fit(train, val, seed=seed, progress=progress)
    check_output(model, train)
    return CrossFittedPredictor.single(model, train)


def _most_careful(
    first: RecurrentPredictor,
    train: Cohort,
    val: Cohort,
    small: bool,
    progress: bool,
    rules: ChoiceRules = ChoiceRules(),  # noqa: B008 - frozen
) -> NeuralPredictor:
    """The first network, one with dropout, a linear model, or a mean: as validation says."""
    careful = rules.candidate(train, 0.4 if small else 0.3, first.seed)
    careful.hidden, careful.class_weight = first.hidden, first.class_weight
    careful.fit(train, val, progress=progress)
    lead = rules.clearly_better if small else 1.0
    network = first
    if random_mask_loss(first, val) >= lead * random_mask_loss(careful, val):
        network = careful
    if len(train) >= rules.many:
        return network
    linear = SummaryPredictor(class_weight=first.class_weight, seed=first.seed).fit(train, val)
    if small:
        ahead = random_mask_loss(network, val) < lead * random_mask_loss(linear, val)
        return network if ahead else linear
    both = MixedPredictor.of(network, linear, val)
    return both if random_mask_loss(both, val) < random_mask_loss(network, val) else network


def random_mask_loss(predictor: NeuralPredictor, cohort: Cohort, seed: int = 7) -> float:
    """Cross-entropy under random masks, four draws per subject (of an even sample of many)."""
    cohort = cohort.sample(_MOST_JUDGED)
    data = EncodedCohort(predictor.encoder_, cohort)
    index = np.tile(np.arange(len(cohort)), 4)
    rng = np.random.default_rng(seed)
    asked = random_requests(len(index), cohort.catalog.open_slots, rng)
    pieces = np.array_split(np.arange(len(index)), range(_AT_ONCE, len(index), _AT_ONCE))
    log_proba = torch.cat([predictor.log_proba(data.inputs(index[p], asked[p])) for p in pieces])
    return float(cross_entropy(log_proba, data.labels[torch.from_numpy(index)]))


def share_left(predictor: NeuralPredictor, cohort: Cohort) -> float:
    """Cross-entropy with everything known, as a share of that with nothing known."""
    cohort = cohort.sample(_MOST_JUDGED)
    data = EncodedCohort(predictor.encoder_, cohort)
    index = np.arange(len(cohort))
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)

    def loss(asked: NDArray[np.bool_]) -> float:
        return float(cross_entropy(predictor.log_proba(data.inputs(index, asked)), data.labels))

    return loss(nothing | cohort.catalog.open_slots) / max(loss(nothing), 1e-9)
