"""The networks of active sensing, and the policy that acts by them; see `method`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Beta
from torch.nn import functional as F

from nocta.core.errors import ConfigError
from nocta.core.policy import Decision, Observation, Policy
from nocta.methods.fixed import first_affordable
from nocta.predictors.cde import CdeEncoder
from nocta.predictors.encoding import InputEncoder
from nocta.predictors.gru import combine, input_half, state_half
from nocta.predictors.neural import NeuralPredictor

EncoderKind = Literal["gru", "cde"]
#: Concentration of the Beta distribution: at least, and at most while training.
_CONCENTRATION = (10.0, 100.0)
_EPS = 1e-4
#: Where the logits begin: to acquire a feature, and to come back soon.
_EAGER = 2.0


@dataclass(frozen=True)
class Intervals:
    """The visit grid, and which waiting times are allowed on it, in the unit of `slot_times`."""

    slot_times: NDArray[np.float64]
    shortest: float
    longest: float

    def __post_init__(self) -> None:
        if not 0 <= self.shortest <= self.longest or not np.isfinite(self.longest):
            raise ConfigError(
                f"The intervals between visits are {self.shortest:g} to {self.longest:g}; give "
                f"two numbers of at least 0, the shorter first."
            )

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to decide."""
        return self.shortest == self.longest

    def next_slot(self, time: NDArray[np.int64], share: NDArray[np.floating]) -> NDArray[np.int64]:
        """The first later slot at or after the interval that lies `share` of the way, `(n,)`.

        Before the first visit (`time` is -1) that is the first slot; the number of slots if the
        interval leads beyond the last one.

        Example:
            >>> grid = Intervals(np.arange(10.0), shortest=0.0, longest=5.0)
            >>> grid.next_slot(np.array([-1, 0, 0, 7]), np.array([0.9, 0.1, 0.9, 0.9]))
            array([ 0,  1,  5, 10])
        """
        now = np.maximum(time, 0)
        wait = self.shortest + (self.longest - self.shortest) * np.asarray(share, dtype=float)
        slack = 1e-6 * np.ptp(self.slot_times)
        due = np.searchsorted(self.slot_times, self.slot_times[now] + wait - slack)
        return np.asarray(np.where(time < 0, 0, np.maximum(due, now + 1)), dtype=np.int64)


