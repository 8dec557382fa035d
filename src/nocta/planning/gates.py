"""Gates: requests that carry a gradient, for networks that learn what to acquire.

A gate is 1 for a request and 0 otherwise. A predictor sees a cohort through gates, and charges are
computed from them, so loss and cost have a gradient with respect to every request.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, offered_slots
from nocta.core.predictor import Network
from nocta.predictors.encoding import EncodedCohort


class GatedCohort(EncodedCohort):
    """A cohort seen through gates, by one predictor; gates to what is not offered stay closed."""

    def __init__(
        self, member: Network, cohort: Cohort, availability: Availability = "on-arrival"
    ) -> None:
        super().__init__(member.encoder_, cohort)
        if availability == "known":
            self.closed = torch.from_numpy(~offered_slots(cohort, availability))
        else:  # the same for everybody, so it takes no memory per subject
            closed = torch.from_numpy(~cohort.catalog.open_slots)
            self.closed = closed.expand(len(cohort), *closed.shape)
        self.member, self.encoder = member, member.encoder_

    def gated(self, index: Tensor, gates: Tensor) -> Tensor:
        """Inputs `(b, L, width)`; gates may carry a gradient."""
        return torch.cat([self.slots[index] * gates[..., self.owner], self.frame[index]], dim=2)

    def logits(self, index: Tensor, gates: Tensor) -> Tensor:
        out: Tensor = self.member.net_(self.gated(index, gates)) / self.member.temperature_
        return out


def gate_costs(catalog: Catalog, gates: Tensor, prices: Tensor | None = None) -> Tensor:
    """What open gates cost at every visit, fees included, `(n, L, M)` to `(n, L)`, with gradient.

    `prices`, `(n, L, M)`, replace those of the catalog; fees stay.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> gate_costs(tiny_cohort(1).catalog, torch.ones(1, 4, 2))[0].tolist()
        [4.5, 4.5, 4.5, 4.5]
    """
    if prices is None:
        prices = torch.from_numpy(catalog.costs).to(gates.dtype)
    total = (gates * prices).sum(dim=2)
    for members, fee in zip(catalog.group_members, catalog.group_fee_values, strict=True):
        total = total + float(fee) * (1 - (1 - gates[..., torch.from_numpy(members)]).prod(dim=2))
    return total + catalog.visit_fee * (1 - (1 - gates).prod(dim=2))
