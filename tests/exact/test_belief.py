"""The Bayes filter: against enumeration, against simulation, and causal to the bit."""

import numpy as np
import pytest

from nocta.exact import label_posterior, random_task, synthetic_task


def random_observation(task, n, seed):
    rng = np.random.default_rng(seed)
    values, labels = task.sample(n, rng)
    return values, labels, rng.random(values.shape) < 0.4


@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_posterior_equals_enumeration(enumerate_worlds, seed, additive):
    task = random_task(np.random.default_rng(seed), additive=additive)
    worlds = enumerate_worlds(task, 0.0, "error")
    values, _, acquired = random_observation(task, 15, seed)
    posterior = label_posterior(task, values, acquired)
    for i in range(len(values)):
        for k in range(task.horizon):
            known = acquired[i, : k + 1]
            fits = (worlds.values[:, : k + 1] == values[i, : k + 1])[:, known].all(axis=1)
            mass = np.bincount(
                worlds.labels[fits, k], worlds.probability[fits], minlength=task.n_classes
            )
            np.testing.assert_allclose(posterior[i, k], mass / mass.sum(), atol=1e-12)


def test_everything_acquired_settles_the_label():
    task = synthetic_task()
    values, labels = task.sample(300, np.random.default_rng(0))
    posterior = label_posterior(task, values, np.ones_like(values, dtype=bool))
    np.testing.assert_array_equal(posterior.argmax(axis=2), labels)
    np.testing.assert_allclose(posterior.max(axis=2), 1.0)


def test_nothing_acquired_gives_the_known_accuracy():
    task = synthetic_task()
    values = np.full((1, 10, 2), np.nan)
    posterior = label_posterior(task, values, np.zeros_like(values, dtype=bool))
    assert posterior.max(axis=2).mean() == pytest.approx(0.3312, abs=5e-5)


def test_posterior_is_calibrated_on_samples():
    task = synthetic_task(n_useless=1)
    values, labels, acquired = random_observation(task, 6000, 5)
    posterior = label_posterior(task, values, acquired)
    confidence = posterior.max(axis=2).ravel()
    hit = (posterior.argmax(axis=2) == labels).ravel()
    for low in np.arange(0.2, 1.0, 0.2):
        bin_ = (confidence >= low) & (confidence < low + 0.2)
        assert hit[bin_].mean() == pytest.approx(confidence[bin_].mean(), abs=0.02)


def test_prediction_ignores_what_was_not_acquired_and_what_comes_later():
    task = synthetic_task()
    values, _, acquired = random_observation(task, 50, 1)
    before = label_posterior(task, values, acquired)
    other = np.where(acquired, values, np.nan)
    later = acquired.copy()
    other[:, 6:] = np.nan
    later[:, 6:] = True
    after = label_posterior(task, other, later)
    np.testing.assert_array_equal(before[:, :6], after[:, :6])


def test_one_subject_equals_the_batch():
    task = synthetic_task()
    values, _, acquired = random_observation(task, 30, 2)
    batch = label_posterior(task, values, acquired)
    np.testing.assert_array_equal(batch[7:8], label_posterior(task, values[7:8], acquired[7:8]))


def test_impossible_values_raise_or_are_ignored():
    task = synthetic_task()
    values = np.full((2, 10, 2), np.nan)
    acquired = np.zeros_like(values, dtype=bool)
    values[1, 0, 1], values[1, 1, 1], acquired[1, :2, 1] = 2, 2, True
    with pytest.raises(ValueError, match=r"1 of 2 subjects .* at time 1 .* subject 1"):
        label_posterior(task, values, acquired)
    ignored = label_posterior(task, values, acquired, impossible="ignore")
    acquired[1, 1, 1] = False
    np.testing.assert_array_equal(ignored, label_posterior(task, values, acquired))


@pytest.mark.parametrize("number", [0.5, 3.0, -1.0, np.inf])
def test_numbers_outside_the_categories_are_impossible(number):
    task = synthetic_task()
    values = np.full((1, 10, 2), number)
    with pytest.raises(ValueError, match="cannot produce"):
        label_posterior(task, values, np.ones_like(values, dtype=bool))


def test_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"\(n_subjects, 10, 2\)"):
        label_posterior(synthetic_task(), np.zeros((3, 9, 2)), np.zeros((3, 9, 2), dtype=bool))
