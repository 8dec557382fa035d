"""NOCT-Direct as a planner: gates and predictor learn together, then promises are fitted.

The estimator `"direct"` of both presets; they differ in the predictor only. See
`nocta.planning.direct`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch

from nocta.core.cohort import Cohort, even_rows
from nocta.core.history import History
from nocta.core.operating_points import cost_of_everything
from nocta.core.policy import Observation
from nocta.core.predictor import require_network
from nocta.model.presets.base import MOST_ASKED, Planner, Task, break_even_weight
from nocta.model.presets.options import DirectOptions
from nocta.model.state import Arrays, State, load_net, nest, net_arrays, take_part
from nocta.planning.direct.network import GateNet, GateShape, log_prices
from nocta.planning.direct.policy import DirectPlans, DirectPolicy
from nocta.planning.direct.promise import PromiseNet, fit_promise
from nocta.planning.direct.training import FEW, DirectTraining
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.cross_fitted import SMALL, CrossFittedPredictor
from nocta.predictors.encoding import InputEncoder

#: Units and dropout of the gates, by the number of training subjects: less than the first number.
_SIZES = ((FEW, 32, 0.4), (SMALL, 128, 0.1), (np.inf, 128, 0.2))
#: Cost weights at which validation is asked, in break-even weights.
_FACTORS = (0.1, 0.3, 1.0, 3.0)
#: Validation subjects who are asked, at most.
_MOST_TRIED = 2000


@dataclass(eq=False)
class DirectPlanner(Planner):
    """A fitted NOCT-Direct; see the module."""

    options: DirectOptions
    predictor: CrossFittedPredictor
    plans: DirectPlans
    cost_scale: float
    seed: int = 0

    def search(self, cost_weight: float) -> DirectPlans:
        return self.plans

    def policy(self, cost_weight: float, *, replan: bool = True) -> DirectPolicy:
        return DirectPolicy(self.predictor, self.plans, cost_weight, replan=replan)

    @classmethod
    def fit(cls, task: Task) -> Self:
        train, val, seed = task.train, task.val, task.seed
        knobs: DirectOptions = task.options
        if task.predictor is not None:
            require_network(task.predictor, "Estimator 'direct'", "trains the predictor further")
        predictor = copy.deepcopy(task.cross_fitted(task.preset))
        targets = LossTargets(train, predictor.members, predictor.fold, ("cross-entropy",))
        scale = break_even_weight(targets, train)
        everything = max(cost_of_everything(train), 1e-9)
        hidden, dropout = next((h, d) for size, h, d in _SIZES if len(train) < size)
        encoder = predictor.networks[0].encoder_
        prices = train.catalog.costs
        shape = GateShape(
            width=encoder.width,
            slot_width=encoder.slot_width,
            context_width=2 * encoder.context_.width,
            n_features=encoder.n_features_,
            hidden=knobs.hidden or hidden,
            dropout=dropout,
            cost_scale=scale,
            price_scale=float(np.median(prices[prices > 0])) if (prices > 0).any() else 1.0,
            everything=everything,
        )
        config = knobs.config(_noise(targets, train), adapts=len(train) >= FEW)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = GateNet(shape, log_prices(torch.from_numpy(prices), shape.price_scale))
            training = DirectTraining(net, predictor, train, config, scale * everything, seed)
            training.run(val, config.training(len(train)), task.progress)
        judges = predictor.members, predictor.fold
        parts = (
            (train, LossTargets(train, *judges, ("cross-entropy",))),
            (val, LossTargets(val, predictor.members[:1], kinds=("cross-entropy",))),
        )
        promise = fit_promise(net, *parts, config.weights, seed, task.progress)
        plans = DirectPlans(net, encoder, promise)
        planner = cls(knobs, predictor, plans, scale, seed)
        planner._choose_share(val)
        planner._correct_level(val)
        return planner

    def _choose_share(self, val: Cohort) -> None:
        """How much of a plan is individual: as the options say, or as validation supports."""
        if self.options.individual_share is not None:
            self.plans.individual_share = self.options.individual_share
            return
        use = partial(setattr, self.plans, "individual_share")
        how: dict[str, Any] = {"factors": _FACTORS, "n_tried": _MOST_TRIED}
        chosen = self.least_regret(use, val, self.seed, preferred=0.0, **how)
        self.plans.individual_share = chosen

    def _correct_level(self, val: Cohort) -> None:
        """Promises are for plans of one's own, judged by one predictor each; correct their level.

        New subjects are predicted by the mean of all predictors, and may follow the schedule for
        everybody.
        """
        val = val.sample(_MOST_TRIED)
        n, catalog = len(val), val.catalog
        nothing = History.empty(catalog, val.context)
        start, limit = np.full(n, -1), np.full(n, np.inf)
        before = Observation(nothing, start, limit, catalog, np.arange(n))
        self.plans.loss_level = self.plans.charge_level = 1.0
        promised, realized = np.zeros(2), np.zeros(2)
        for factor in _FACTORS:
            weight = factor * self.cost_scale
            found = self.plans(before, np.full(n, weight))
            promised += [found.losses[:, 0].mean(), found.charges[:, 0].mean()]
            realized += [part.mean() for part in self.realized(val, weight)]
        known = (promised > 1e-9) & (realized > 0)
        levels = np.where(known, realized / np.maximum(promised, 1e-9), 1.0)
        self.plans.loss_level, self.plans.charge_level = levels.tolist()

    def state(self) -> State:
        plans = self.plans
        config: dict[str, Any] = {
            "estimator": "direct",
            "options": self.options.model_dump(),
            "cost_scale": self.cost_scale,
            "shape": vars(plans.net.shape),
            "individual_share": plans.individual_share,
            "loss_level": plans.loss_level,
            "charge_level": plans.charge_level,
            "seed": self.seed,
        }
        return nest(
            config,
            {},
            predictor=self.predictor.state(),
            net=({}, net_arrays(plans.net)),
            promise=({}, net_arrays(plans.promise)),
            encoder=({}, plans.encoder.state()),
        )

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        predictor = CrossFittedPredictor.from_state(*take_part(config, arrays, "predictor"))
        weights = {part: take_part(config, arrays, part)[1] for part in ("net", "promise")}
        shape = GateShape(**config["shape"])
        log_price = torch.from_numpy(np.array(weights["net"]["fitted_log_price"]))
        net = load_net(GateNet(shape, log_price), weights["net"])
        promise = load_net(PromiseNet(shape.hidden, len(log_price)), weights["promise"])
        encoder = InputEncoder.from_state(take_part(config, arrays, "encoder")[1])
        plans = DirectPlans(
            net,
            encoder,
            promise,
            individual_share=config["individual_share"],
            loss_level=config["loss_level"],
            charge_level=config.get("charge_level", 1.0),
        )
        options = DirectOptions(**config["options"])
        return cls(options, predictor, plans, config["cost_scale"], config["seed"])


def _noise(targets: LossTargets, cohort: Cohort) -> float:
    """Loss with everything known, as a share of the loss with nothing known."""
    index = even_rows(len(cohort), MOST_ASKED)
    nothing = np.zeros((len(index), *cohort.catalog.open_slots.shape), dtype=bool)
    everything = nothing | cohort.catalog.open_slots
    left, whole = (float(targets(index, asked).sum()) for asked in (everything, nothing))
    return float(np.clip(left / max(whole, 1e-9), 0.0, 1.0))
