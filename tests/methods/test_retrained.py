"""Methods with one training run per knob value spend a fixed number of fits well."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability
from nocta.core.errors import ConfigError
from nocta.core.policy import Decision, Observation, Policy
from nocta.methods.fixed import RandomPolicy
from nocta.methods.retrained import N_FITS, N_FITS_QUICK, RetrainedMethod
from nocta.testing import RunningMeanPredictor, tiny_cohort


class Fake(RetrainedMethod):
    """Its knob is the probability of acquiring; counts its fits."""

    name = "fake"
    knob = "probability"
    knob_range = (0.01, 1.0)
    paper_grids: ClassVar = {"tiny": (0.3, 0.4)}

    def _train(self, value: float, train: Cohort, val: Cohort, seed: int, progress: bool) -> Policy:
        self.n_fits = getattr(self, "n_fits", 0) + 1
        return RandomPolicy(value, RunningMeanPredictor(2))


@pytest.fixture
def parts() -> list[Cohort]:
    return list(tiny_cohort(200).split((0.5, 0.5)))


def test_every_fit_is_an_operating_point_cheapest_first(parts: list[Cohort]) -> None:
    method = Fake().fit(*parts, seed=0)
    assert method.n_fits == len(method.costs_) == N_FITS
    settings = method.settings(parts[1], 10)
    costs = [method.costs_[s["probability"]] for s in settings]
    assert len(settings) == len(method.costs_)
    assert costs == sorted(costs)


def test_fits_go_where_the_costs_have_a_gap(parts: list[Cohort]) -> None:
    costs = sorted(Fake().fit(*parts, seed=0).costs_.values())
    assert max(np.diff(costs)) < 0.5 * costs[-1]


def test_the_papers_values_are_among_them_on_its_data_and_not_elsewhere(
    parts: list[Cohort],
) -> None:
    assert not {0.3, 0.4} & set(Fake().fit(*parts, seed=0).costs_)  # only named like it
    parts = [replace(part, name="other", published="tiny") for part in parts]
    assert {0.3, 0.4} <= set(Fake().fit(*parts, seed=0).costs_)


def test_a_quick_run_fits_few(parts: list[Cohort]) -> None:
    assert Fake(quick=True).fit(*parts, seed=0).n_fits == N_FITS_QUICK


def test_a_given_grid_is_all_that_is_trained(parts: list[Cohort]) -> None:
    method = Fake(grid=[0.5, 0.1]).fit(*parts, seed=0)
    assert [s["probability"] for s in method.settings(parts[1], 10)] == [0.1, 0.5]


def test_fewer_points_than_fits_keep_the_spread(parts: list[Cohort]) -> None:
    assert len(Fake().fit(*parts, seed=0).settings(parts[1], 3)) == 3


def test_a_value_without_a_fit_is_refused_with_those_that_have_one(parts: list[Cohort]) -> None:
    with pytest.raises(ConfigError, match=r"it was at 0\.1, 0\.5"):
        Fake(grid=[0.5, 0.1]).fit(*parts, seed=0).policy({"probability": 0.2})


@pytest.mark.parametrize("grid", [[], [-1.0], [float("nan")]])
def test_a_grid_must_be_numbers(parts: list[Cohort], grid: list[float]) -> None:
    with pytest.raises(ConfigError, match="grid is"):
        Fake(grid=grid).fit(*parts, seed=0)


class _Curious(RandomPolicy):
    """Notes whether it was told what is missing."""

    told: ClassVar[list[bool]] = []

    def decide(self, observation: Observation) -> Decision:
        self.told.append(observation.available is not None)
        return super().decide(observation)


@pytest.mark.parametrize("availability", ["on-arrival", "known"])
def test_costs_are_found_under_the_rule_of_the_comparison(
    parts: list[Cohort], availability: Availability, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Curious, "told", [])
    monkeypatch.setattr(
        Fake, "_train", lambda self, value, *_: _Curious(value, RunningMeanPredictor(2))
    )
    method = Fake(grid=[0.5])
    method.availability = availability
    method.fit(*parts, seed=0)
    assert set(_Curious.told) == {availability == "known"}


class Narrow(Fake):
    """Its range of knob values holds a small part of the trade-off only."""

    knob_buys = True
    paper_grids: ClassVar = {}


@pytest.mark.parametrize(("low", "high", "reached"), [(0.2, 0.25, 1.0), (0.8, 1.0, 0.2)])
def test_the_range_is_left_where_costs_lie_beyond_it(
    low: float, high: float, reached: float, parts: list[Cohort], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Narrow, "knob_range", (low, high))
    method = Narrow().fit(*parts, seed=0)
    assert any(value == pytest.approx(reached) for value in method.costs_)
    assert len(method.costs_) <= N_FITS


@pytest.mark.parametrize("setting", [{}, {"knb": 0.3}, {"probability": 0.3, "other": 1}])
def test_a_setting_of_something_else_is_refused(
    setting: dict[str, float], parts: list[Cohort]
) -> None:
    method = Fake(grid=[0.3]).fit(*parts, seed=0)
    with pytest.raises(ConfigError, match="A setting of method 'fake' is"):
        method.policy(setting)


@pytest.mark.parametrize("grid", [[], [-1.0], ["a"]])
def test_impossible_grids_are_refused(grid: list[float]) -> None:
    with pytest.raises(ConfigError, match="grid is"):
        Fake(grid=grid).check_options()


def test_a_single_value_is_a_grid(parts: list[Cohort]) -> None:
    assert list(Fake(grid=0.3).fit(*parts, seed=0).costs_) == [0.3]  # type: ignore[arg-type]
