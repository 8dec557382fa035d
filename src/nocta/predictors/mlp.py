"""The paper's predictor: two hidden layers over everything acquired up to the predicted time.

Paper: section 4.3 and appendix B.3. The input for time `k` is all slots up to `k`, zeros for the
later ones, and the indicator of `k`. The first layer is linear in the slots, so a running sum over
slots gives it at every `k` in one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.predictors.neural import ClassWeight, NeuralPredictor
from nocta.predictors.plan_tree import PlanTree
from nocta.predictors.training import TrainingConfig

#: The paper uses Adam at 1e-3; a peak of 1e-2 reaches a lower loss in a quarter of the steps.
PAPER_TRAINING = TrainingConfig(epochs=400, learning_rate=1e-2, patience=40, check_every=10)


class MLPNet(nn.Module):
    """Fully connected layers with ReLU, the first one shared between all times as a running sum."""

    def __init__(
        self,
        slot_width: int,
        context_width: int,
        n_times: int,
        hidden: int,
        n_outputs: int,
        n_layers: int = 2,
    ) -> None:
        super().__init__()
        self.slot_width, self.context_width = slot_width, context_width
        # The usual initialization of one linear layer over all slots, indicator and context.
        bound = 1 / math.sqrt(n_times * slot_width + n_times + context_width)
        self.slots = nn.Parameter(torch.empty(n_times, slot_width, hidden).uniform_(-bound, bound))
        self.time = nn.Parameter(torch.empty(n_times, hidden).uniform_(-bound, bound))
        self.context = nn.Parameter(torch.empty(context_width, hidden).uniform_(-bound, bound))
        self.upper = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(n_layers - 1))
        self.head = nn.Linear(hidden, n_outputs)

    def first(self, inputs: Tensor) -> Tensor:
        """First layer before its ReLU, at every time, `(n, L, hidden)`."""
        each = torch.einsum("nls,lsh->nlh", inputs[..., : self.slot_width], self.slots)
        free = inputs[..., inputs.shape[-1] - self.context_width :]
        return each.cumsum(dim=1) + (self.time + free @ self.context)

    def after_first(self, first: Tensor) -> Tensor:
        """Last hidden layer from the first one before its ReLU, `(..., hidden)`."""
        out = F.relu(first)
        for layer in self.upper:
            out = F.relu(layer(out))
        return out

    def states(self, inputs: Tensor) -> Tensor:
        return self.after_first(self.first(inputs))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.states(inputs))  # type: ignore[no-any-return]

    def frame_at(self, frame: Tensor, time: int) -> Tensor:
        """First layer's share of time and context, from inputs of one time or their tail."""
        free = frame[..., frame.shape[-1] - self.context_width :]
        return self.time[time] + free @ self.context

    def at(self, inputs: Tensor, time: int) -> Tensor:
        """Outputs at one time only, `(n, n_outputs)`."""
        return self.head(self.after_first(self.first(inputs)[:, time]))  # type: ignore[no-any-return]


@dataclass(eq=False, repr=False)
class MLPPredictor(NeuralPredictor):
    """Fully connected network over all slots; the predictor of the `paper` preset.

    Small and fast, with a fast path for many plans (`PlanScorer`). Every slot has its own weights,
    so with many slots or features it needs more data than `RecurrentPredictor`.
    """

    kind = "mlp"
    net_: MLPNet = field(init=False, repr=False)

    #: Units of each hidden layer: 10 for the paper's synthetic task and ADNI, 32 for OAI.
    hidden: int = 10
    n_layers: int = 2  # hidden layers
    training: TrainingConfig = PAPER_TRAINING
    class_weight: ClassWeight = None
    calibrate: bool = True
    seed: int = 0

    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        slot_width = self.encoder_.slot_width
        context_width = width - slot_width - n_times
        return MLPNet(slot_width, context_width, n_times, self.hidden, n_classes, self.n_layers)

    @torch.no_grad()
    def plan_log_proba(
        self, inputs: Tensor, slots: Tensor, plans: Tensor, start: int = 0
    ) -> Tensor:
        """Calibrated log-probabilities if each plan were carried out, `(n, p, L - start, C)`.

        Each feature's share of the first layer is computed once per subject; a plan then costs
        additions only. `slots` is everything recorded, as in `EncodedCohort.slots`. Plans `(p, L,
        M)` are shared by all subjects, and false before `start` and for known values.
        """
        known = self.net_.first(inputs)[:, None, start:]
        planned = plans[:, start:].float()
        added = self._added(slots, start)
        sums = torch.einsum("plm,mnlh->nplh", planned, added).cumsum(dim=2)
        # Dividing the few weights by the temperature is cheaper than dividing all logits.
        head, scale = self.net_.head, 1 / self.temperature_
        hidden = self.net_.after_first(known + sums)
        return F.log_softmax(F.linear(hidden, head.weight * scale, head.bias * scale), dim=-1)

    @torch.no_grad()
    def tree_log_proba(self, inputs: Tensor, slots: Tensor, tree: PlanTree) -> Tensor:
        """Calibrated log-probabilities at every node of a tree of plans, `(n, nodes, C)`.

        The first layer of all nodes and subjects is one matrix product. Units are the first axis:
        layers this narrow run twice as fast that way.
        """
        net, start = self.net_, inputs.shape[1] - tree.n_later
        known = net.first(inputs)[:, start:].permute(2, 0, 1)  # (h, n, later)
        added = self._added(slots, start).permute(3, 1, 2, 0)  # (h, n, later, M)
        parts = torch.cat([added.flatten(2), known], dim=2)
        out = (parts.flatten(0, 1) @ tree.design.T).view(len(parts), -1)
        for layer in net.upper:
            assert isinstance(layer, nn.Linear)
            out = torch.addmm(layer.bias[:, None], layer.weight, out.relu_())
        scale = 1 / self.temperature_
        logits = torch.addmm(net.head.bias[:, None] * scale, net.head.weight * scale, out.relu_())
        return F.log_softmax(logits, dim=0).view(-1, len(inputs), len(tree)).movedim(0, -1)

    def _added(self, slots: Tensor, start: int) -> Tensor:
        """Each feature's share of the first layer at each slot, `(M, n, L - start, h)`."""
        net, owner = self.net_, torch.from_numpy(self.encoder_.slot_owner_)
        shares = [
            torch.einsum(
                "nls,lsh->nlh", slots[:, start:, owner == m], net.slots[start:, owner == m]
            )
            for m in range(self.encoder_.n_features_)
        ]
        return torch.stack(shares)
