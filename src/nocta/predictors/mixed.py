"""A network and a linear model that predict together: the mean of their probabilities.

They make different errors. A network finds interactions; a linear model over summaries of the past
is robust against a few unusual subjects. With noisy labels their mean can be better than either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.predictors.neural import FitOptions
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingLog
from nocta.predictors.walking import WalkingNet


class MixedNet(nn.Module):
    """The logarithm of the mean probability of walking networks, each with its own temperature."""

    def __init__(self, members: Sequence[nn.Module], temperatures: Sequence[float]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.register_buffer("temperatures", torch.tensor(list(temperatures)))

    def forward(self, inputs: Tensor) -> Tensor:
        return self._mean([member(inputs) for member in self.members])

    def states(self, inputs: Tensor) -> Tensor:
        walked = [member.states(inputs) for member in self.members]  # type: ignore[operator]
        return torch.cat(walked, dim=-1)

    @property
    def state_width(self) -> int:
        return sum(member.state_width for member in self._walkers)

    def walk(self, inputs: Tensor) -> Tensor:
        return torch.cat([member.walk(inputs) for member in self._walkers], dim=-1)

    def extend(self, state: Tensor, inputs: Tensor) -> Tensor:
        pieces = zip(self._walkers, self._own(state), strict=True)
        return torch.cat([member.extend(own, inputs) for member, own in pieces], dim=-1)

    def read(self, state: Tensor) -> Tensor:
        pieces = zip(self._walkers, self._own(state), strict=True)
        return self._mean([member.read(own) for member, own in pieces])

    @property
    def _walkers(self) -> list[WalkingNet]:
        return cast("list[WalkingNet]", list(self.members))

    def _own(self, state: Tensor) -> tuple[Tensor, ...]:
        widths = [member.state_width for member in self._walkers]
        return tuple(torch.split(state, widths, dim=-1))

    def _mean(self, logits: Sequence[Tensor]) -> Tensor:
        heat = self.temperatures.tolist()  # type: ignore[operator]
        each = [F.log_softmax(out / t, dim=-1) for out, t in zip(logits, heat, strict=True)]
        return torch.stack(each).logsumexp(dim=0) - math.log(len(each))


class MixedPredictor(RecurrentPredictor):
    """A recurrent network and a linear model over summaries, in equal shares.

    The arguments are those of the recurrent network. With `calibrate`, temperatures of each part
    and of the mean are fitted.
    """

    kind = "mixed"
    net_: MixedNet  # type: ignore[assignment]

    @classmethod
    def of(cls, network: RecurrentPredictor, linear: SummaryPredictor, val_cohort: Cohort) -> Self:
        """The mean of two predictors that were fitted on the same subjects."""
        out = cls(**network.get_params(deep=False))
        out.encoder_, out.log_ = network.encoder_, network.log_
        out.n_classes_, out.n_times_ = network.n_classes_, network.n_times_
        out._mix(network, linear)
        open_slots = val_cohort.catalog.open_slots
        out._calibrate(*out._validation_set(val_cohort, open_slots))
        return out

    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        parts = (self._network(), self._linear())
        for part in parts:
            part.encoder_ = self.encoder_
        return MixedNet([part.build_net(width, n_classes, n_times) for part in parts], [1.0, 1.0])

    def _network(self) -> RecurrentPredictor:
        return RecurrentPredictor(**self.get_params(deep=False))

    def _linear(self) -> SummaryPredictor:
        return SummaryPredictor(
            class_weight=self.class_weight, calibrate=self.calibrate, seed=self.seed
        )

    def _mix(self, network: RecurrentPredictor, linear: SummaryPredictor) -> None:
        heat = [network.temperature_, linear.temperature_]
        self.net_ = MixedNet([network.net_, linear.net_], heat)
        self.net_.eval()

    def _train(self, train_cohort: Cohort, val_cohort: Cohort, how: FitOptions) -> None:
        network, linear = self._network(), self._linear()
        options: dict[str, Any] = {"requests": how.requests, "progress": how.progress}
        network.fit(train_cohort, val_cohort, **options, on_epoch=how.on_epoch)
        linear.fit(train_cohort, val_cohort, **options)
        self._mix(network, linear)
        self.log_: TrainingLog = network.log_
        open_slots = train_cohort.catalog.open_slots
        self._calibrate(*self._validation_set(val_cohort, open_slots))
