"""The predictor of a cohort without choosing sizes: capacity follows the data.

A first network is fitted. Where it does worse on validation than on its own training subjects it
has learned them by heart: then, and wherever subjects are few, it is held against one with dropout
and against a linear model over summaries of the past, the best is fitted once per fold, and each
training subject's losses come from a predictor that never saw it. The same is done where much loss
is left with everything known: labels are noisy then, and a network that judges itself takes noise
it has learned for knowledge, even if validation happens to be easier than training. With few
subjects validation is a matter of luck, so the simplest is taken unless another is far ahead; with
more, the mean of network and linear model where it is better.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

from nocta.core.cohort import Cohort
from nocta.core.errors import DataError
from nocta.core.random_plans import random_requests
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.neural import ClassWeight, NeuralPredictor, cross_entropy
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig

Preset = Literal["default", "paper"]
#: Validation loss above this multiple of the training loss counts as learning by heart.
OVERFIT = 1.02
#: With few subjects, what has more freedom must have at most this multiple of the loss: a network
#: against a linear model, one without dropout against one with.
CLEARLY_BETTER = 0.9
#: More loss than this share of what it is with nothing known counts as noise, where everything is.
NOISY = 0.25
#: So many subjects drown the noise.
_MANY = 20_000
_STEPS = 4400
_SMALL = 2000
_QUICK_EPOCHS = 60
_MOST_JUDGED = 50_000
#: Rows whose inputs are held at once; whole batches of `NeuralPredictor`, so nothing else changes.
_AT_ONCE = 4 * 4096


def fit_predictor(
    train: Cohort,
    val: Cohort,
    preset: Preset = "default",
    seed: int = 0,
    progress: bool = False,
    *,
    quick: bool = False,
    class_weight: ClassWeight = None,
) -> CrossFittedPredictor:
    """Fit what the preset recommends for this cohort.

    Args:
        train: Subjects to learn from.
        val: Subjects that decide when to stop, and which size to take.
        preset: `"paper"` is the published network; `"default"` adapts to the cohort.
        seed: Same seed, same networks.
        progress: Show bars.
        quick: A rehearsal: one network, trained for a few epochs.
        class_weight: `"balanced"` counters rare classes; the network then no longer judges
            itself, and estimators learn from realised losses.
    """
    for part, cohort in (("training", train), ("validation", val)):
        if not cohort.labelled.any():
            raise DataError(f"No {part} subject has a label; there is nothing to learn from.")
    expected = class_weight is None
    nobody = np.zeros(len(train), dtype=np.int64)
    if preset == "paper":
        published = MLPPredictor(class_weight=class_weight, seed=seed)
        if quick:
            published.training = replace(published.training, epochs=_QUICK_EPOCHS)
        published.fit(train, val, progress=progress)
        return CrossFittedPredictor([published], nobody, expected=False)
    first = _candidate(train, 64 if len(train) >= _SMALL else 32, 0.0, seed)
    first.class_weight = class_weight
    if quick:
        first.training = replace(first.training, epochs=_QUICK_EPOCHS)
    first.fit(train, val, progress=progress)
    by_heart = random_mask_loss(first, val) > OVERFIT * random_mask_loss(first, train)
    small = len(train) < _SMALL
    by_heart = by_heart or (len(train) < _MANY and share_left(first, val) > NOISY)
    if quick or not (by_heart or small):
        return CrossFittedPredictor([first], nobody, expected)
    best = _most_careful(first, train, val, small, progress)
    if best is first and not by_heart:
        return CrossFittedPredictor([first], nobody, expected)
    members, fold = _cross_fit(best, train, val, seed, progress)
    return CrossFittedPredictor(members, fold, expected)


def _most_careful(
    first: RecurrentPredictor, train: Cohort, val: Cohort, small: bool, progress: bool
) -> NeuralPredictor:
    """The first network, one with dropout, a linear model, or a mean: as validation says.

    With few subjects validation says little, so what has more freedom must be clearly better.
    """
    careful = _candidate(train, first.hidden, 0.4 if small else 0.3, first.seed)
    careful.class_weight = first.class_weight
    careful.fit(train, val, progress=progress)
    lead = CLEARLY_BETTER if small else 1.0
    network = first
    if random_mask_loss(first, val) >= lead * random_mask_loss(careful, val):
        network = careful
    if len(train) >= _MANY:
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
    """Cross-entropy with everything known, as a share of what it is with nothing known."""
    cohort = cohort.sample(_MOST_JUDGED)
    data = EncodedCohort(predictor.encoder_, cohort)
    index = np.arange(len(cohort))
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)

    def loss(asked: NDArray[np.bool_]) -> float:
        return float(cross_entropy(predictor.log_proba(data.inputs(index, asked)), data.labels))

    return loss(nothing | cohort.catalog.open_slots) / max(loss(nothing), 1e-9)


def _candidate(train: Cohort, hidden: int, dropout: float, seed: int) -> RecurrentPredictor:
    batch_size = 128 if len(train) >= _SMALL else 64
    epochs = int(np.clip(_STEPS * batch_size / len(train), 40, 200))
    training = TrainingConfig(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=4e-3,
        weight_decay=1e-2 if dropout else 0.0,
        check_every=max(1, epochs // 50),
        patience=12,
    )
    return RecurrentPredictor(hidden=hidden, dropout=dropout, training=training, seed=seed)


def _cross_fit(
    model: NeuralPredictor, train: Cohort, val: Cohort, seed: int, progress: bool
) -> tuple[tuple[NeuralPredictor, ...], NDArray[np.int64]]:
    groups = np.arange(len(train)) if train.groups is None else train.groups
    n_folds = min(5 if len(train) < _SMALL else 3, np.unique(groups).size)
    # A class too rare to be in every fold cannot be balanced over them.
    top = train.labels.max(axis=1)
    kinds, counts = np.unique(top, return_counts=True)
    top = np.where(np.isin(top, kinds[counts < n_folds]), kinds[counts.argmax()], top)
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    fold = np.zeros(len(train), dtype=np.int64)
    members: list[NeuralPredictor] = []
    for f, (rest, held_out) in enumerate(splitter.split(top, top, groups)):
        fold[held_out] = f
        options = model.get_params(deep=False) | {"seed": seed + 101 * (f + 1)}
        member = type(model)(**options)
        members.append(member.fit(train.subset(rest), val, progress=progress))
    return tuple(members), fold
