"""A method and its policy: acquire the k cheapest features at every visit."""

from __future__ import annotations

from typing import Any, Self

from nocta import Cohort, Decision, Method, Observation, Policy, Predictor
from nocta.methods.contract import require_predictor
from nocta.methods.fixed import first_affordable


class CheapestFirstPolicy(Policy):
    def __init__(self, n_features: int, predictor: Predictor) -> None:
        self.n_features = n_features
        self.predictor = predictor  # makes the predictions

    def decide(self, observation: Observation) -> Decision:
        rank = observation.catalog.costs.argsort(axis=1).argsort(axis=1)  # (L, M), 0 = cheapest
        plans = observation.open_slots & (rank < self.n_features)  # (n, L, M)
        return first_affordable(observation, plans, rank)  # respects hard budgets


class CheapestFirst(Method):
    """Acquires the k cheapest features at every visit."""

    name = "cheapest-first"
    shares_predictor = True  # `fit` gets the predictor of the comparison

    def fit(self, train: Cohort, val: Cohort, *, predictor: Any = None, **_: Any) -> Self:
        self.predictor_ = require_predictor(self, predictor)
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        return [{"n_features": k} for k in range(1, val.catalog.n_features + 1)][:n_points]

    def policy(self, setting: dict[str, Any]) -> Policy:
        return CheapestFirstPolicy(setting["n_features"], self.predictor_)
