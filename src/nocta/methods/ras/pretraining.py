"""The predictor of active sensing, pretrained on what an auxiliary policy would have acquired.

The auxiliary policy visits at random times and, at each visit, leaves out every feature with the
same *drop rate*. Half of what the predictor learns from is complete, half comes from that policy.
See `nocta.methods.ras.method`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.methods.ras.networks import EncoderKind
from nocta.predictors.cde import CdePredictor
from nocta.predictors.neural import NeuralPredictor, Requests
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig

#: Drop rates among which validation decides.
DROP_RATES = (0.0, 0.3, 0.5, 0.7)
_N_VISITS = 10
_EVENNESS = 3.0
_SMALL = 2000
_QUICK_EPOCHS = 10


def pretrain(
    train: Cohort,
    val: Cohort,
    slot_times: NDArray[np.float64],
    *,
    kind: EncoderKind,
    hidden: int,
    drop_rates: Sequence[float],
    quick: bool,
    seed: int,
    progress: bool = False,
) -> tuple[NeuralPredictor, float]:
    """The predictor, and the drop rate it was trained with.

    Every rate is tried in a short run; the one whose predictor has the lowest validation loss,
    under random masks of every density, is trained to the end.
    """
    model = CdePredictor if kind == "cde" else RecurrentPredictor
    small = len(train) < _SMALL
    full = TrainingConfig(
        epochs=_QUICK_EPOCHS if quick else (120 if small else 30),
        batch_size=64 if small else 128,
        learning_rate=6e-3,
        weight_decay=1e-2 if small else 0.0,
        check_every=2,
        patience=10,
    )
    open_slots = train.catalog.open_slots

    def fitted(rate: float, training: TrainingConfig) -> NeuralPredictor:
        predictor = model(hidden=hidden, dropout=0.4 * small, training=training, seed=seed)
        asked = auxiliary_requests(rate, slot_times, open_slots)
        return predictor.fit(train, val, requests=asked, progress=progress)

    best = drop_rates[0]
    if len(drop_rates) > 1:
        short = replace(full, epochs=max(2, full.epochs // 3))
        losses = [min(fitted(rate, short).log_.validation_losses) for rate in drop_rates]
        best = drop_rates[int(np.argmin(losses))]
    return fitted(best, full), best


def auxiliary_requests(
    drop_rate: float, slot_times: NDArray[np.float64], open_slots: NDArray[np.bool_]
) -> Requests:
    """What the auxiliary policy asks for, everything for a random half of the subjects.

    Visits begin at the first slot; the gaps between them are a Dirichlet draw over the whole
    follow-up, rounded to the next slot.
    """
    n_visits = min(_N_VISITS, len(slot_times))
    span = float(np.ptp(slot_times))

    def ask(index: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        n = len(index)
        gaps = rng.dirichlet(np.full(n_visits, _EVENNESS), size=n)
        times = np.concatenate([np.zeros((n, 1)), gaps.cumsum(axis=1)[:, :-1]], axis=1) * span
        slots = np.searchsorted(slot_times, slot_times[0] + times - 1e-6 * span)
        visited = np.zeros((n, len(slot_times)), dtype=bool)
        visited[np.arange(n)[:, None], np.minimum(slots, len(slot_times) - 1)] = True
        kept = rng.random((n, *open_slots.shape)) >= drop_rate
        complete = rng.random((n, 1, 1)) < 0.5
        return np.asarray((visited[:, :, None] & kept | complete) & open_slots)

    return ask
