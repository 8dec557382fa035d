"""The histories that both models are judged from, and what is said of the outcome."""

from __future__ import annotations

import numpy as np
import pandas as pd

from few_subjects import MODELS, N_DRAWS, histories, report
from nocta.testing import tiny_cohort


def test_histories_ask_for_what_they_are_called() -> None:
    cohort = tiny_cohort(6)
    found = histories(cohort)
    assert len(found["random"]) == N_DRAWS
    (first,), (second,), (everything,) = (
        found[name] for name in ("first visit", "every second visit", "everything")
    )
    assert first[:, 0].all()
    assert not first[:, 1:].any()
    np.testing.assert_array_equal(second.any(axis=2)[0], [True, False, True, False])
    assert everything.all()


def test_the_report_says_who_is_ahead() -> None:
    rows = [
        {"seed": seed, "history": "random", "model": model, "ap": 0.5 + lead + 0.1 * seed}
        for seed in range(3)
        for model, lead in zip(MODELS, (0.0, 0.2, 0.1), strict=True)
    ]
    text = report(pd.DataFrame(rows))
    assert "network 0.600, linear 0.800, both 0.700; linear less network +0.2" in text
