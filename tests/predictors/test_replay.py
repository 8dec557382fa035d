import numpy as np

from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.replay import ReplayedRequests
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort

OPEN = np.ones((4, 2), dtype=bool)


def one_slot(time, feature):
    out = np.zeros((4, 2), dtype=bool)
    out[time, feature] = True
    return out


def test_subjects_get_their_own_histories_back():
    asked = np.stack([one_slot(1, 0), one_slot(2, 1), one_slot(3, 1)])
    draw = ReplayedRequests(np.array([7, 2, 7]), asked, OPEN, share=1.0)
    found = draw(np.array([2, 7] * 50), np.random.default_rng(0))
    assert (found[::2] == asked[1]).all()
    both = {tuple(np.flatnonzero(m)) for m in found[1::2]}
    assert both == {tuple(np.flatnonzero(asked[0])), tuple(np.flatnonzero(asked[2]))}


def test_others_get_random_requests():
    draw = ReplayedRequests(np.array([0]), OPEN[None], OPEN, share=1.0)
    found = draw(np.arange(1, 200), np.random.default_rng(0))
    assert len({m.tobytes() for m in found}) > 50


def test_share_is_kept():
    only = one_slot(0, 1)
    draw = ReplayedRequests(np.zeros(1, dtype=int), only[None], OPEN, share=0.25)
    found = draw(np.zeros(2000, dtype=int), np.random.default_rng(0))
    assert 0.2 < (found == only).all(axis=(1, 2)).mean() < 0.35


def test_a_predictor_can_train_on_them():
    cohort = tiny_cohort(40, seed=0)
    draw = ReplayedRequests(np.arange(40), cohort.recorded, cohort.catalog.open_slots, 0.5)
    quick = TrainingConfig(epochs=2, batch_size=20, check_every=1)
    with_replay = MLPPredictor(training=quick).fit(cohort, tiny_cohort(20, seed=1), requests=draw)
    without = MLPPredictor(training=quick).fit(cohort, tiny_cohort(20, seed=1))
    assert not np.array_equal(with_replay.state()[1]["net.slots"], without.state()[1]["net.slots"])
