"""Forward selection: the right slots first, cheap ones preferred, few plans tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.catalog import Feature
from nocta.methods.reference.greedy import GreedyOptions, PlanJudge, greedy_path, slot_blocks
from nocta.testing import OraclePredictor, RunningMeanPredictor, tiny_cohort, tiny_counter_cohort


class Counting:
    """A predictor that counts how many rows it was asked for."""

    def __init__(self, predictor):
        self.predictor, self.n_rows = predictor, 0
        self.n_classes_ = predictor.n_classes_

    def predict_proba(self, history):
        self.n_rows += len(history)
        return self.predictor.predict_proba(history)


@pytest.fixture(scope="module")
def counter():
    return tiny_counter_cohort(200)


def test_a_path_grows_from_nothing_to_everything(counter):
    blocks = slot_blocks(counter.catalog.open_slots)
    path = greedy_path(OraclePredictor(), counter, blocks, seed=0)
    assert not path.plans[0].any()
    assert path.plans[-1].all()
    assert (path.plans[1:] >= path.plans[:-1]).all()
    assert path.plans.sum(axis=(1, 2)).tolist() == list(range(9))
    assert (np.diff(path.costs) > 0).all()
    assert path.losses[-1] < 1e-6 < path.losses[0]


def test_the_first_slot_is_the_best_single_one(counter):
    blocks = slot_blocks(counter.catalog.open_slots)
    path = greedy_path(OraclePredictor(), counter, blocks, seed=0)
    losses = PlanJudge(OraclePredictor(), counter).losses(blocks)
    assert path.losses[1] == pytest.approx(losses.min())


def test_a_price_moves_a_slot_back(counter):
    first, second = counter.catalog.features
    best = greedy_path(OraclePredictor(), counter, slot_blocks(np.ones((4, 2), bool)), seed=0)
    favorite = int(best.plans[1].any(axis=0).argmax())
    dear = tuple(
        replace(f, cost=100.0) if m == favorite else f for m, f in enumerate((first, second))
    )
    expensive = counter.with_catalog(replace(counter.catalog, features=dear))
    path = greedy_path(OraclePredictor(), expensive, slot_blocks(np.ones((4, 2), bool)), seed=0)
    assert int(path.plans[1].any(axis=0).argmax()) != favorite


def test_a_free_useful_slot_comes_first(counter):
    features = (counter.catalog.features[0], replace(counter.catalog.features[1], cost=0.0))
    cohort = counter.with_catalog(replace(counter.catalog, features=features))
    path = greedy_path(OraclePredictor(), cohort, slot_blocks(np.ones((4, 2), bool)), seed=0)
    assert path.plans[1].any(axis=0).tolist() == [False, True]


def test_priority_is_the_order_of_addition(counter):
    path = greedy_path(OraclePredictor(), counter, slot_blocks(np.ones((4, 2), bool)), seed=0)
    for step in range(1, len(path.plans)):
        new = path.plans[step] & ~path.plans[step - 1]
        assert (path.priority[new] == step).all()


def test_judging_many_plans_at_once_changes_nothing():
    cohort = tiny_cohort(30)
    plans = np.random.default_rng(0).random((7, 4, 2)) < 0.5
    together = PlanJudge(RunningMeanPredictor(2), cohort).losses(plans)
    one_by_one = PlanJudge(RunningMeanPredictor(2), cohort, max_rows=1).losses(plans)
    assert together == pytest.approx(one_by_one)


def test_missing_values_are_not_charged():
    cohort = tiny_cohort(30)
    everything = cohort.catalog.open_slots[None]
    found = PlanJudge(RunningMeanPredictor(2), cohort).costs(everything)[0]
    assert found == pytest.approx(cohort.catalog.cost_of(cohort.recorded).mean())
    assert found < cohort.catalog.price_of_everything


def test_lazy_search_finds_nearly_the_same_with_less_work(counter):
    blocks = slot_blocks(counter.catalog.open_slots)
    exact, lazy = Counting(OraclePredictor()), Counting(OraclePredictor())
    path = greedy_path(exact, counter, blocks, seed=0)
    options = GreedyOptions(exact_below=0, n_fresh=2, n_random=1)
    quick = greedy_path(lazy, counter, blocks, seed=0, options=options)
    assert lazy.n_rows < exact.n_rows
    assert quick.losses.mean() <= path.losses.mean() + 0.05


@pytest.mark.parametrize("options", [GreedyOptions(max_evaluations=8), GreedyOptions(patience=0)])
def test_a_search_out_of_breath_still_gives_a_whole_path(counter, options):
    predictor = Counting(OraclePredictor())
    path = greedy_path(
        predictor, counter, slot_blocks(np.ones((4, 2), bool)), seed=0, options=options
    )
    assert path.plans[-1].all()
    assert predictor.n_rows <= (1 + 8 + 9) * len(counter)


def test_few_subjects_are_looked_at_where_there_are_many(counter):
    predictor = Counting(OraclePredictor())
    options = GreedyOptions(max_subjects=20)
    path = greedy_path(
        predictor, counter, slot_blocks(np.ones((4, 2), bool)), seed=0, options=options
    )
    assert predictor.n_rows <= 20 * (1 + 36 + 9)
    assert path.costs[-1] == 8.0


def test_same_seed_same_path(counter):
    options = GreedyOptions(max_subjects=20, exact_below=0, n_fresh=1, n_random=1)
    blocks = slot_blocks(counter.catalog.open_slots)
    first, again = (
        greedy_path(OraclePredictor(), counter, blocks, seed=3, options=options) for _ in range(2)
    )
    assert np.array_equal(first.plans, again.plans)


@pytest.mark.parametrize(("shape", "limit"), [((48, 37), 400), ((12, 17), 100), ((3, 500), 400)])
def test_many_slots_become_stretches(shape, limit):
    blocks = slot_blocks(np.ones(shape, dtype=bool), limit)
    assert len(blocks) <= max(limit, shape[1])
    assert (blocks.sum(axis=0) == 1).all()
    assert (blocks.any(axis=1).sum(axis=1) == 1).all()


def test_closed_slots_are_in_no_block():
    catalog = tiny_counter_cohort(2).catalog
    closed = replace(catalog, features=(Feature("a", ("a",), at=(1,)), catalog.features[1]))
    assert np.array_equal(slot_blocks(closed.open_slots).any(axis=0), closed.open_slots)


def test_no_label_no_preference():
    cohort = replace(tiny_cohort(10), labels=np.full((10, 4), -1))
    path = greedy_path(RunningMeanPredictor(2), cohort, slot_blocks(np.ones((4, 2), bool)), seed=0)
    assert path.plans[-1].all()
    assert (path.losses == 0).all()
