"""A linear model over summaries of the past: step by step, subset by subset, and from few."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.history import History
from nocta.core.metrics import cross_entropy
from nocta.model.persistence import load_predictor, save_predictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.summary import RowLimits, SummaryNet, SummaryPredictor
from nocta.predictors.walking import AdditiveNet, WalkingNet, next_shares
from nocta.testing import check_predictor, tiny_cohort, tiny_counter_cohort
from small_models import Parts


def with_levels(n_subjects: int, seed: int) -> Cohort:
    """The tiny clinic where the blood test and half of the two-column scan have a few levels."""
    cohort = tiny_cohort(n_subjects, seed)
    values = cohort.values.copy()
    values[..., :2] = np.clip(np.round(values[..., :2]), -2, 2)
    return replace(cohort, values=values)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return with_levels(30, seed=4)


@pytest.fixture(scope="module")
def fitted() -> SummaryPredictor:
    return SummaryPredictor().fit(with_levels(60, seed=1), with_levels(40, seed=2))


@pytest.fixture(scope="module")
def inputs(fitted: SummaryPredictor, cohort: Cohort) -> torch.Tensor:
    asked = np.random.default_rng(0).uniform(size=cohort.recorded.shape) < 0.5
    return fitted.encode(History.of(cohort, asked))


def losses(predictor: SummaryPredictor, cohort: Cohort) -> list[float]:
    """Cross-entropy with nothing and with everything known."""
    out = []
    for asked in (np.zeros_like(cohort.recorded), np.ones_like(cohort.recorded)):
        proba = predictor.predict_proba(History.of(cohort, asked))
        out.append(cross_entropy(cohort.labels[cohort.labeled], proba[cohort.labeled]))
    return out


def test_the_predictor_contract_holds(fitted: SummaryPredictor, cohort: Cohort) -> None:
    check_predictor(fitted, cohort)


def test_it_goes_slot_by_slot_and_adds_up(fitted: SummaryPredictor) -> None:
    assert fitted.net_.n_levels > 5
    assert isinstance(fitted.net_, WalkingNet)
    assert isinstance(fitted.net_, AdditiveNet)


@torch.no_grad()
def test_walking_equals_extending_step_by_step(
    fitted: SummaryPredictor, inputs: torch.Tensor
) -> None:
    net = fitted.net_
    walked, read = net.walk(inputs), net(inputs)
    state = torch.zeros(len(inputs), net.state_width)
    for k in range(inputs.shape[1]):
        state = net.extend(state, inputs[:, k])
        torch.testing.assert_close(state, walked[:, k])
        torch.testing.assert_close(net.read(state), read[:, k])


def test_summaries_are_those_worked_by_hand(fitted: SummaryPredictor) -> None:
    net: SummaryNet = fitted.net_
    inputs = torch.zeros(1, 4, fitted.encoder_.width)
    known = torch.tensor([0.0, 1.0, 1.0, 0.0])
    inputs[0, :, 2] = known * torch.tensor([0.0, 3.0, 7.0, 0.0])  # thickness, without levels
    inputs[0, :, net.n_columns + 2] = known
    found = net.summaries(net.walk(inputs))[0]
    n, m = net.n_columns + net.n_levels, net.n_columns
    places = [2, n + 2, 2 * n + 2, 3 * n + 2, 3 * n + m + 2, 3 * n + 2 * m + 2]
    # last, mean, change, any, age as a share of the slots, value by age
    expected = [
        [0, 0, 0, 0, 0, 0],
        [3, 3, 0, 1, 0, 3],
        [7, 5, 4, 1, 0, 7],
        [7, 5, 4, 1, 0.25, 3.5],
    ]
    np.testing.assert_allclose(found[:, places], expected)


@torch.no_grad()
@pytest.mark.parametrize("time", [0, 2])
def test_subsets_read_together_equal_subsets_read_alone(
    fitted: SummaryPredictor, cohort: Cohort, inputs: torch.Tensor, time: int
) -> None:
    net, encoder = fitted.net_, fitted.encoder_
    everything = fitted.encode(History.of(cohort, np.ones_like(cohort.recorded)))[:, time]
    slots, frame = everything.split([encoder.slot_width, encoder.width - encoder.slot_width], dim=1)
    before = torch.zeros(len(inputs), net.state_width)
    if time:
        before = net.walk(inputs[:, :time])[:, -1]
    subsets = torch.tensor(list(product([False, True], repeat=2)))
    free, without, with_it = next_shares(net, before, slots, frame)
    least = free + without.sum(dim=1)
    together = least[:, None] + subsets.float() @ (with_it - without)
    owner = torch.from_numpy(encoder.slot_owner_)
    alone = [
        net.read(net.extend(before, torch.cat([slots * subset[owner], frame], dim=1)))
        for subset in subsets
    ]
    torch.testing.assert_close(together, torch.stack(alone, dim=1), atol=1e-5, rtol=1e-5)
    assert float((together[:, 0] - together[:, 3]).abs().max()) > 0.1


def test_gates_change_no_number_and_have_a_gradient(
    fitted: SummaryPredictor, inputs: torch.Tensor
) -> None:
    gated = fitted.net_(inputs.clone().requires_grad_())
    torch.testing.assert_close(gated, fitted.net_(inputs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("is_open", [False, True])
def test_the_gradient_of_a_lone_gate_is_what_it_changes(
    fitted: SummaryPredictor, cohort: Cohort, is_open: bool
) -> None:
    """Nothing else is known, so that all but the age in `current` is linear in the gate."""
    net, owner = fitted.net_, torch.from_numpy(fitted.encoder_.slot_owner_)
    whole = fitted.encode(History.of(cohort, np.ones_like(cohort.recorded)))
    slots, frame = whole[..., : len(owner)], whole[..., len(owner) :]

    def outputs(gates: torch.Tensor) -> torch.Tensor:
        return net(torch.cat([slots * gates[..., owner], frame], dim=2))[:, 1, 1]

    gates = torch.zeros(cohort.recorded.shape)
    shut = gates.clone()
    gates[:, 1, 1] = 1.0
    change = (outputs(gates) - outputs(shut)).detach()
    here = (gates if is_open else shut).requires_grad_()
    (gradient,) = torch.autograd.grad(outputs(here).sum(), here)
    assert float(change.abs().max()) > 0.1
    torch.testing.assert_close(gradient[:, 1, 1], change, atol=1e-4, rtol=1e-3)


def test_gradients_point_to_what_would_replace_an_older_value(fitted: SummaryPredictor) -> None:
    net = fitted.net_
    seen = net.n_columns + 2
    inputs = torch.zeros(1, 4, fitted.encoder_.width)
    inputs[0, 0, 2], inputs[0, 0, seen] = 2.0, 1.0
    inputs.requires_grad_()
    last = net._gated_summaries(inputs)[0, 3, 2]
    (gradient,) = torch.autograd.grad(last, inputs)
    value, known = gradient[0, :, 2].tolist(), gradient[0, :, seen].tolist()
    # A value of v at a closed slot would change the last one by v - 2.
    assert value == [1.0, 1.0, 1.0, 1.0]
    assert known == [0.0, -2.0, -2.0, -2.0]


def test_same_seed_gives_the_same_model(tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    history = History.of(test, np.ones_like(test.recorded))
    first, again, other = (
        SummaryPredictor(seed=seed).fit(train, val).predict_proba(history) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_saved_predictor_predicts_the_same(
    fitted: SummaryPredictor, cohort: Cohort, tmp_path: Path
) -> None:
    history = History.of(cohort, np.ones_like(cohort.recorded))
    again = SummaryPredictor.from_state(*fitted.state())
    assert again.get_params() == fitted.get_params()
    save_predictor(fitted, tmp_path / "alone")
    both = CrossFittedPredictor([fitted, fitted], np.zeros(60, dtype=np.int64))
    save_predictor(both, tmp_path / "folds")
    for other in (again, load_predictor(tmp_path / "alone"), load_predictor(tmp_path / "folds")):
        np.testing.assert_array_equal(fitted.predict_proba(history), other.predict_proba(history))


def test_it_learns_from_few_subjects() -> None:
    train, val, test = (tiny_cohort(n, seed) for n, seed in ((40, 1), (30, 2), (200, 3)))
    nothing, everything = losses(SummaryPredictor().fit(train, val), test)
    assert nothing < 0.75  # knowing nothing is about as good as the base rate
    assert everything < nothing - 0.15


def test_values_of_the_past_are_remembered(tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    fitted = SummaryPredictor().fit(train, val)
    asked = np.zeros_like(test.recorded)
    nothing = fitted.predict_proba(History.of(test, asked))[:, 3]
    asked[:, 0] = True
    assert np.abs(fitted.predict_proba(History.of(test, asked))[:, 3] - nothing).max() > 0.05


def test_three_classes_are_told_apart() -> None:
    parts = []
    for n, seed in ((150, 1), (60, 2), (200, 3)):
        cohort = tiny_cohort(n, seed)
        high = (cohort.labels == 1) & (np.nan_to_num(cohort.values[..., 1]) > 2)
        labels = np.where(high, 2, cohort.labels)
        parts.append(replace(cohort, labels=labels, classes=("low", "middle", "high")))
    fitted = SummaryPredictor().fit(*parts[:2])
    assert fitted.predict_proba(History.of(parts[2], np.ones_like(parts[2].recorded))).shape[2] == 3
    nothing, everything = losses(fitted, parts[2])
    assert everything < nothing - 0.2


@pytest.mark.parametrize("seen", [(0, 1), (1,)])
def test_a_class_never_seen_stays_possible_and_unlikely(
    tiny_parts: Parts, seen: tuple[int, ...]
) -> None:
    train, val, test = (
        replace(c, classes=("stable", "worse", "rare"), labels=np.clip(c.labels, -1, 1))
        for c in tiny_parts
    )
    kept = np.where(np.isin(train.labels, seen), train.labels, -1)
    fitted = SummaryPredictor(calibrate=False).fit(replace(train, labels=kept), val)
    proba = fitted.predict_proba(History.empty(test.catalog, test.context))
    assert fitted.n_classes_ == 3
    assert 0 < proba[..., 2].min() <= proba[..., 2].max() < 0.1
    if len(seen) == 1:
        assert proba[..., 1].min() > 0.8


def test_balanced_weights_raise_the_rare_class() -> None:
    cohort = tiny_cohort(120, seed=3)
    labels = np.where(np.random.default_rng(0).uniform(size=cohort.labels.shape) < 0.1, 1, 0)
    rare = replace(cohort, labels=labels)
    history = History.empty(rare.catalog, rare.context)
    shares = [
        SummaryPredictor(class_weight=w, calibrate=False)
        .fit(rare, rare)
        .predict_proba(history)[..., 1]
        .mean()
        for w in (None, "balanced")
    ]
    assert shares[0] < 0.15
    assert shares[1] > shares[0] + 0.2


def test_a_strong_prior_flattens_predictions(tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    history = History.of(test, np.ones_like(test.recorded))
    weak, strong = (
        SummaryPredictor((c,), calibrate=False).fit(train, val).predict_proba(history)
        for c in (1.0, 1e-4)
    )
    assert strong[..., 1].std() < 0.3 * weak[..., 1].std()


def test_validation_chooses_the_prior(tiny_parts: Parts) -> None:
    seen: list[tuple[int, float]] = []
    fitted = SummaryPredictor().fit(
        *tiny_parts[:2], on_epoch=lambda step, loss: seen.append((step, loss))
    )
    assert [step for step, _ in seen] == list(range(1, 7))
    best = int(np.argmin([loss for _, loss in seen]))
    assert fitted.log_.best_epoch == best + 1
    inputs, labels = fitted._validation_set(tiny_parts[1], tiny_parts[1].catalog.open_slots)
    assert fitted._validation_loss(inputs, labels, None) == pytest.approx(seen[best][1])


def test_summing_up_piece_by_piece_changes_nothing(tiny_parts: Parts) -> None:
    history = History.of(tiny_parts[2], np.ones_like(tiny_parts[2].recorded))
    whole = SummaryPredictor((0.1,)).fit(*tiny_parts[:2]).predict_proba(history)
    pieces = (
        SummaryPredictor((0.1,), rows=RowLimits(at_once=7))
        .fit(*tiny_parts[:2])
        .predict_proba(history)
    )
    np.testing.assert_array_equal(whole, pieces)


def test_no_context_and_many_classes_are_no_obstacle() -> None:
    train, val = tiny_counter_cohort(40, seed=1), tiny_counter_cohort(20, seed=2)
    check_predictor(SummaryPredictor((0.1,)).fit(train, val), val)


def test_an_unfitted_predictor_says_so(cohort: Cohort) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        SummaryPredictor().predict_proba(History.empty(cohort.catalog, cohort.context))


def test_very_many_subjects_are_sampled(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    n_pairs = int(train.labeled.sum())
    limits = RowLimits(wanted=1, most=2 * n_pairs)
    asked_of: list[np.ndarray] = []

    def ask(index: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        asked_of.append(index)
        return np.ones((len(index), *train.catalog.open_slots.shape), dtype=bool)

    SummaryPredictor((0.1,), rows=limits).fit(train, val, requests=ask)
    # Four masks each of every second subject.
    assert len(asked_of[0]) == 4 * (len(train) // 2)
    assert len(np.unique(asked_of[0])) == len(train) // 2


def test_no_penalty_at_all_is_refused(tiny_parts: Parts) -> None:
    with pytest.raises(ConfigError, match="at least one positive number"):
        SummaryPredictor(()).fit(tiny_parts[0], tiny_parts[1])
