"""The mean loss of a plan over the population: an amortized network that sees no acquired value.

It reads only what was requested and the free context. With few subjects, this mean is known far
better than the loss of a single subject, so the individual estimate is shrunk toward it
(`nocta.planning.estimators.committee`).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from nocta.core.policy import Observation
from nocta.planning.estimators.amortized import AmortizedEstimator, PlanState


class PopulationEstimator(AmortizedEstimator):
    """Expected losses of a plan over all subjects with the same requests and context.

    To the network the past is the first part of the plan: every start is before the first visit.
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
