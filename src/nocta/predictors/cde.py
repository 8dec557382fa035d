"""A neural controlled differential equation over visit slots, and a predictor made of it.

Kidger et al. 2020, "Neural controlled differential equations for irregular time series"; the
encoder of risk-averse active sensing (`nocta.methods.ras.method`). Needs the extra `nocta[cde]`.

The state follows a path of what is known, `dz = f(z) dX`. Linear interpolation between two
acquisitions would leak the later one. So the path is *rectilinear*: between two slots time passes
while every value stays the same, and only then do the values jump. The state at slot `k` holds what
was acquired up to `k` and nothing else, and one pass along the path gives the state at every slot.

    slot        k-1            k                    k+1
    path        (t, x) -> (t', x) -> (t', x')  ->  ...
                   time passes   values jump
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nocta.core.errors import MissingExtraError
from nocta.predictors.encoding import InputEncoder
from nocta.predictors.neural import ClassWeight, NeuralPredictor, head_of_one_layer
from nocta.predictors.training import TrainingConfig

#: Length of the whole follow-up on the path's time axis, as in the authors' own task.
_DURATION = 2.0
_DECAY = 1e-3

#: State and path position after a slot, from which the next slot continues.
Carry = tuple[Tensor, Tensor]


class CdeEncoder(nn.Module):
    """Runs a controlled differential equation along what was acquired.

    The channels of the path are time, the last known inputs of every feature (values, which of
    them are known, levels of discrete columns, requested but unavailable), and how often each
    feature was requested, so that a repeated value is still an event.
    """

    owner: Tensor
    reveals: Tensor

    def __init__(self, encoder: InputEncoder, hidden: int) -> None:
        super().__init__()
        require_torchcde()
        self.n_features = encoder.n_features_
        self.time_step = _DURATION / encoder.n_times_
        self.register_buffer("owner", torch.from_numpy(encoder.slot_owner_), persistent=False)
        self.register_buffer(
            "reveals", torch.from_numpy(_revealing_entries(encoder)), persistent=False
        )
        self.n_channels = 1 + encoder.slot_width + encoder.n_features_
        self.hidden = hidden
        self.start = _mlp(self.n_channels + encoder.width - encoder.slot_width, hidden, hidden)
        self.field = _VectorField(hidden, self.n_channels)

    def states(self, inputs: Tensor) -> Tensor:
        """State after every slot, `(n, L, hidden)`, from inputs `(n, L, width)`."""
        slots, frame = self._cut(inputs)
        path = self._path(slots)  # (n, L, channels)
        first: Tensor = self.start(torch.cat([path[:, 0], frame[:, 0]], dim=-1))
        return self._integrate(path, first) if path.shape[1] > 1 else first[:, None]

    def advance(self, row: Tensor, carry: Carry | None) -> tuple[Tensor, Carry]:
        """State after one more slot, from its inputs `(n, width)` and where the last one ended."""
        slots, frame = self._cut(row)
        if carry is None:
            path = self._path(slots[:, None])[:, 0]
            state = self.start(torch.cat([path, frame], dim=-1))
            return state, (state, path)
        state, last = carry
        now = self._continue(last, slots)
        state = self._integrate(torch.stack([last, now], dim=1), state)[:, -1]
        return state, (state, now)

    def _cut(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return inputs[..., : len(self.owner)], inputs[..., len(self.owner) :]

    def _path(self, slots: Tensor) -> Tensor:
        """Time, last known inputs and number of requests at every slot, `(n, L, channels)`."""
        asked = slots @ self.reveals > 0  # (n, L, features)
        n, length, _ = asked.shape
        step = torch.arange(length)
        latest = torch.where(asked, step[:, None], -1).cummax(dim=1).values[..., self.owner]
        held = slots.gather(1, latest.clamp(min=0)) * (latest >= 0)
        time = (self.time_step * step)[None, :, None].expand(n, -1, -1)
        return torch.cat([time, held, asked.float().cumsum(dim=1)], dim=-1)

    def _continue(self, last: Tensor, slots: Tensor) -> Tensor:
        """The next point of the path, `(n, channels)`."""
        asked = slots @ self.reveals > 0
        n_held = len(self.owner)
        held = torch.where(asked[..., self.owner], slots, last[..., 1 : 1 + n_held])
        counts = last[..., 1 + n_held :] + asked
        return torch.cat([last[..., :1] + self.time_step, held, counts], dim=-1)

    def _integrate(self, path: Tensor, first: Tensor) -> Tensor:
        torchcde = require_torchcde()
        coefficients = torchcde.linear_interpolation_coeffs(path, rectilinear=0)
        states: Tensor = torchcde.cdeint(
            X=torchcde.LinearInterpolation(coefficients),
            func=self.field,
            z0=first,
            # Every second knot of the rectilinear path is a slot; the others are "just before".
            t=torch.arange(0.0, 2.0 * path.shape[1] - 1.0, 2.0),
            adjoint=False,
            method="rk4",
            options={"step_size": 1.0, "perturb": True},
        )
        return states


class _VectorField(nn.Module):
    """`f(z)` as `(hidden, channels)`, each entry within one of a slow decay of the state."""

    def __init__(self, hidden: int, n_channels: int) -> None:
        super().__init__()
        self.shape = (hidden, n_channels)
        self.body = nn.Sequential(_mlp(hidden, hidden, hidden * n_channels), nn.Tanh())

    def forward(self, time: Tensor, state: Tensor) -> Tensor:
        bounded: Tensor = self.body(state).unflatten(-1, self.shape)
        return bounded - _DECAY * state[..., None]


class CdeNet(nn.Module):
    """The encoder with a head of one hidden layer at every slot."""

    def __init__(self, encoder: InputEncoder, hidden: int, n_outputs: int, dropout: float) -> None:
        super().__init__()
        self.encoder = CdeEncoder(encoder, hidden)
        self.drop = nn.Dropout(dropout)
        self.head = head_of_one_layer(hidden, n_outputs)

    def states(self, inputs: Tensor) -> Tensor:
        return self.encoder.states(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.drop(self.states(inputs)))  # type: ignore[no-any-return]


@dataclass(eq=False, repr=False)
class CdePredictor(NeuralPredictor):
    """Neural controlled differential equation over visit slots: causal, one pass for every slot."""

    kind = "cde"
    net_: CdeNet = field(init=False, repr=False)
    hidden: int = 32  # size of the state
    dropout: float = 0.0  # on the input of the head
    training: TrainingConfig = TrainingConfig()  # noqa: RUF009 - frozen
    class_weight: ClassWeight = None
    calibrate: bool = True
    seed: int = 0

    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        return CdeNet(self.encoder_, self.hidden, n_classes, self.dropout)


def require_torchcde() -> ModuleType:
    """The module `torchcde`, or an error that says how to get it."""
    try:
        import torchcde
    except ImportError as error:
        raise MissingExtraError(
            "encoder='cde' needs torchcde, which is not installed. Install it with "
            "`pip install 'nocta[cde]'`, or use encoder='gru'."
        ) from error
    return torchcde  # type: ignore[no-any-return]


def _revealing_entries(encoder: InputEncoder) -> NDArray[np.float32]:
    """Which input entries show that a feature was requested, `(slot_width, n_features)`."""
    n_values, n_features = encoder.n_value_columns, encoder.n_features_
    entry = np.arange(encoder.slot_width)
    is_known = (entry >= n_values) & (entry < 2 * n_values)
    is_unavailable = entry >= encoder.slot_width - n_features
    owned = encoder.slot_owner_[:, None] == np.arange(n_features)
    return np.asarray(owned & (is_known | is_unavailable)[:, None], dtype=np.float32)


def _mlp(width: int, hidden: int, n_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.LeakyReLU(),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(),
        nn.Linear(hidden, n_outputs),
    )
