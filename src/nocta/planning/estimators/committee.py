"""Amortized estimators for few subjects: several networks, shrunk toward the population mean.

The best of many plans by a noisy estimate is often the one with the luckiest error. Averaging
networks of different seeds halves the noise. Mixing the subject's own estimate with the population
mean shrinks the rest. The share is chosen on validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import NDArray

from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.ensemble import EnsembleEstimator
from nocta.planning.estimators.population import PopulationEstimator
from nocta.predictors.neural import arrays_under


class CommitteeEstimator(EnsembleEstimator):
    """The mean of individual networks and the mean of population networks, in given shares.

    Args:
        individuals: Networks that see what was acquired.
        populations: Networks that see only what was requested; none if the mean is counted instead
            (`nocta.planning.estimators.population_plug_in`).
        individual_share: Weight of the former, from 0 to 1.
    """

    def __init__(
        self,
        individuals: Sequence[AmortizedEstimator],
        populations: Sequence[PopulationEstimator],
        individual_share: float = 0.5,
    ) -> None:
        self.individuals, self.populations = tuple(individuals), tuple(populations)
        self.individual_share = individual_share
        own = individual_share / len(self.individuals)
        common = (1 - individual_share) / max(len(self.populations), 1)
        weights = [own] * len(self.individuals) + [common] * len(self.populations)
        super().__init__([*self.individuals, *self.populations], weights)

    def with_share(self, individual_share: float) -> CommitteeEstimator:
        """The same networks in other shares."""
        return CommitteeEstimator(self.individuals, self.populations, individual_share)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain configuration and arrays that restore the estimator."""
        config: dict[str, Any] = {"individual_share": self.individual_share}
        arrays: dict[str, NDArray[Any]] = {}
        for kind in ("individuals", "populations"):
            states = [member.state() for member in getattr(self, kind)]
            config[kind] = [own for own, _ in states]
            for i, (_, own) in enumerate(states):
                arrays |= {f"{kind}{i}.{name}": array for name, array in own.items()}
        return config, arrays

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Inverse of `state`."""
        individuals = [
            AmortizedEstimator.from_state(own, arrays_under(arrays, f"individuals{i}."))
            for i, own in enumerate(config["individuals"])
        ]
        populations = [
            PopulationEstimator.from_state(own, arrays_under(arrays, f"populations{i}."))
            for i, own in enumerate(config["populations"])
        ]
        return cls(individuals, populations, config["individual_share"])
