"""A data set: find out who carries a loaded coin by paying for tosses or for a scale."""

from __future__ import annotations

import numpy as np

from nocta import Catalog, Cohort
from nocta.datasets import Card, Dataset, LoadLog, Measurement

TOSS = Measurement("toss", "heads or tails; a loaded coin shows heads 8 times in 10", 1.0)
SCALE = Measurement("scale", "weight with an error; a loaded coin is heavier", 3.0, unit="g")


def load(log: LoadLog, *, n_subjects: int = 240, seed: int = 0) -> Cohort:
    rng, shape = np.random.default_rng(seed), (n_subjects, 4)
    loaded = np.repeat(rng.random((n_subjects, 1)) < 0.5, 4, axis=1)
    toss, scale = rng.random(shape) < 0.5 + 0.3 * loaded, rng.normal(5 + loaded, 0.7)
    log.read(f"a random stream (seed {seed})")
    return Cohort(
        values=np.stack([toss, scale], axis=2).astype(np.float32),  # (n, L, D), NaN = missing
        labels=loaded.astype(np.int64),  # (n, L), -1 = no label
        visits=np.ones(shape, dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=Catalog((TOSS.feature(), SCALE.feature()), n_times=4),
        classes=("fair", "loaded"),
        name="coin-clinic",
    )


CARD = Card(
    name="coin-clinic",
    title="Who carries a loaded coin?",
    size="240 subjects, 4 visits",
    labels="fair or loaded",
    measurements=(TOSS, SCALE),
)
COIN_CLINIC = Dataset(CARD, load)
