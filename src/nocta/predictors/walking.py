"""What a network offers that predicts slot by slot: a state that is extended and read.

Many plans that begin alike share what the network made of their beginning. The leading axes of a
state and of the inputs that extend it broadcast, so `q` states are each continued by `s` inputs in
one call.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


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
    """A walking network to whose outputs every feature adds a share by what is known of it."""

    def shares(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """What nothing acquired adds, `(..., C)`, and what each feature does, `(..., M, C)`."""


def next_shares(
    net: AdditiveNet, state: Tensor, slots: Tensor, frame: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What adds to the outputs at the next slot, whatever subset is acquired there.

    Args:
        net: The network.
        state: `(..., state_width)` after the slot before.
        slots: `(..., slot_width)` inputs of the slot if everything were acquired.
        frame: `(..., frame)` the rest of the inputs.

    Returns:
        What does not depend on what was acquired, `(..., C)`, and what each feature adds if it is
        not acquired at that slot, and if it is, `(..., M, C)` each.
    """
    without, with_it = (
        net.shares(net.extend(state, torch.cat([x, frame], dim=-1))) for x in (0 * slots, slots)
    )
    return *without, with_it[1]
