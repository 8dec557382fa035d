"""Averages of estimators (section 5), and the form for few subjects: a shrunk committee.

The best of many plans by a noisy estimate is often the one with the luckiest error. Averaging
networks of different seeds halves the noise. Mixing the subject's own estimate with the population
mean, which is known far better, shrinks the rest. The share is chosen on validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.core.errors import ConfigError
from nocta.core.policy import Observation
from nocta.planning.estimators.amortized import AmortizedEstimator, PlanState
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.predictors.encoding import arrays_under


class EnsembleEstimator(SequentialEstimator):
    """The weighted mean of the expected losses of its members; weight zero drops a member."""

    def __init__(self, members: Sequence[SequentialEstimator], weights: Sequence[float]) -> None:
        given = np.asarray(weights, dtype=float)
        if len(members) != len(given) or (given < 0).any() or given.sum() == 0:
            raise ConfigError(
                f"weights is {list(weights)}; give one number of at least 0 for each of the "
                f"{len(members)} estimators, with a sum above 0."
            )
        used = np.flatnonzero(given)
        self.members = [members[i] for i in used.tolist()]
        self.weights = (given[used] / given.sum()).tolist()

    def start(self, observation: Observation) -> list[Any]:
        return [member.start(observation) for member in self.members]

    def branch(
        self, state: list[Any], time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[list[Any], Tensor]:
        total = torch.zeros(*parents.shape, len(subsets))
        states = []
        for member, weight, own in zip(self.members, self.weights, state, strict=True):
            new, loss = member.branch(own, time, parents, subsets)
            states.append(new)
            total += weight * loss
        return states, total


class PopulationEstimator(AmortizedEstimator):
    """Expected losses of a plan over all subjects with the same requests and context.

    The network sees no acquired value. To it the past is the first part of the plan: every start
    is before the first visit.
    """

    def _draw_starts(
        self, earliest: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        return np.full((len(earliest), 1), -1, dtype=np.int64)

    @torch.no_grad()
    def start(self, observation: Observation) -> PlanState:
        self._check_fitted()
        time = int(observation.time[0])
        frame = self.encoder_.encode_frame(observation.history.context)
        if time < 0:
            return PlanState(torch.zeros(len(observation), 1, self.hidden), frame)
        asked = torch.from_numpy(observation.history.requested).float()
        past = torch.cat([asked, frame], dim=2)[:, : time + 1]
        states, _ = self.net_.cell(F.relu(self.net_.plan(past)))
        return PlanState(states[:, -1:], frame)


class CommitteeEstimator(EnsembleEstimator):
    """The mean of individual networks and the mean of population networks, in given shares.

    There are no population networks if the mean is counted instead (`population_plug_in`).
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

        def members(kind: str, member: type[AmortizedEstimator]) -> list[Any]:
            parts = [arrays_under(arrays, f"{kind}{i}.") for i in range(len(config[kind]))]
            return [member.from_state(*own) for own in zip(config[kind], parts, strict=True)]

        individuals = members("individuals", AmortizedEstimator)
        populations = members("populations", PopulationEstimator)
        return cls(individuals, populations, config["individual_share"])