def landing_slots(open_slots: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each slot, and for the end, the first from there on at which anything is open.

    Example:
        >>> landing_slots(np.array([[True], [False], [True], [False]]))
        array([0, 2, 2, 4, 4])
    """
    usable = np.append(open_slots.any(axis=1), True)
    return np.array([k + int(usable[k:].argmax()) for k in range(len(usable))], dtype=np.int64)


class CausalEncoder(Protocol):
    """A state after every slot, in one pass or slot by slot."""

    def states(self, inputs: Tensor) -> Tensor:
        """`(n, L, width)` to `(n, L, hidden)`."""

    def advance(self, row: Tensor, carry: Any) -> tuple[Tensor, Any]:
        """State after one more slot, and what the one after it continues from."""


class GruEncoder(nn.Module):
    """A gated recurrent unit over slots."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Linear(width, hidden)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)

    def states(self, inputs: Tensor) -> Tensor:
        out, _ = self.cell(F.relu(self.embed(inputs)))
        return out  # type: ignore[no-any-return]

    def advance(
        self, row: Tensor, carry: tuple[Tensor, ...] | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        # In two halves by hand: a call of the unit for one slot takes several times as long.
        before = row.new_zeros(len(row), self.cell.hidden_size) if carry is None else carry[0]
        from_input = input_half(self.cell, F.relu(self.embed(row)))
        state = combine(from_input, state_half(self.cell, before), before)
        return state, (state,)


@dataclass(frozen=True)
class Action:
    """What the actor makes of a state; all have the state's leading axes."""

    features: Tensor  # (..., M) probability of acquiring each feature at the next visit
    share: Tensor  # (...) mode of the interval's distribution, from 0 (shortest) to 1 (longest)
    concentration: Tensor  # (...) how sharply the distribution is centered there

    @property
    def interval(self) -> Beta:
        """Distribution of the interval's share; its mode is `share`."""
        low = 1 + self.concentration * self.share
        return Beta(low, 2 + self.concentration - low, validate_args=False)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw features `(..., M)` and the interval's share `(...)`."""
        features = torch.rand(self.features.shape, generator=generator) < self.features
        # A Beta draw from two Gamma draws: torch's own sampler takes no generator.
        beta = self.interval
        ends = torch.stack([beta.concentration1, beta.concentration0])
        gammas = torch._standard_gamma(ends, generator=generator)
        return features, (gammas[0] / gammas.sum(dim=0)).clamp(_EPS, 1 - _EPS)

    def modes(self) -> tuple[Tensor, Tensor]:
        """The most probable features `(..., M)` and interval's share `(...)`."""
        return self.features > 0.5, self.share

    def log_prob(self, features: Tensor, share: Tensor, mattered: Tensor) -> tuple[Tensor, Tensor]:
        """Log-density of the features that `mattered` and of the interval's share, `(...)` each."""
        chosen = torch.where(features, self.features, 1 - self.features).clamp(min=_EPS)
        by_interval: Tensor = self.interval.log_prob(share)  # type: ignore[no-untyped-call]
        return (chosen.log() * mattered).sum(dim=-1), by_interval

    def doubt(self, mattered: Tensor) -> Tensor:
        """Entropy of the coins for the features that `mattered`, `(...)`."""
        yes = self.features.clamp(_EPS, 1 - _EPS)
        entropy = -(torch.xlogy(yes, yes) + torch.xlogy(1 - yes, 1 - yes))
        return (entropy * mattered).sum(dim=-1)


class ActorCritic(nn.Module):
    """Encoder, actor (features and interval) and critic, one set of weights each.

    Its inputs have a row more than there are slots: the first stands for the time before the
    first visit, when nothing but the context is known (`before_first_visit`).
    """

    def __init__(self, encoder: InputEncoder, hidden: int, kind: EncoderKind) -> None:
        super().__init__()
        self.encoder: CausalEncoder = (
            CdeEncoder(encoder, hidden) if kind == "cde" else GruEncoder(encoder.width, hidden)
        )
        self.features = _head(hidden, encoder.n_features_)
        self.interval = _head(hidden, 2)
        self.critic = _head(hidden, 1)
        # Learning starts from nearly everything at short intervals, and finds out what can go.
        nn.init.constant_(self.features[-1].bias, _EAGER)  # type: ignore[arg-type]
        nn.init.constant_(self.interval[-1].bias[1:], -_EAGER)  # type: ignore[index]

    def act(self, states: Tensor, floor: float = 0.0) -> Action:
        """The action at each state; no probability or share comes closer to 0 or 1 than `floor`."""
        spread, center = self.interval(states).unbind(dim=-1)
        low, high = _CONCENTRATION
        return Action(
            features=_keep_away(torch.sigmoid(self.features(states)), floor),
            share=_keep_away(torch.sigmoid(center), floor),
            concentration=(low + spread.square()).clamp(max=high),
        )

    def value(self, states: Tensor) -> Tensor:
        """Expected (scaled) cost from each state on."""
        return self.critic(states).squeeze(-1)  # type: ignore[no-any-return]


@dataclass(eq=False)
class SensingPolicy(Policy):
    """Acts by the modes of a trained actor: likely features, the likeliest interval."""

    predictor: NeuralPredictor
    net: ActorCritic
    intervals: Intervals

    def decide(self, observation: Observation) -> Decision:
        probability, share = self._act(observation)
        n, n_times = len(observation), observation.catalog.n_times
        due = self.intervals.next_slot(observation.time, share)
        target = landing_slots(observation.catalog.open_slots)[due]
        plans = np.zeros((n, n_times, observation.catalog.n_features), dtype=bool)
        coming = np.flatnonzero(target < n_times)
        plans[coming, target[coming]] = probability[coming] > 0.5
        plans &= observation.open_slots
        decision = first_affordable(observation, plans, -probability[:, None])
        # A visit at which nothing is wanted is still a visit: the actor is asked again there.
        idle = ~plans.any(axis=(1, 2)) & (target < n_times)
        return Decision(np.where(idle, target, decision.time), decision.features)

    @torch.no_grad()
    def _act(self, observation: Observation) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        inputs = before_first_visit(
            self.predictor.encode(observation.history), self.predictor.encoder_
        )
        states = self.net.encoder.states(inputs)
        now = states[torch.arange(len(states)), torch.from_numpy(observation.time) + 1]
        action = self.net.act(now)
        return action.features.numpy(), action.share.numpy()


def before_first_visit(inputs: Tensor, encoder: InputEncoder) -> Tensor:
    """Inputs `(n, 1 + L, width)` with a row in front that holds nothing but the context."""
    first = inputs[:, :1].clone()
    first[..., : encoder.slot_width + encoder.n_times_] = 0.0
    return torch.cat([first, inputs], dim=1)


def _keep_away(share: Tensor, floor: float) -> Tensor:
    return floor + (1 - 2 * floor) * share


def _head(hidden: int, n_outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, n_outputs))
