"""The network of NOCT-Direct: from what was acquired and the cost weight to the gates of a visit.

Paper: section 3.6 sketches amortizing the arg min of equation 2 instead of the value of equation 1.
A recurrent unit reads one visit after the other. The gate of a feature opens if

    worth(history) > sharpness(history) * log(cost weight * price),

so cost weight and price act on every gate directly, and one fit serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: Smallest price that is told from zero, as a share of the median price.
_LEAST_PRICE = 1e-3
#: The logarithm of cost weight and budget is clipped here, so that nothing is extrapolated far.
_MOST_LOG = 6.0
_WEIGHT_INPUTS, _BUDGET_INPUTS = 4, 2


@dataclass(frozen=True)
class GateShape:
    """Sizes of a `GateNet`, and the units in which it reads weights, prices and budgets."""

    width: int  # of the encoder's inputs
    slot_width: int  # the part that depends on what was acquired
    context_width: int  # the last part of the inputs, which a fixed schedule does not see
    n_features: int
    hidden: int = 64
    dropout: float = 0.0
    cost_scale: float = 1.0  # the cost weight at which acquiring everything breaks even
    price_scale: float = 1.0  # the median price
    everything: float = 1.0  # mean charge of acquiring everything


class Terms(NamedTuple):
    """On what terms subjects are planned for; axes `n`, and `(n, L, M)` for prices."""

    log_weight: Tensor  # logarithm of the cost weight, in units of the break-even weight
    log_price: Tensor  # logarithm of prices, in units of the median price
    price_change: Tensor  # `log_price` less what it was in the fit, 0 if unchanged
    remaining: Tensor  # remaining hard budget, infinite without one

    def at(self, rows: Tensor) -> Terms:
        """The terms of some of the subjects."""
        return Terms(*(part[rows] for part in self))


class GateNet(nn.Module):
    """A gated recurrent unit over visits, with a gate for every feature of the next visit.

    The inputs of a step are what was acquired at the visit before, or what is planned there if its
    results are not known; slot and context; and the terms.
    """

    fitted_log_price: Tensor

    def __init__(self, shape: GateShape, log_price: Tensor) -> None:
        super().__init__()
        self.shape = shape
        inputs = shape.width + 2 * shape.n_features + _WEIGHT_INPUTS + _BUDGET_INPUTS
        self.embed = nn.Linear(inputs, shape.hidden)
        self.cell = nn.GRU(shape.hidden, shape.hidden, batch_first=True)
        self.drop = nn.Dropout(shape.dropout)
        self.worth = nn.Linear(shape.hidden, shape.n_features)
        self.sharpness = nn.Linear(shape.hidden, shape.n_features)
        self.register_buffer("fitted_log_price", log_price)
        nn.init.constant_(self.worth.bias, 1.0)  # most gates are open in the beginning
        nn.init.zeros_(self.sharpness.weight)
        nn.init.constant_(self.sharpness.bias, 0.5)

    def terms(self, cost_weight: Tensor, prices: Tensor, remaining: Tensor) -> Terms:
        """Terms in the units of the network, from `(n,)`, `(L, M)` or `(n, L, M)`, and `(n,)`."""
        log_weight = (cost_weight.clamp(min=1e-30) / self.shape.cost_scale).log().float()
        log_price = log_prices(prices, self.shape.price_scale)
        log_price = log_price.expand(len(cost_weight), *log_price.shape[-2:])
        change = log_price - self.fitted_log_price
        limit = log_weight.clamp(-2 * _MOST_LOG, 2 * _MOST_LOG)
        return Terms(limit, log_price, change, remaining)

    def step(
        self, before: Tensor, planned: Tensor, frame: Tensor, terms: Terms, slot: int, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits of one visit's gates, `(n, M)`, and the next state, `(1, n, hidden)`.

        `before`, `(n, slot_width)`, are the results of the visit before; `planned`, `(n, M)`, what
        was requested there if its results are unknown; `frame` is slot and context.
        """
        inputs = [before, frame, planned, terms.price_change[:, slot], *self._about(terms)]
        entered = self.drop(F.relu(self.embed(torch.cat(inputs, dim=1))))
        out, state = self.cell(entered[:, None], state)
        return self.gates(self.drop(out[:, 0]), terms, slot), state

    def start(self, n: int) -> Tensor:
        """The state before the first visit."""
        return torch.zeros(1, n, self.shape.hidden)

    def gates(self, state: Tensor, terms: Terms, slot: int) -> Tensor:
        """Logits of the gates of a visit, `(n, M)`."""
        price = terms.log_weight[:, None] + terms.log_price[:, slot]
        logits: Tensor = self.worth(state) - F.softplus(self.sharpness(state)) * price
        return logits

    def _about(self, terms: Terms) -> tuple[Tensor, Tensor]:
        """Cost weight and budget as inputs."""
        weight = terms.log_weight.clamp(-_MOST_LOG, _MOST_LOG) / 2
        bends = [weight, weight**2 / 2, F.relu(weight), F.relu(-weight)]
        limited = torch.isfinite(terms.remaining)
        left = torch.where(limited, terms.remaining, 0.0) / self.shape.everything
        budget = (left.clamp(min=1e-3).log() / 2).clamp(-_MOST_LOG, _MOST_LOG)
        known = limited.float()
        return torch.stack(bends, dim=1), torch.stack([known, known * budget.float()], dim=1)

    def without_context(self, frame: Tensor) -> Tensor:
        """Slot and context with an unknown context, as a schedule for everybody sees it."""
        kept = frame.shape[-1] - self.shape.context_width
        return torch.cat([frame[..., :kept], torch.zeros_like(frame[..., kept:])], dim=-1)


def log_prices(prices: Tensor, price_scale: float) -> Tensor:
    """The logarithm of prices in units of `price_scale`; a free feature has a tiny price."""
    return (prices / price_scale).clamp(min=_LEAST_PRICE).log().float()
