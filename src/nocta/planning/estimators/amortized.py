"""NOCT-Amortized: a network that predicts the loss of a plan from what is known now.

Paper: section 3.5, equations 7 to 9, with the loss-only target of appendix B.3. This is the form
of the `default` preset: an encoder reads what was acquired up to `t`, then a decoder reads the plan
and gives the expected loss at each later time. Plans with a common prefix share its computation,
and cost enters only when plans are ranked. The published form, one number from a plain network, is
`nocta.planning.estimators.amortized_mlp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.policy import Observation
from nocta.core.random_plans import random_requests
from nocta.planning.estimators.network import FittedNetwork
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.objective import PlanningLoss
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.gru import combine, input_half, state_half
from nocta.predictors.neural import head_of_one_layer
from nocta.predictors.training import TrainingConfig, train

#: The losses that every fit learns to predict; a policy plans with one of them.
LOSSES: tuple[PlanningLoss, ...] = ("cross-entropy", "error")
#: Minimum number of validation rows (subject, request) for early stopping; up to twice as many.
_VALIDATION_ROWS = 600
#: Draws, for training subjects, what is requested, `(b, L, M)`, and the slot `(b,)` after which the
#: request no longer depends on values seen later: only that part is a plan.
Requests = Callable[
    [NDArray[np.int64], np.random.Generator], tuple[NDArray[np.bool_], NDArray[np.int64]]
]


class PlanNet(nn.Module):
    """One recurrent unit that first reads what was acquired, then what is planned."""

    def __init__(self, width: int, slot_width: int, n_features: int, hidden: int, dropout: float):
        super().__init__()
        self.read = nn.Linear(width, hidden)
        self.plan = nn.Linear(n_features + width - slot_width, hidden)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.head = head_of_one_layer(hidden, len(LOSSES))

    def forward(self, history: Tensor, plan: Tensor, planned: Tensor) -> Tensor:
        """Expected losses at every slot, `(n, s, L, n_losses)`; valid after the current slot.

        `history`, `(n, L, width)`, is what was acquired; `plan` what is planned, with slot and
        context; `planned`, `(n, s, L)`, is true after the current slot of each start.
        """
        mode = planned[..., None]
        steps = torch.where(mode, self.plan(plan)[:, None], self.read(history)[:, None])
        out, _ = self.cell(self.drop(F.relu(steps.flatten(0, 1))))
        return self.losses(out.view(*steps.shape))

    def encode(self, history: Tensor) -> Tensor:
        out, _ = self.cell(F.relu(self.read(history)))
        return out  # type: ignore[no-any-return]

    def losses(self, state: Tensor) -> Tensor:
        return self.head(self.drop(state))  # type: ignore[no-any-return]


class PlanState(NamedTuple):
    """State of the recurrent unit after a prefix, and its remaining inputs."""

    hidden: Tensor  # (n, q, hidden)
    frame: Tensor  # (n, L, frame): slot and context


@dataclass(eq=False, repr=False)
class AmortizedEstimator(FittedNetwork, SequentialEstimator):
    """Predicts the expected loss of any plan, time by time, in one pass.

    Choose it for fast decisions. One fit serves every cost weight, every budget, and both planning
    losses.
    """

    net_: PlanNet = field(init=False, repr=False)
    hidden: int = 64  # units of encoder and decoder
    dropout: float = 0.0  # dropout of the inputs of the encoder and of the head
    n_starts: int = 3  # number of current times drawn per subject and training step
    training: TrainingConfig = TrainingConfig(epochs=120)  # noqa: RUF009 - frozen
    loss: PlanningLoss = "cross-entropy"  # the loss that scores plans; may be changed after the fit
    seed: int = 0

    def fit(
        self,
        train_cohort: Cohort,
        train_targets: LossTargets,
        val_cohort: Cohort,
        val_targets: LossTargets,
        *,
        requests: Requests | None = None,
        warm_start: bool = False,
        progress: bool = False,
    ) -> Self:
        """Regress the losses of training subjects under random requests cut at random times.

        `requests` draws other requests for the training subjects; `warm_start` continues from the
        current weights.
        """
        open_slots = train_cohort.catalog.open_slots
        draw = requests or random_plans(open_slots)
        rng, val_rng = (np.random.default_rng(self.seed + i) for i in (0, 1))
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            if not (warm_start and hasattr(self, "net_")):
                self.encoder_ = InputEncoder().fit(train_cohort)
                self.net_ = self._build()
            data, val_data = (EncodedCohort(self.encoder_, c) for c in (train_cohort, val_cohort))
            # If there are few validation subjects, each is used with several requests.
            val_index = np.tile(np.arange(len(val_data)), max(1, _VALIDATION_ROWS // len(val_data)))
            val_asked = random_requests(len(val_index), open_slots, val_rng)
            val_losses = val_targets(val_index, val_asked)
            val_starts = self._draw_starts(np.full(len(val_index), -1), val_rng)
            held_out = (val_data, val_index, val_asked, val_losses, val_starts)

            def batch_loss(index: NDArray[np.int64]) -> Tensor:
                asked, earliest = draw(index, rng)
                starts = self._draw_starts(earliest, rng)
                return self._regression_loss(
                    data, index, asked, train_targets(index, asked), starts
                )

            self.log_ = train(
                self.net_,
                len(data),
                batch_loss,
                lambda: float(self._regression_loss(*held_out)),
                self.training,
                rng,
                description="amortized estimator",
                progress=progress,
            )
        return self

    def _build(self) -> PlanNet:
        e = self.encoder_
        return PlanNet(e.width, e.slot_width, e.n_features_, self.hidden, self.dropout)

    def _draw_starts(
        self, earliest: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        last = self.encoder_.n_times_ - 1
        return rng.integers(earliest[:, None], last, size=(len(earliest), self.n_starts))

    def _regression_loss(
        self,
        data: EncodedCohort,
        index: NDArray[np.int64],
        asked: NDArray[np.bool_],
        losses: Tensor,
        starts: NDArray[np.int64],
    ) -> Tensor:
        """Squared error of the expected losses after each start, averaged over times."""
        planned = torch.arange(asked.shape[1]) > torch.from_numpy(starts)[..., None]  # (b, s, L)
        plan = torch.cat([torch.from_numpy(asked), data.frame[torch.as_tensor(index)]], dim=2)
        expected: Tensor = self.net_(data.inputs(index, asked), plan, planned)
        error = ((expected - losses[:, None]) ** 2).sum(-1)  # (b, s, L)
        return (error * planned).sum() / planned.sum().clamp(min=1)

    @torch.no_grad()
    def start(self, observation: Observation) -> PlanState:
        self._check_fitted()
        time = int(observation.time[0])
        inputs = self.encoder_.encode(observation.history)
        frame = inputs[:, :, self.encoder_.slot_width :]
        if time < 0:
            return PlanState(torch.zeros(len(observation), 1, self.hidden), frame)
        return PlanState(self.net_.encode(inputs[:, : time + 1])[:, -1:], frame)

    @torch.no_grad()
    def branch(
        self, state: PlanState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[PlanState, Tensor]:
        n, s, net = len(parents), len(subsets), self.net_
        parent = state.hidden.gather(1, parents[..., None].expand(-1, -1, self.hidden))
        frame = state.frame[:, time, None].expand(n, s, -1)
        plan = torch.cat([subsets.float().expand(n, s, -1), frame], dim=2)
        from_input = input_half(net.cell, F.relu(net.plan(plan)))[:, None]  # (n, 1, s, 3h)
        from_state = state_half(net.cell, parent)[:, :, None]  # (n, q, 1, 3h)
        hidden = combine(from_input, from_state, parent[:, :, None])  # (n, q, s, h)
        loss = net.losses(hidden)[..., LOSSES.index(self.loss)]
        return PlanState(hidden.flatten(1, 2), state.frame), loss


def random_plans(open_slots: NDArray[np.bool_]) -> Requests:
    """Random requests, which are plans from the first slot on."""
    return lambda index, rng: (
        random_requests(len(index), open_slots, rng),
        np.full(len(index), -1),
    )
