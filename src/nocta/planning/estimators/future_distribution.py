"""The future-candidate distribution of a subject, and the similarity of two subjects.

Paper: section 3.4, equations 4 and 5, and appendix A.6. The distribution (`zeta`) spreads
probability over the slots that the best plans acquire, and over stopping. Two subjects are similar
if their distributions have a small Jensen-Shannon divergence.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Weighting = Literal["softmax", "count"]


def spread_of_plans(plans: Tensor) -> Tensor:
    """Uniform distribution over the slots of each plan (`nu`), `(p, L * M + 1)`.

    The last entry is stopping; it has all the mass of the empty plan.
    """
    flat = plans.reshape(len(plans), -1).float()
    size = flat.sum(dim=1, keepdim=True)
    return torch.cat([flat / size.clamp(min=1), (size == 0).float()], dim=1)


def future_distribution(
    plans: Tensor, scores: Tensor, n_top_plans: int = 5, weighting: Weighting = "softmax"
) -> Tensor:
    """Future-candidate distribution of each subject (`zeta`), `(n, L * M + 1)`.

    `scores`, `(n, p)`, are the plug-in NOCT of plans `(p, L, M)`; the first is the empty plan, and
    plans that are worse count as stopping. `"softmax"` weighs each of the `n_top_plans` (`kappa`)
    by `exp(-NOCT)` and spreads its weight over its slots (appendix A.6); `"count"` counts how often
    a slot appears in them (section 3.4), so a plan has as many votes as slots.

    Example:
        >>> plans = torch.tensor([[[0, 0]], [[1, 0]], [[1, 1]]], dtype=torch.bool)
        >>> future_distribution(plans, torch.tensor([[2.0, 1.0, 1.0]]), n_top_plans=2)
        tensor([[0.7500, 0.2500, 0.0000]])
    """
    stopping = scores[:, :1]
    best, index = scores.topk(min(n_top_plans, scores.shape[1]), dim=1, largest=False)
    index = torch.where(best > stopping, 0, index)
    best = torch.minimum(best, stopping)
    if weighting == "softmax":
        weight = torch.softmax(-best, dim=1)  # (n, kappa)
    else:
        votes = plans.flatten(1).sum(dim=1).clamp(min=1).float()[index]
        weight = votes / votes.sum(dim=1, keepdim=True)
    return torch.einsum("nk,nks->ns", weight, spread_of_plans(plans)[index])


def jensen_shannon(first: Tensor, second: Tensor) -> Tensor:
    """Jensen-Shannon divergence over the last axis, in nats: from 0 to log 2; axes broadcast."""
    middle = (first + second) / 2
    # xlogy and its gradient are 0 if the mass is 0.
    inside = (torch.xlogy(first, first) + torch.xlogy(second, second)) / 2
    return (inside - torch.xlogy(middle, middle)).sum(dim=-1).clamp(min=0)


def similarity(first: Tensor, second: Tensor, similarity_scale: float = 1.0) -> Tensor:
    """Similarity of two subjects' future acquisitions, from 0 to 1 (equation 4, `beta`)."""
    return torch.exp(-similarity_scale * jensen_shannon(first, second))


def contrastive_loss(distance: Tensor, alike: Tensor, margin: float = 1.0) -> Tensor:
    """Pull similar subjects together, push others apart up to a margin (equation 5).

    `distance` is the squared Euclidean distance of the embeddings (`delta`), like the margin
    (`gamma`).
    """
    apart = (margin - distance).clamp(min=0) ** 2
    return (alike * distance + (1 - alike) * apart) / 2
