"""A method and its policy: acquire the k cheapest features at every visit."""

from typing import Any, Self

from nocta import Cohort, Decision, Method, Observation, Policy, Predictor
from nocta.methods.fixed import first_affordable
from nocta.predictors.registry import predictor_state, restore_predictor


class CheapestFirstPolicy(Policy):
    def __init__(self, k: int, predictor: Predictor) -> None:
        self.k, self.predictor = k, predictor

    def decide(self, observation: Observation) -> Decision:
        rank = observation.catalog.costs.argsort(axis=1).argsort(axis=1)  # (L, M), 0 = cheapest
        return first_affordable(observation, observation.open_slots & (rank < self.k), rank)


class CheapestFirst(Method):
    """Acquires the k cheapest features at every visit."""

    name, shares_predictor = "cheapest-first", True  # `fit` gets the comparison's predictor

    def fit(self, train: Any, val: Any, *, predictor: Any = None, **_: Any) -> Self:
        self.predictor_ = predictor
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        return [{"n_features": k} for k in range(1, val.catalog.n_features + 1)][:n_points]

    def policy(self, setting: dict[str, Any]) -> Policy:
        return CheapestFirstPolicy(setting["n_features"], self.predictor_)

    def state(self) -> Any:  # with `from_state`, `nocta fit` saves the method
        return predictor_state(self.predictor_)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, Any]) -> Self:
        return cls().fit(None, None, predictor=restore_predictor(config, arrays))
