"""The recommended method: validation chooses between planners by a written rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nocta
from nocta.core.errors import ConfigError
from nocta.model.presets.auto import AutoPlanner, Lead, candidates, choose, compare
from nocta.testing import check_policy, tiny_cohort


@pytest.fixture(scope="module")
def parts():
    return tiny_cohort(n_subjects=240, seed=0).split((0.6, 0.2, 0.2), seed=0)


class Fixed:
    """A planner whose regrets are known."""

    cost_scale = 1.0

    def __init__(self, level: float, noise: float) -> None:
        self.level, self.noise = level, noise

    def regret(self, cohort, cost_weight):
        rng = np.random.default_rng(int(100 * cost_weight))
        return self.level + self.noise * rng.normal(size=len(cohort))


@pytest.mark.parametrize(
    ("levels", "noise", "ahead"),
    [((5.0, 4.0), 0.1, "amortized"), ((5.0, 6.0), 0.1, "direct"), ((5.0, 5.0), 0.0, "direct")],
)
def test_another_candidate_must_be_clearly_better(parts, levels, noise, ahead) -> None:
    fitted = {
        name: Fixed(level, noise * i)
        for i, (name, level) in enumerate(zip(("direct", "amortized"), levels, strict=True))
    }
    assert choose(compare(fitted, parts[1], 0)) == ahead


def test_the_surest_lead_wins_and_an_unsure_one_does_not() -> None:
    first, sure = Lead("direct", 0.0, 0.0), Lead("amortized", 1.0, 0.4)
    large = Lead("ensemble", 2.0, 1.0)
    assert choose((first, large, sure)) == "amortized"
    assert choose((first, Lead("amortized", 1.0, 1.0))) == "direct"


def test_many_subjects_prefer_direct_and_few_the_population(parts) -> None:
    few = parts[0]
    many = tiny_cohort(n_subjects=600, seed=0)
    assert candidates(few)[0] == "amortized"
    assert candidates(many)[0] == "direct"
    assert set(candidates(few)) == {"direct", "amortized", "contrastive", "ensemble"}


def test_the_reason_names_winner_and_lead() -> None:
    leads = (Lead("direct", 0.0, 0.0), Lead("amortized", 1.0, 0.4))
    assert "by 2.5 standard errors" in AutoPlanner("amortized", None, leads).reason
    assert "NOCT-Amortized did not do clearly better" in AutoPlanner("direct", None, leads).reason


def test_it_is_fitted_saved_described_and_does_not_leak(parts, tmp_path: Path) -> None:
    train, val, test = parts
    options = {"candidates": ("direct", "amortized"), "quick": True}
    model = nocta.NOCTA("auto", options=options).fit(train, val)
    weight = model.planner_.cost_scale
    check_policy(lambda cohort: model.policy(weight), test)
    model.save(tmp_path / "m")
    again = nocta.load(tmp_path / "m")
    first, second = (m.rollout(test, weight) for m in (model, again))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert again.planner_.reason == model.planner_.reason
    assert again.planner_.chosen in ("direct", "amortized")


def test_an_unknown_candidate_is_refused_before_any_fit(parts) -> None:
    with pytest.raises(ConfigError, match="candidates"):
        nocta.NOCTA("auto", options={"candidates": ("best",)}).fit(*parts[:2])


def test_the_paper_preset_has_no_choice(parts) -> None:
    with pytest.raises(ConfigError, match="preset of estimator 'auto'"):
        nocta.NOCTA("auto", preset="paper").fit(*parts[:2])
