"""The optimum: against enumeration, the known values, and simulated subjects."""

import numpy as np
import pytest

from nocta.exact import (
    accuracy_at,
    build_graph,
    constant_policy,
    label_posterior,
    optimal_frontier,
    optimal_policy,
    optimal_values,
    random_task,
    synthetic_task,
)


def roll_out(task, policy, n, seed):
    """Mean cost and share of correct labels of sampled subjects, and their standard errors."""
    values, labels = task.sample(n, np.random.default_rng(seed))
    acquired = np.zeros(values.shape, dtype=bool)
    now = np.full(n, -1)
    for _ in range(task.horizon):
        shown = np.where(acquired, values, np.nan)
        times, features = policy.next_acquisitions(shown, acquired, now)
        going = np.flatnonzero(times < task.horizon)
        assert np.all(times[going] > now[going])
        acquired[going, times[going]] = features[going]
        now = np.where(times < task.horizon, times, now)
    hits = (label_posterior(task, values, acquired).argmax(axis=2) == labels).mean(axis=1)
    costs = (acquired * task.cost_table()).sum(axis=(1, 2))
    return [(x.mean(), x.std() / np.sqrt(n) + 1e-12) for x in (costs, hits)]


@pytest.mark.parametrize("loss", ["error", "cross-entropy"])
@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_value_equals_enumeration(enumerate_worlds, seed, additive, loss):
    task = random_task(np.random.default_rng(seed), additive=additive)
    graph = build_graph(task)
    for weight in (0.05, 0.3):
        worlds = enumerate_worlds(task, weight, loss)
        expected = worlds.optimal(worlds.root)
        assert optimal_values(graph, weight, loss)[0][0] == pytest.approx(expected, abs=1e-9)
        followed = optimal_policy(graph, weight, loss).values(weight, loss)[0][0]
        assert followed == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_value_in_few_rounds_equals_enumeration(enumerate_worlds, rounds):
    task = synthetic_task(horizon=3, costs=(1.0, 0.5))
    worlds = enumerate_worlds(task, 0.2, "error")
    found = optimal_values(build_graph(task), 0.2, "error", n_rounds=rounds)[0][0]
    assert found == pytest.approx(worlds.optimal(worlds.root, rounds=rounds), abs=1e-9)


def test_merging_beliefs_loses_nothing():
    merged = build_graph(synthetic_task(horizon=5))
    # The same task with tables that differ from time to time by nothing but their description.
    task = synthetic_task(horizon=5)
    varying = type(task)(
        initial=task.initial,
        transition=np.stack([task.transition] * 4),
        emissions=tuple(np.stack([e] * 5) for e in task.emissions),
        costs=task.cost_table(),
        horizon=5,
        n_classes=11,
        increments=task.increments,
    )
    other = build_graph(varying)
    assert [v.n_nodes for v in merged.levels] == [v.n_nodes for v in other.levels]
    for weight in (0.1, 0.4):
        one, two = (optimal_policy(g, weight).evaluate() for g in (merged, other))
        assert one == pytest.approx(two, abs=1e-9)


def test_sum_and_state_label_agree():
    """A running sum written into the state gives the same optimum as the additive rule."""
    task = synthetic_task(n_digits=2, n_starts=2, horizon=3)
    width = 4
    state, total = np.divmod(np.arange(4 * width), width)
    into = task.increments[state]  # of the state moved to
    moves = task.transition[state][:, state] * (total == total[:, None] + into)
    moves[np.arange(16), np.arange(16)] += 1 - moves.sum(axis=1)  # sums beyond the horizon
    written = type(task)(
        initial=task.initial[state] * (total == into),
        transition=moves,
        emissions=tuple(e[state] for e in task.emissions),
        costs=task.costs,
        horizon=3,
        n_classes=width,
        state_labels=total,
    )
    for weight in (0.1, 0.3):
        one, two = (optimal_policy(build_graph(t), weight).evaluate() for t in (task, written))
        assert one == pytest.approx(two, abs=1e-9)


@pytest.mark.parametrize("loss", ["error", "cross-entropy"])
def test_simulation_agrees_with_evaluation(short_graph, loss):
    policy = optimal_policy(short_graph, 0.25 if loss == "error" else 0.6, loss)
    expected = policy.evaluate()
    (cost, cost_error), (hit, hit_error) = roll_out(short_graph.task, policy, 8000, seed=1)
    assert 0 < expected.cost < 12
    assert cost == pytest.approx(expected.cost, abs=4 * cost_error)
    assert hit == pytest.approx(expected.accuracy, abs=4 * hit_error)


def test_no_cost_weight_reaches_everything_for_less(short_graph):
    best = optimal_policy(short_graph, 0.0).evaluate()
    assert best.accuracy == pytest.approx(1.0)
    assert best.cost < constant_policy(short_graph, [3] * 6).evaluate().cost == 12


