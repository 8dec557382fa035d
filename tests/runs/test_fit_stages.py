"""What a finished stage says and keeps, whatever kind of predictor was fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.neural import NeuralPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.fit_stages import Stages
from small_models import Parts

SHORT = TrainingConfig(epochs=2, batch_size=32, check_every=1)


@pytest.mark.parametrize(
    ("member", "n_members", "said"),
    [
        (SummaryPredictor(), 1, "predictor: 1 linear model in 0 s."),
        (SummaryPredictor(), 3, "predictor: 3 linear models in 0 s."),
        (RecurrentPredictor(4, training=SHORT), 1, "predictor: 1 network, best at epoch 2, in"),
        (
            MixedPredictor(4, training=SHORT),
            2,
            "predictor: 2 networks and as many linear models, best at epoch 2, 2, in",
        ),
        (
            MixedPredictor(4, training=SHORT),
            1,
            "predictor: 1 network and a linear model, best at epoch 2, in",
        ),
    ],
)
def test_a_finished_predictor_is_told_in_words(
    member: NeuralPredictor, n_members: int, said: str, tiny_parts: Parts, tmp_path: Path
) -> None:
    fitted = member.fit(*tiny_parts[:2])
    whole = CrossFittedPredictor([fitted] * n_members, np.zeros(len(tiny_parts[0]), dtype=np.int64))
    heard: list[str] = []
    finished = Checkpoint(tmp_path, {"seed": 0})
    Stages(finished, heard.append).predictor(lambda: whole)
    assert heard[0].startswith(said)
    stage = finished.get("predictor.json")
    assert len(stage["runs"]) == n_members
    run = stage["runs"][0]
    if isinstance(member, SummaryPredictor):
        chosen = run["inverse_penalties"].index(run["best_inverse_penalty"])
        assert chosen == int(np.argmin(run["validation_losses"]))
    else:
        assert run["max_epochs"] == 2

    def never() -> CrossFittedPredictor:
        raise AssertionError("fitted again")

    kept = Stages(finished, heard.append).predictor(never)
    assert type(kept.members[0]) is type(member)
    assert heard[-1] == "predictor: kept from before."
