"""An independent solver for tiny tasks: it lists every possible world and merges nothing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nocta.exact import FiniteTask, build_graph, synthetic_task


class Worlds:
    """All (state path, feature values) of a task, with probabilities, labels and costs."""

    def __init__(self, task: FiniteTask, cost_weight: float, loss: str) -> None:
        self.horizon, self.cost_weight, self.loss = task.horizon, cost_weight, loss
        self.costs = task.cost_table()
        self.actions = list(product([False, True], repeat=task.n_features))
        sizes = [e.shape[-1] for e in task.emissions]
        probability, values, labels = [], [], []
        for path in product(range(task.n_states), repeat=task.horizon):
            mass = task.initial[path[0]]
            for t in range(1, task.horizon):
                mass *= task.transition_at(t - 1)[path[t - 1], path[t]]
            if mass == 0:
                continue
            rule = task.state_labels if task.increments is None else task.increments
            shown = rule[list(path)]
            options = [
                [j for j in range(k) if task.emission_at(m, t)[path[t], j] > 0]
                for t in range(task.horizon)
                for m, k in enumerate(sizes)
            ]
            for flat in product(*options):
                table = np.array(flat).reshape(task.horizon, task.n_features)
                chance = mass
                for t, m in np.ndindex(*table.shape):
                    chance *= task.emission_at(m, t)[path[t], table[t, m]]
                probability.append(chance)
                values.append(table)
                labels.append(shown if task.increments is None else shown.cumsum())
        self.probability, self.values = np.array(probability), np.array(values)
        self.labels = np.array(labels)
        self.root = np.arange(len(self.probability))

    def groups(self, worlds, t, action):
        seen = self.values[worlds, t][:, list(action)]
        _, which = np.unique(seen, axis=0, return_inverse=True)
        return [worlds[which.reshape(-1) == g] for g in range(which.max() + 1)]

    def reward(self, group, t, action):
        """Unnormalized reward less weighted cost at one time."""
        mass = np.bincount(self.labels[group, t], self.probability[group])
        total = mass.sum()
        price = self.cost_weight * self.costs[t][list(action)].sum() * total
        if self.loss == "error":
            return mass.max() - price
        mass = mass[mass > 0]
        return (mass * np.log(mass / total)).sum() - price

    def optimal(self, worlds, t=0, rounds=99):
        if t == self.horizon:
            return 0.0
        return max(
            sum(
                self.reward(g, t, a) + self.optimal(g, t + 1, rounds - any(a))
                for g in self.groups(worlds, t, a)
            )
            for a in self.actions
            if rounds or not any(a)
        )

    def plan_value(self, worlds, t, plan):
        if t == self.horizon:
            return 0.0
        return sum(
            self.reward(g, t, plan[0]) + self.plan_value(g, t + 1, plan[1:])
            for g in self.groups(worlds, t, plan[0])
        )

    def best_plan(self, worlds, t=0, rounds=99):
        plans = [
            p
            for p in product(self.actions, repeat=self.horizon - t)
            if sum(any(a) for a in p) <= rounds
        ]
        return max(((self.plan_value(worlds, t, p), p) for p in plans), key=lambda pair: pair[0])

    def replanned(self, worlds, t=0):
        if t == self.horizon:
            return 0.0
        action = self.best_plan(worlds, t)[1][0]
        return sum(
            self.reward(g, t, action) + self.replanned(g, t + 1)
            for g in self.groups(worlds, t, action)
        )


@pytest.fixture(scope="session")
def enumerate_worlds():
    return Worlds


@pytest.fixture(scope="session")
def short_graph():
    """The paper's task, cut to six times."""
    return build_graph(synthetic_task(horizon=6))


@pytest.fixture(scope="session")
def paper_graph():
    return build_graph(synthetic_task())
