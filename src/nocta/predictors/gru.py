"""The gated recurrent unit in two halves, so that branches share common computation.

The input's share does not depend on the state, nor the state's share on the input. If `q` states
are each continued by `s` inputs, each half is computed once, and only the cheap combination is done
`q * s` times.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def input_half(cell: nn.GRU, inputs: Tensor) -> Tensor:
    """The input's share, `(..., 3 * hidden)`."""
    weight, bias = cell.all_weights[0][0], cell.all_weights[0][2]
    return F.linear(inputs, weight, bias)


def state_half(cell: nn.GRU, state: Tensor) -> Tensor:
    """The state's share, `(..., 3 * hidden)`."""
    weight, bias = cell.all_weights[0][1], cell.all_weights[0][3]
    return F.linear(state, weight, bias)


def combine(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    """The next state; the arguments broadcast against each other."""
    hidden = state.shape[-1]
    gates = (from_input[..., : 2 * hidden] + from_state[..., : 2 * hidden]).sigmoid_()
    reset, keep = gates[..., :hidden], gates[..., hidden:]
    new = torch.addcmul(from_input[..., 2 * hidden :], reset, from_state[..., 2 * hidden :])
    new = new.tanh_()
    return torch.lerp(new, state.expand_as(new), keep)
