"""The bank of retrieval: who is kept, and how the nearest are found."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, MissingExtraError
from nocta.model.nocta import NOCTA
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.estimators.bank import choose_bank, nearest_points
from nocta.predictors.cross_fitted import CrossFittedPredictor
from small_models import QUICK, WEIGHT, Parts


def rare_labels() -> np.ndarray:  # type: ignore[type-arg]
    """A common class, a rare one, a very rare one, and subjects without a label."""
    last = np.repeat([0, 1, 2, -1], [200, 30, 4, 6])
    labels = np.stack([np.minimum(last, 0), last], axis=1)
    return labels[np.random.default_rng(0).permutation(len(labels))]


def test_an_even_bank_takes_from_first_to_last() -> None:
    rows, stands_for = choose_bank(rare_labels(), 10)
    assert rows[0] == 0
    assert rows[-1] == 239
    assert np.diff(rows).min() >= 26
    assert (stands_for == 1).all()


def test_a_stratified_bank_keeps_rare_classes_and_weights_them_back() -> None:
    labels = rare_labels()
    rows, stands_for = choose_bank(labels, 60, "stratified")
    top = labels.max(axis=1)
    assert len(rows) == 60
    assert np.unique(rows).size == 60
    kept = {kind: int((top[rows] == kind).sum()) for kind in (-1, 0, 1, 2)}
    assert kept == {-1: 6, 0: 25, 1: 25, 2: 4}
    for kind in (-1, 0, 1, 2):
        share = stands_for[top[rows] == kind].sum() / stands_for.sum()
        assert share == pytest.approx((top == kind).mean(), abs=1e-6)


def test_a_bank_large_enough_keeps_everybody() -> None:
    rows, stands_for = choose_bank(rare_labels(), 1000, "stratified")
    np.testing.assert_array_equal(rows, np.arange(240))
    assert (stands_for == 1).all()


def test_faiss_finds_the_same_neighbors() -> None:
    pytest.importorskip("faiss")
    torch.manual_seed(0)
    queries, bank = torch.randn(30, 8), torch.randn(200, 8)
    here, there = (nearest_points(queries, bank, 12, index) for index in ("torch", "faiss"))
    assert torch.equal(here[0], there[0])
    torch.testing.assert_close(here[1], there[1], rtol=1e-4, atol=1e-4)
    nothing = nearest_points(torch.zeros(3, 0), torch.zeros(9, 0), 2, "faiss")
    assert nothing[1].tolist() == [[0, 0]] * 3


def test_without_faiss_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_faiss(name: str, *args: object, **kwargs: object) -> object:
        if name == "faiss":
            raise ImportError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", no_faiss)
    with pytest.raises(MissingExtraError, match=r"nocta\[faiss\]"):
        nearest_points(torch.zeros(2, 1), torch.zeros(2, 1), 1, "faiss")


def fit(parts: Parts, predictor: CrossFittedPredictor, **options: object) -> NOCTA:
    train, val, _ = parts
    knobs = {**QUICK, "metric": "predictor", **options}
    return NOCTA("contrastive", seed=0, options=knobs).fit(train, val, predictor=predictor)


def acquisitions(model: NOCTA, cohort: Cohort) -> np.ndarray:  # type: ignore[type-arg]
    policy = model.policy(WEIGHT)
    assert isinstance(policy, PlanningPolicy)
    return model.rollout(cohort, WEIGHT).history.requested


def test_faiss_changes_no_decision(tiny_parts: Parts, tiny_predictor: CrossFittedPredictor) -> None:
    pytest.importorskip("faiss")
    here = fit(tiny_parts, tiny_predictor)
    there = fit(tiny_parts, tiny_predictor, neighbor_index="faiss")
    found = acquisitions(here, tiny_parts[2])
    assert found.any()
    np.testing.assert_array_equal(found, acquisitions(there, tiny_parts[2]))


@pytest.mark.parametrize("sampling", ["even", "stratified"])
def test_a_small_bank_holds_only_its_own_subjects_and_survives_saving(
    sampling: str,
    tiny_parts: Parts,
    tiny_predictor: CrossFittedPredictor,
    tmp_path: object,
) -> None:
    import nocta

    model = fit(tiny_parts, tiny_predictor, bank_size=20, bank_sampling=sampling)
    planner = model.planner_
    assert len(planner.contrastive.bank.train) == 20  # type: ignore[attr-defined]
    assert len(planner.contrastive.targets.fold) == 20  # type: ignore[attr-defined]
    model.save(f"{tmp_path}/model")
    again = nocta.load(f"{tmp_path}/model")
    np.testing.assert_array_equal(
        acquisitions(model, tiny_parts[2]), acquisitions(again, tiny_parts[2])
    )


def test_unknown_samplings_are_refused(tiny_parts: Parts) -> None:
    with pytest.raises(ConfigError, match="bank_sampling is 'random'"):
        NOCTA("contrastive", options={"bank_sampling": "random"}).fit(*tiny_parts[:2])
