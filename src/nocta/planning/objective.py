"""The NOCT objective: expected loss-to-go plus cost (equations 1 and 3, and appendix B.3).

Losses are kept per time point and separate from cost until plans are ranked, so that one fitted
estimator serves every cost weight and every budget.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

LossReduction = Literal["sum", "mean"]
PlanningLoss = Literal["cross-entropy", "error"]


def losses_at_times(log_proba: Tensor, labels: Tensor, kind: PlanningLoss) -> Tensor:
    """Realized loss `(..., L)` of log-probabilities `(..., L, C)`; zero if the label is -1."""
    labeled = labels >= 0
    if kind == "cross-entropy":
        picked = log_proba.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return torch.where(labeled, -picked, 0.0)
    return (labeled & (log_proba.argmax(-1) != labels)).to(log_proba.dtype)


def self_expected_losses(log_proba: Tensor, kind: PlanningLoss) -> Tensor:
    """The loss a calibrated predictor expects of itself at every time, `(..., L)`.

    This is the mean of the realized loss over the label, without the noise of one label.
    """
    if kind == "cross-entropy":
        return -(log_proba.exp() * log_proba).sum(-1)
    return 1 - log_proba.amax(-1).exp()


def soft_label_losses(log_proba: Tensor, soft_labels: Tensor, kind: PlanningLoss) -> Tensor:
    """The mean loss, `(..., L)`, under soft labels, `(..., L, C)` probabilities."""
    if kind == "cross-entropy":
        return -(soft_labels * log_proba).sum(-1)
    guess = log_proba.argmax(-1, keepdim=True)
    return 1 - soft_labels.expand_as(log_proba).gather(-1, guess)[..., 0]


def loss_to_go(
    losses: Tensor, time: int, labeled: Tensor, reduction: LossReduction = "sum"
) -> Tensor:
    """Accumulated loss after slot `time` (`ell`): `(..., L)` to `(...)`.

    Either the sum of equation 1, or the mean over the labeled times.
    """
    total = losses[..., time + 1 :].sum(-1)
    if reduction == "mean":
        total = total / labeled[..., time + 1 :].sum(-1).clamp(min=1)
    return total
