"""Fast paths that a predictor's network can offer: slot by slot, and as sums over features.

Plans that begin alike share the state after their beginning. The leading axes of a state and of
the inputs that extend it broadcast, so `q` states are each continued by `s` inputs in one call.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from nocta.core.predictor import Predictor


@runtime_checkable
class WalkingNet(Protocol):
    """A causal network whose state after a slot holds all it needs to go on."""

    @property
    def state_width(self) -> int:
        """Length of a state; before the first slot it is zero."""

    def walk(self, inputs: Tensor) -> Tensor:
        """States after every slot, `(n, L, width)` to `(n, L, state_width)`."""

    def extend(self, state: Tensor, inputs: Tensor) -> Tensor:
        """States `(..., state_width)` after one more slot with inputs `(..., width)`."""

    def read(self, state: Tensor) -> Tensor:
        """Outputs at the slot a state has reached, before any softmax, `(..., C)`."""


@runtime_checkable
class AdditiveNet(WalkingNet, Protocol):
    """A walking network whose outputs are a sum of one share per feature."""

    def shares(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The share without any feature, `(..., C)`, and each feature's, `(..., M, C)`."""


def walking_net(predictor: Predictor) -> WalkingNet | None:
    """The network of a predictor, if it can walk slot by slot."""
    net = None if predictor.network is None else predictor.network.net_
    return net if isinstance(net, WalkingNet) else None


def additive_net(predictor: Predictor) -> AdditiveNet | None:
    """The network of a predictor, if its outputs are sums over features."""
    net = None if predictor.network is None else predictor.network.net_
    return net if isinstance(net, AdditiveNet) else None


def next_shares(
    net: AdditiveNet, state: Tensor, slots: Tensor, frame: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Shares of the outputs at the next slot, for any subset acquired there.

    `slots`, `(..., slot_width)`, are the inputs of the slot if everything were acquired. The shares
    are the one that no acquisition changes, `(..., C)`, and each feature's share if it is not
    acquired at that slot, and if it is, `(..., M, C)` each.
    """
    without, with_it = (
        net.shares(net.extend(state, torch.cat([x, frame], dim=-1))) for x in (0 * slots, slots)
    )
    return *without, with_it[1]
