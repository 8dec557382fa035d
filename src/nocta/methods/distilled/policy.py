"""A policy distilled into one short tree per visit, which a person can read and approve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.predictor import Predictor
from nocta.core.rollout import Rollout
from nocta.methods.distilled.inputs import inputs_of, values_of
from nocta.methods.distilled.tree import Tree, learn_tree
from nocta.methods.fixed import first_affordable


@dataclass(eq=False)
class TreePolicy(Policy):
    """Asks the tree of each visit in turn and goes to the first at which anything is acquired.

    Args:
        trees: One per visit slot.
        predictor: Predicts from what was acquired; a policy, too.
    """

    trees: Sequence[Tree]
    predictor: Predictor | Policy  # type: ignore[assignment]  # it only has to predict

    def decide(self, observation: Observation) -> Decision:
        catalog = observation.catalog
        values, inputs = values_of(observation.history), inputs_of(catalog)
        visits = [tree.decide(values, inputs, catalog.names) for tree in self.trees]
        plans = np.stack(visits, axis=1) & observation.open_slots
        return first_affordable(observation, plans)


def distill(rollout: Rollout, catalog: Catalog, depth: int = 2, seed: int = 0) -> list[Tree]:
    """One tree per visit, learned from what a policy acquired there.

    A tree knows what was acquired at earlier visits, as the policy did. Subjects for whom the visit
    was passed over, or who had stopped, count as acquiring nothing there.
    """
    history, inputs = rollout.history, inputs_of(catalog)
    return [
        learn_tree(
            values_of(history.up_to(slot - 1)),
            history.requested[:, slot],
            inputs,
            catalog.names,
            depth,
            seed,
        )
        for slot in range(catalog.n_times)
    ]


def agreement(trees: Sequence[Tree], rollout: Rollout, catalog: Catalog) -> float:
    """Share of (subject, slot, feature) at which the trees do as the policy did."""
    history: History = rollout.history
    inputs = inputs_of(catalog)
    same = [
        tree.decide(values_of(history.up_to(slot - 1)), inputs, catalog.names)
        == history.requested[:, slot]
        for slot, tree in enumerate(trees)
    ]
    return float(np.mean(np.stack(same, axis=1)[:, catalog.open_slots]))
