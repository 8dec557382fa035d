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

    Args:
        plans: `(p, L, M)` booleans.
    """
    flat = plans.reshape(len(plans), -1).float()
    size = flat.sum(dim=1, keepdim=True)
    return torch.cat([flat / size.clamp(min=1), (size == 0).float()], dim=1)


def future_distribution(
    plans: Tensor, scores: Tensor, n_top_plans: int = 5, weighting: Weighting = "softmax"
) -> Tensor:
    """Future-candidate distribution of each subject (`zeta`), `(n, L * M + 1)`.

    Plans that are worse than stopping count as stopping.

    Args:
        plans: `(p, L, M)` candidates; the first one is the empty plan.
        scores: `(n, p)` plug-in NOCT of every candidate; lower is better.
        n_top_plans: Number of best plans that count (`kappa`).
        weighting: `"softmax"` weighs each plan by `exp(-NOCT)` and spreads its weight over its
            slots (appendix A.6); `"count"` counts how often a slot appears in the top plans
            (section 3.4), so a plan has as many votes as slots.

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
    """Jensen-Shannon divergence over the last axis, in nats: from 0 to log 2.

    Leading axes are broadcast, so `(n, 1, s)` and `(1, n, s)` give all pairs.
    """
    middle = (first + second) / 2
    # xlogy and its gradient are 0 if the mass is 0.
    inside = (torch.xlogy(first, first) + torch.xlogy(second, second)) / 2
    return (inside - torch.xlogy(middle, middle)).sum(dim=-1).clamp(min=0)


def similarity(first: Tensor, second: Tensor, similarity_scale: float = 1.0) -> Tensor:
    """Similarity of two subjects' future acquisitions, from 0 to 1 (equation 4).

    Args:
        first: `(..., s)` distributions.
        second: `(..., s)` distributions.
        similarity_scale: How sharply divergence lowers similarity (`beta`).
    """
    return torch.exp(-similarity_scale * jensen_shannon(first, second))


def contrastive_loss(distance: Tensor, alike: Tensor, margin: float = 1.0) -> Tensor:
    """Pull similar subjects together, push others apart up to a margin (equation 5).

    Args:
        distance: Squared Euclidean distance of the embeddings (`delta`), any shape.
        alike: Similarity of the same pairs, from 0 to 1.
        margin: Squared distance beyond which dissimilar pairs no longer repel (`gamma`).

    Returns:
        The loss of every pair.
    """
    apart = (margin - distance).clamp(min=0) ** 2
    return (alike * distance + (1 - alike) * apart) / 2
