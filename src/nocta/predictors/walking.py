"""What a network offers that predicts slot by slot: a state that is extended and read.

Many plans that begin alike share what the network made of their beginning. The leading axes of a
state and of the inputs that extend it broadcast, so `q` states are each continued by `s` inputs in
one call.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

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
    """A walking network to whose outputs every feature of a slot adds a share of its own."""

    def read_subsets(self, state: Tensor, slots: Tensor, frame: Tensor, subsets: Tensor) -> Tensor:
        """Outputs `(..., s, C)` if each of some subsets `(s, M)` were acquired at the next slot."""
