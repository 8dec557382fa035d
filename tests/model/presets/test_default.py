"""The default preset: every estimator, every kind of cohort, the whole contract."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.model.nocta import NOCTA
from nocta.model.presets.base import EstimatorName, break_even_weight
from nocta.model.presets.default import DefaultPlanner
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.fitting import fit_predictor
from nocta.testing import check_policy
from small_models import ESTIMATORS, QUICK, WEIGHT, Parts


def everything_at_once(n_subjects: int = 60, seed: int = 0) -> Cohort:
    """Six features, one of three columns, one open at the first visit only; costs that vary with
    time, a group fee, a visit fee, context, missing values, follow-up of any length."""
    rng = np.random.default_rng(seed)
    n, length = n_subjects, 3
    features = (
        Feature("ask", ("ask",), 0.2, at=(0,)),
        Feature("blood", ("alt", "ast", "ggt"), (1.0, 2.0, 3.0), group="draw"),
        Feature("lipids", ("lipids",), 0.5, group="draw"),
        Feature("scan", ("scan",), 4.0),
        Feature("walk", ("walk",), 0.3),
        Feature("weight", ("weight",), 0.1),
    )
    catalog = Catalog(features, length, context=("age",), group_fees={"draw": 0.7}, visit_fee=0.25)
    risk = rng.normal(size=(n, length)).cumsum(axis=1)
    values = risk[..., None] + rng.normal(size=(n, length, len(catalog.columns)))
    visits = np.arange(length) < rng.integers(1, length + 1, size=(n, 1))
    values[(rng.uniform(size=values.shape) < 0.15) | ~visits[..., None]] = np.nan
    labels = np.digitize(risk, [-0.5, 0.7])
    labels[~visits] = -1
    context = np.where(rng.uniform(size=(n, 1)) < 0.1, np.nan, rng.normal(size=(n, 1)))
    return Cohort(
        values=values.astype(np.float32),
        labels=labels.astype(np.int64),
        visits=visits,
        context=context.astype(np.float32),
        subjects=np.arange(n),
        catalog=catalog,
        classes=("low", "middle", "high"),
        name="everything",
    )


@pytest.fixture(scope="module")
def hard_parts() -> Parts:
    train, val, test = everything_at_once().split((0.6, 0.2, 0.2), seed=0)
    return train, val, test


@pytest.fixture(scope="module")
def hard_predictor(hard_parts: Parts) -> CrossFittedPredictor:
    return fit_predictor(hard_parts[0], hard_parts[1], quick=True)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_policy_contract_holds(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    policy = tiny_models[name].policy(WEIGHT)
    some = tiny_parts[2].subset(np.arange(12 if name == "amortized" else 6))
    limits = (None, 0.4, 0.0) if name == "amortized" else (None, 0.4)
    check_policy(lambda _: policy, some, budget_shares=limits, n_cuts=3, n_alone=2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_kind_of_cohort_goes_through(
    name: EstimatorName, hard_parts: Parts, hard_predictor: CrossFittedPredictor
) -> None:
    train, val, test = hard_parts
    options = {**QUICK, "n_rounds": 1, "n_refreshed": 10, "amortized_share": 0.5}
    model = NOCTA(name, options=options).fit(train, val, predictor=hard_predictor)
    free = model.rollout(test, 0.0)
    limited = model.rollout(test, 0.0, budget=2.0)
    assert free.history.acquired.any()
    assert not (free.history.requested & ~test.catalog.open_slots).any()
    assert limited.costs.max() <= 2.0 + 1e-9
    known = model.rollout(test, 0.05, availability="known")
    assert not known.history.unavailable.any()
    dear = model.rollout(test, 1e4)
    assert not dear.history.requested.any()
    np.testing.assert_allclose(free.costs, test.catalog.cost_of(free.history.acquired), atol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_budgets_are_kept_to_the_cent(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    test = tiny_parts[2]
    for budget in (0.0, 1.4, 1.5, 6.0):
        done = tiny_models[name].rollout(test, 0.0, budget=budget)
        assert done.costs.max() <= budget + 1e-9
    own = np.linspace(0, 8, len(test))
    assert (tiny_models[name].rollout(test, 0.0, budget=own).costs <= own + 1e-9).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_cost_weights_trade_cost(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    costs = [tiny_models[name].rollout(tiny_parts[2], w).cost for w in (0.0, WEIGHT, 10.0)]
    assert costs[0] > costs[-1] == 0.0
    assert costs[0] >= costs[1]


@pytest.mark.parametrize("name", ["amortized", "contrastive"])
def test_same_seed_gives_the_same_model(
    name: EstimatorName,
    tiny_models: dict[str, NOCTA],
    tiny_parts: Parts,
    tiny_predictor: CrossFittedPredictor,
) -> None:
    train, val, test = tiny_parts
    first = tiny_models[name]
    again = NOCTA(**first.get_params()).fit(train, val, predictor=tiny_predictor)
    one, two = (m.planner_.state()[1] for m in (first, again))
    assert one.keys() == two.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], two[key])
    np.testing.assert_array_equal(
        first.rollout(test, WEIGHT).history.requested, again.rollout(test, WEIGHT).history.requested
    )


def test_another_seed_gives_another_network(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    first = tiny_models["amortized"]
    other = NOCTA("amortized", seed=1, options=first.options)
    other.fit(tiny_parts[0], tiny_parts[1], predictor=tiny_predictor)
    weight = "amortized.individuals0.net.head.0.weight"
    one, two = (m.planner_.state()[1][weight] for m in (first, other))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("metric", ["predictor", "values"])
def test_retrieval_in_other_metrics(
    metric: str, tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train, val, test = tiny_parts
    options = {**QUICK, "metric": metric, "bank_size": 30}
    model = NOCTA("contrastive", options=options).fit(train, val, predictor=tiny_predictor)
    assert model.rollout(test, WEIGHT).history.requested.any()


def test_the_share_of_an_ensemble_is_chosen_on_validation(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train, val, _ = tiny_parts
    few = val.subset(np.arange(6))
    model = NOCTA("ensemble", options=QUICK).fit(train, few, predictor=tiny_predictor)
    assert model.planner_.amortized_share in (0.0, 0.5, 1.0)


@pytest.mark.parametrize(("lead", "noise", "chosen"), [(0.1, 5.0, 0.5), (3.0, 5.0, 1.0)])
def test_another_share_than_the_middle_one_must_be_clearly_better(
    tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch, lead: float, noise: float, chosen: float
) -> None:
    used: list[float] = []
    rng = np.random.default_rng(0)

    def regret(self: DefaultPlanner, cohort: Cohort, cost_weight: float) -> np.ndarray:
        return 10 - lead * used[-1] + rng.normal(scale=noise / 10, size=len(cohort))

    monkeypatch.setattr(DefaultPlanner, "regret", regret)
    planner = DefaultPlanner.__new__(DefaultPlanner)
    planner.cost_scale = 1.0
    found = planner.least_regret(used.append, tiny_parts[1], 0, preferred=0.5)
    assert found == chosen
    assert set(used) == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("name", ["amortized", "contrastive"])
def test_other_prices_need_no_new_fit(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    test = tiny_parts[2]
    dear = test.with_catalog(test.catalog.with_costs({"scan": 1e6}))
    cheap = test.with_catalog(test.catalog.with_costs({"scan": 0.0}))
    assert tiny_models[name].rollout(cheap, WEIGHT).history.requested[..., 1].any()
    assert not tiny_models[name].rollout(dear, WEIGHT).history.requested[..., 1].any()


def test_useful_cost_weights_are_near_the_break_even() -> None:
    class Targets:
        def __call__(self, index, requested):  # type: ignore[no-untyped-def]
            import torch

            nothing = ~requested.any(axis=(1, 2))
            loss = np.where(nothing, 3.0, 1.0)[:, None, None]
            return torch.from_numpy(np.repeat(loss, requested.shape[1], axis=1))

    cohort = everything_at_once(30)
    price = cohort.catalog.cost_of(cohort.recorded).mean()
    assert break_even_weight(Targets(), cohort) == pytest.approx(2.0 * 3 / price)  # type: ignore[arg-type]


def test_unknown_names_are_refused(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    with pytest.raises(ConfigError, match=r"no estimator 'amortised'.*'amortized'"):
        NOCTA("amortised").fit(train, val)
    with pytest.raises(ConfigError, match="no option 'n_neighbor'"):
        NOCTA(options={"n_neighbor": 3}).fit(train, val)
    with pytest.raises(ConfigError, match="use 'default' or 'paper'"):
        NOCTA(preset="papers").fit(train, val)  # type: ignore[arg-type]


def test_one_visit_and_one_feature_are_enough() -> None:
    whole = everything_at_once(50)
    catalog = Catalog((Feature("scan", ("scan",), 1.0),), 1)
    single = replace(
        whole,
        values=whole.values[:, :1, 4:5],
        labels=whole.labels[:, :1],
        visits=whole.visits[:, :1],
        context=np.zeros((50, 0), dtype=np.float32),
        catalog=catalog,
    )
    train, val, test = single.split((0.6, 0.2, 0.2), seed=0)
    predictor = fit_predictor(train, val, quick=True)
    model = NOCTA(options=QUICK).fit(train, val, predictor=predictor)
    assert model.rollout(test, 1e4).cost == 0.0
