"""The paper's algorithm written down plainly: the yardstick of every ratio of speed.

One subject at a time, as Algorithm 1 reads, but batched over training subjects and candidate
plans. NOCT-Contrastive embeds the query and all training subjects under the query's mask, takes
the nearest, and for every plan, voter and later time builds the masked input and predicts.
NOCT-Amortized builds one network input per plan. Nothing is shared between subjects, plans or
times, but for two things anybody would share: candidates are drawn once per slot, and if
nothing at all is known about anybody the first decision is made once.

It takes the fitted networks, candidates and seeds of the `paper` preset, so it must choose as the
library does; `tests/benchmarks/test_reference.py` holds it to that.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.core.policy import Decision, Observation, Policy
from nocta.model.presets.paper import PaperPlanner
from nocta.planning.estimators.amortized_mlp import AmortizedMLPEstimator, GainNet
from nocta.planning.estimators.bank import nearest_points
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.search import draw_candidates
from nocta.predictors.mlp import MLPNet, MLPPredictor

#: Network inputs (plan, voter, time) built at once; before the first visit hundreds vote.
_ROWS = 100_000


class ReferencePolicy(Policy):
    """Algorithm 1 with the estimator of a fitted `paper` preset.

    Args:
        planner: The fitted preset.
        cost_weight: What one unit of cost is worth in loss (`alpha`).
    """

    def __init__(self, planner: PaperPlanner, cost_weight: float) -> None:
        self.planner = planner
        self.predictor = planner.predictor
        self.cost_weight = cost_weight
        self.estimator = planner.estimator(cost_weight)

    def decide(self, observation: Observation) -> Decision:
        candidates: dict[int, NDArray[np.bool_]] = {}
        first: NDArray[np.bool_] | None = None
        chosen = []
        for i in range(len(observation)):
            one = observation.subset(np.array([i]))
            time = int(one.time[0])
            if time not in candidates:
                n_candidates, seed = self.planner.options.n_candidates, self.planner.seed
                candidates[time] = draw_candidates(one, n_candidates, seed)
            if time < 0 and one.history.context.shape[1] == 0 and one.available is None:
                first = self._best(one, candidates[time]) if first is None else first
                chosen.append(first)
            else:
                chosen.append(self._best(one, candidates[time]))
        return Decision.from_plans(np.stack(chosen))

    def _best(self, one: Observation, plans: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The plan of least expected loss plus weighted cost; the empty one is the first."""
        scores = self.scores(one, plans)
        found = plans if one.available is None else plans & one.open_slots
        return np.asarray(found[int(np.argmin(scores))])

    @torch.no_grad()
    def scores(self, one: Observation, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Estimated NOCT of every plan for one subject, `(p,)`; infinite over the budget."""
        if one.available is not None:
            plans = plans & one.open_slots[0]
        if isinstance(self.estimator, ContrastiveEstimator):
            losses = contrastive_losses(self.estimator, one, plans)
        else:
            assert isinstance(self.estimator, AmortizedMLPEstimator)
            losses = amortized_losses(self.estimator, one, plans)
        cost = one.catalog.cost_of(plans)
        scores = losses.double().numpy() + self.cost_weight * cost
        return np.where(cost > one.remaining[0] + 1e-9, np.inf, scores)


def contrastive_losses(
    estimator: ContrastiveEstimator, one: Observation, plans: NDArray[np.bool_]
) -> Tensor:
    """Mean loss-to-go of the nearest training subjects under every plan, `(p,)`."""
    voters = _nearest(estimator, one)
    predictor, data = estimator.targets.predictors[0], estimator.targets.data[0]
    assert isinstance(predictor, MLPPredictor)
    asked = torch.from_numpy(plans | one.history.requested)
    labels, slots, frame = data.labels[voters], data.slots[voters], data.frame[voters]
    length, later = asked.shape[1], range(int(one.time[0]) + 1, asked.shape[1])
    per_piece = max(1, _ROWS // len(asked))
    total = torch.zeros(len(asked))
    for some in torch.split(torch.arange(len(voters)), per_piece):
        for k in later:
            seen = asked & (torch.arange(length) <= k)[:, None]
            shown = seen[..., data.owner].float()  # (p, L, slot_width)
            inputs = (slots[some, None] * shown).flatten(0, 1)
            rest = frame[some, None].expand(-1, len(asked), -1, -1).flatten(0, 1)
            logits = predictor.net_.head(_last_hidden(predictor.net_, inputs, rest, k))
            log_proba = F.log_softmax(logits / predictor.temperature_, dim=-1)
            truth = labels[some, k].repeat_interleave(len(asked))
            picked = log_proba.gather(1, truth.clamp(min=0)[:, None])[:, 0]
            total += torch.where(truth >= 0, -picked, 0.0).view(len(some), -1).sum(0)
    return total / len(voters)


def _nearest(estimator: ContrastiveEstimator, one: Observation) -> Tensor:
    """The training subjects nearest to the query when all are seen through its mask, `(K,)`."""
    bank, time = estimator.bank, int(one.time[0])
    assert bank.embedding is not None
    everybody = np.arange(len(bank.data))
    mask = np.repeat(one.history.requested, len(everybody), axis=0)
    points = bank.embedding.embed(bank.data.inputs(everybody, mask), time)
    point = bank.embedding.embed(bank.encoder.encode(one.history), time)
    n_votes = bank.n_neighbors if time >= 0 else max(bank.n_neighbors, 512)
    return nearest_points(point, points, min(n_votes, len(points)), bank.index)[0][0]


def amortized_losses(
    estimator: AmortizedMLPEstimator, one: Observation, plans: NDArray[np.bool_]
) -> Tensor:
    """Loss-to-go less that of stopping, from one network input per plan, `(p,)`."""
    net, steps = estimator.net_, torch.from_numpy(plans)
    assert isinstance(net, GainNet)
    known = estimator.encoder_.encode(one.history).expand(len(steps), -1, -1)
    width = estimator.encoder_.slot_width
    rest, time = known[..., width:], int(one.time[0]) + 1
    whole = torch.cat([_flat(net, known[..., :width], rest, time), steps.flatten(1).float()], 1)
    weight = torch.cat([_first_weight(net), net.plan.weight.T])
    gains: Tensor = net.head(net.after_first(whole @ weight + net.plan.bias))[:, 0]
    if estimator.pin_stopping:
        gains = torch.where(steps.flatten(1).any(dim=1), gains, 0.0)
    return -gains


def _last_hidden(net: MLPNet, slots: Tensor, frame: Tensor, time: int) -> Tensor:
    """A plain fully connected network on the whole input, `(n, hidden)`."""
    return net.after_first(_flat(net, slots, frame, time) @ _first_weight(net))


def _flat(net: MLPNet, slots: Tensor, frame: Tensor, time: int) -> Tensor:
    """One row per input: all slots, the indicator of the time asked about, the context."""
    n, length = slots.shape[:2]
    indicator = torch.zeros(n, length)
    indicator[:, time] = 1
    context = frame[:, time, frame.shape[2] - net.context_width :]
    return torch.cat([slots.flatten(1), indicator, context], dim=1)


def _first_weight(net: MLPNet) -> Tensor:
    return torch.cat([net.slots.flatten(0, 1), net.time, net.context])