def test_frontier_is_a_concave_hull_over_all_policies(short_graph):
    frontier = optimal_frontier(short_graph)
    slopes = np.diff(frontier.accuracy) / np.diff(frontier.cost)
    assert frontier.cost[0] == 0
    assert np.all(slopes > 0)
    assert np.all(np.diff(slopes) < 0)
    for weight in np.linspace(0.01, 0.8, 25):
        found = optimal_policy(short_graph, weight).evaluate()
        best = accuracy_at(frontier, found.cost)
        assert best - 1e-9 <= found.accuracy + 1e-5
        assert found.accuracy <= best + 1e-5
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = constant_policy(short_graph, rng.integers(0, 4, 6).tolist()).evaluate()
        assert found.accuracy <= accuracy_at(frontier, found.cost) + 1e-5


def test_vertices_carry_their_own_cost_weight(short_graph):
    for point in optimal_frontier(short_graph):
        found = optimal_policy(short_graph, point.cost_weight).evaluate()
        assert (found.cost, found.accuracy) == (point.cost, point.accuracy)


def test_accuracy_is_interpolated_and_flat_beyond(short_graph):
    frontier = optimal_frontier(short_graph)
    middle = frontier.cost[:2].mean()
    assert accuracy_at(frontier, middle) == pytest.approx(frontier.accuracy[:2].mean())
    assert accuracy_at(frontier, 99.0) == frontier.accuracy[-1]


def test_useless_features_change_nothing():
    plain, noisy = (optimal_frontier(synthetic_task(horizon=4, n_useless=k)) for k in (0, 1))
    np.testing.assert_allclose(plain.cost, noisy.cost, atol=1e-9)
    np.testing.assert_allclose(plain.accuracy, noisy.accuracy, atol=1e-9)


def test_policy_stops_and_stays_ahead(short_graph):
    policy = optimal_policy(short_graph, 100.0)
    values, acquired = np.full((6, 2), np.nan), np.zeros((6, 2), dtype=bool)
    assert policy.next_acquisition(values, acquired, after=-1) is None
    keen = optimal_policy(short_graph, 0.01)
    assert keen.next_acquisition(values, acquired, after=-1) == (0, (0, 1))
    assert keen.next_acquisition(values, acquired, after=5) is None


def test_decision_ignores_unacquired_and_later_values(short_graph):
    policy = optimal_policy(short_graph, 0.2)
    rng = np.random.default_rng(0)
    values, _ = short_graph.task.sample(200, rng)
    acquired = rng.random(values.shape) < 0.5
    now = rng.integers(-1, 6, 200)
    one = policy.next_acquisitions(values, acquired, now)
    past = np.arange(6)[None, :, None] <= now[:, None, None]
    other = np.where(acquired & past, values, 9.0)
    two = policy.next_acquisitions(other, acquired, now)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_impossible_history_raises_or_is_ignored(short_graph):
    policy = optimal_policy(short_graph, 0.1)
    values, acquired = np.full((1, 6, 2), np.nan), np.zeros((1, 6, 2), dtype=bool)
    values[0, 0], acquired[0, 0] = (1, 7), True
    with pytest.raises(ValueError, match="at time 0 that this task cannot produce"):
        policy.next_acquisitions(values, acquired, 0)
    ignored = policy.next_acquisitions(values, acquired, 0, impossible="ignore")
    acquired[:] = False
    unseen = policy.next_acquisitions(values, acquired, 0)
    assert ignored[0] == unseen[0]
    np.testing.assert_array_equal(ignored[1], unseen[1])


def test_too_large_tasks_are_refused():
    with pytest.raises(ValueError, match="more than max_beliefs=100"):
        build_graph(synthetic_task(horizon=6), max_beliefs=100)


def test_progress_is_shown_only_when_asked(capsys):
    optimal_frontier(synthetic_task(horizon=3))
    assert capsys.readouterr().err == ""
    optimal_frontier(synthetic_task(horizon=3), progress=True)
    shown = capsys.readouterr().err
    assert "beliefs at time" in shown
    assert "frontier" in shown


@pytest.mark.slow
def test_paper_task_reaches_the_known_values(paper_graph):
    for weight, cost, accuracy in [(0.5, 8.952, 0.8451), (0.1, 13.724, 1.0), (20.0, 0.0, 0.3312)]:
        found = optimal_policy(paper_graph, weight).evaluate()
        assert found.cost == pytest.approx(cost, abs=5e-4)
        assert found.accuracy == pytest.approx(accuracy, abs=5e-5)


@pytest.mark.slow
def test_paper_frontier_passes_through_the_known_points(paper_graph):
    frontier = optimal_frontier(paper_graph)
    known = [(8.952, 0.8451), (10.242, 0.9061), (11.549, 0.9579), (12.719, 0.9888), (13.724, 1.0)]
    for cost, accuracy in known:
        assert accuracy_at(frontier, cost) == pytest.approx(accuracy, abs=1e-4)
