"""DIME over time: the next slot is the one whose value is expected to lower the loss most.

Gadgil, Covert and Lee, "Estimating Conditional Mutual Information for Dynamic Feature Selection"
(ICLR 2024). A value network estimates, for everything not yet acquired, by how much acquiring it
would lower the predictor's loss; the largest estimate per cost is acquired, and so on. Predictor
and value network are trained together on the episodes they make, with some random acquisitions.

As in the comparison of the NOCTA paper, the `L * M` slots are acquired. Acquiring one at a later
visit moves the clock there, several may be acquired at one visit, one after the other, and the drop
of the loss is summed over the labeled times from the current one on (predictions are causal, so
earlier ones cannot change). Differences from the original:

- The predictor is pretrained under random masks of every size and is the one the other methods
  get. `preset="paper"` uses the published network, and a value network of its size.
- Episodes run side by side at different depths, so that one step of training sees short and long
  histories. When an episode ends, another subject takes its place.
- The value network regresses the drop itself, neither bounded by the entropy nor kept positive:
  an acquisition may raise the loss.
- The drop is judged without dropout and, with few subjects, by a network that was never trained
  on the subject. Otherwise everything seems worth acquiring.
- `order="time"`, the default, acquires the slots worth their price from the earliest visit on. The
  original acquires the best slot first (`order="value"`); over time that closes the visits before
  it and leaves a fraction of what could have been acquired. In training, each episode then has its
  own threshold: the share of the open slots it may acquire from.
- The loss before an acquisition is kept from the step before, so a drop also contains what one
  step of training changed.
- Prices include the fees that are still due, and a slot the budget does not allow is skipped.
- Random acquisitions may go to any open slot; their share falls linearly to 0. The weights with the
  lowest validation loss, averaged along the episodes, are kept.

Episodes follow the rule of the comparison. By default a visit's results come back when it is over:
what was ordered there enters the value network as pending, without its value, and the drop of
another slot is on top of everything pending. A visit ends when no other slot of it is worth its
price; then the results are shown, and the next visit is chosen. Under `results="at-once"` each
result is shown before the next order, as in the original, which has no visits. Methods that order a
visit as a whole cannot do that, and their optimum does not bound a method that does.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.environment import Environment
from nocta.core.knob_search import search_knob
from nocta.core.operating_points import CurveEnds, cost_and_loss, cost_of_everything
from nocta.core.options import Count, Preset, Share
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.predictor import Predictor, require_network
from nocta.core.rollout import rollout
from nocta.methods.contract import Method, Trial, knob_value, require_fitted, suggest
from nocta.methods.dime.training import FREE, JointTraining, Order, Rules, ValueNet, earliest
from nocta.methods.one_at_a_time import acquire_slot, affordable_slots, slot_prices
from nocta.model.state import Arrays, State, load_net, nest, net_arrays, take_part
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted
from nocta.predictors.fitting import fit_predictor

Stop = Literal["threshold", "budget", "confidence"]


@dataclass(eq=False)
class DimePolicy(Policy):
    """Acquires the open slot with the largest expected drop of the loss per cost, then asks again.

    `stop="threshold"` stops when the best ratio is at most `limit`; `"confidence"` when the
    predictor's mean doubt over the times to come is; `"budget"` only when nothing is affordable.
    """

    acts_within_visit = True

    predictor: CrossFittedPredictor
    value: ValueNet
    stop: Stop
    limit: float
    order: Order = "value"
    budget: float = np.inf

    def decide(self, observation: Observation) -> Decision:
        spent = observation.catalog.cost_of(observation.committed)
        left = np.minimum(observation.remaining, self.budget - spent)
        observation = replace(observation, remaining=left)
        ratios = self.ratios(observation)
        best = ratios.max(axis=(1, 2))
        score = np.where(np.isneginf(best), best, self._score(observation, best))
        by_time = self.order == "time" and self.stop == "threshold"
        slot = earliest(ratios, ratios > self.limit if by_time else ratios == best[:, None, None])
        return acquire_slot(np.where(score > self.limit, slot, -1), observation)

    def _score(self, observation: Observation, best: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is held against `limit`, `(n,)`."""
        if self.stop == "threshold":
            return best
        return self._doubt(observation) if self.stop == "confidence" else np.full(len(best), np.inf)

    @torch.no_grad()
    def ratios(self, observation: Observation) -> NDArray[np.float64]:
        """Expected drop per cost, `(n, L, M)`; minus infinity if it cannot be acquired."""
        inputs = self.predictor.networks[0].encode(observation.history)
        pending = observation.requested & ~observation.history.requested
        drop = self.value(inputs, observation.time, pending).numpy().astype(float)
        price = slot_prices(observation.catalog, observation.committed)
        fits = affordable_slots(observation)
        return np.where(fits, drop / np.maximum(price, FREE), -np.inf)

    def _doubt(self, observation: Observation) -> NDArray[np.float64]:
        """One minus the mean probability of the likeliest class, over the times to come."""
        likeliest = self.predictor.predict_proba(observation.history).max(axis=2).astype(float)
        ahead = np.arange(likeliest.shape[1]) >= observation.time[:, None]
        return np.asarray(1 - (likeliest * ahead).sum(axis=1) / ahead.sum(axis=1))


@dataclass(eq=False)
class Dime(Method):
    """DIME with predictor and value network trained together; one fit serves every setting.

    The setting is `{"threshold": drop of the loss per cost}`, `{"budget": cost}` or
    `{"confidence": mean probability of the likeliest class}`.

    Args:
        stop: What ends the acquisitions.
        order: `"value"`, as published, acquires the best slot first, at any visit, and so closes
            the visits before it. `"time"` acquires every slot above the threshold, the earliest
            visit first; with a budget or confidence there is no threshold, and value decides.
        preset: `"paper"` for the published networks.
        hidden: Units of the value network's two hidden layers; those of the published predictor
            if `preset="paper"`.
        expected_drop: Learn from the drop of the loss the predictor expects of itself (its
            entropy) instead of the realized one: less noise, but only as good as its calibration.
        epsilon: Share of random acquisitions at the beginning of training.
        n_updates: Steps of joint training; chosen by the size of the cohort by default.
        quick: A quick run: short training.
    """

    name = "dime"
    shares_predictor = True
    adapts_predictor = True
    acts_within_visit = True

    stop: Stop = "threshold"
    order: Order = "time"
    preset: Preset = "default"
    hidden: Count = 128
    expected_drop: bool = False
    epsilon: Share = 0.05
    n_updates: Count | None = None
    quick: bool = False

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Exploration, what is learned from, order, and size (the published one is fixed)."""
        space: dict[str, Any] = {"epsilon": (0.02, 0.3), "expected_drop": [False, True]}
        if self.stop == "threshold":
            space["order"] = ["time", "value"]
        if self.preset == "default":
            space["hidden"] = [64, 128, 256]
        return suggest(trial, space)

    def check_predictor(self, predictor: Predictor) -> None:
        require_network(predictor, f"Method '{self.name}'", "trains the predictor further")

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        self.check_options()
        if predictor is None:
            shared = fit_predictor(train, val, self.preset, seed, progress, quick=self.quick)
        else:
            self.check_predictor(predictor)
            shared = as_cross_fitted(predictor, train, val, seed, progress)
        n_updates = self.n_updates
        if n_updates is None:
            n_updates = 300 if self.quick else 3000 if len(train) > 1000 else 1000
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.predictor_ = copy.deepcopy(shared)  # joint training changes it
            first = self.predictor_.networks[0]
            frame = first.encoder_.width - first.encoder_.slot_width
            self.value_ = ValueNet(
                first.encoder_.slot_width,
                frame - train.n_times,
                train.catalog.open_slots.shape,
                self.hidden if self.preset == "default" else getattr(first, "hidden", self.hidden),
                0.3 if len(train) < 1000 else 0.0,
            )
            order = self.order if self.stop == "threshold" else "value"
            rules = Rules(self.availability, self.results)
            joint = JointTraining(
                self.predictor_, self.value_, train, order, self.expected_drop, seed, rules
            )
            self.losses_ = joint.run(val, n_updates, self.epsilon, progress)
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "value_")
        rules: dict[str, Any] = {"availability": self.availability, "results": self.results}

        def point_at(value: float) -> tuple[float, float]:
            if self.stop == "budget":
                policy = self._policy_at(-np.inf, budget=value)
                return cost_and_loss(rollout(policy, val, budget=value, **rules))
            return cost_and_loss(rollout(self._policy_at(value), val, **rules))

        high = cost_of_everything(val) if self.stop == "budget" else self._highest_limit(val)
        ends = CurveEnds.of(self.predictor_, val)
        knobs = search_knob(point_at, (1e-4 * high, high), ends, n_points)
        if self.stop == "budget":
            return [{"budget": round(float(limit), 6)} for limit in knobs]
        if self.stop == "confidence":
            return [{"confidence": 1 - limit} for limit in knobs]
        return [{"threshold": limit} for limit in knobs]

    def _highest_limit(self, val: Cohort) -> float:
        """Above this limit nothing that costs is acquired: it begins with knowing nothing."""
        if self.stop == "confidence":
            return 1.0
        start = Environment(val, availability=self.availability).observe()
        ratios = self._policy_at(-np.inf).ratios(start)
        # What is free has a ratio beyond all others and would leave no room for them.
        costs = slot_prices(val.catalog, start.committed) > FREE
        return max(float(ratios[costs].max(initial=0.0)), 1e-6)

    def policy(self, setting: dict[str, Any]) -> Policy:
        require_fitted(self, "value_")
        value = knob_value(self, setting, self.stop)
        if self.stop == "budget":
            return self._policy_at(-np.inf, budget=value)
        return self._policy_at(value if self.stop == "threshold" else 1 - value)

    def _policy_at(self, limit: float, budget: float = np.inf) -> DimePolicy:
        return DimePolicy(self.predictor_, self.value_, self.stop, limit, self.order, budget)

    def state(self) -> State:
        config = {"arguments": self.arguments(), "losses": self.losses_}
        sizes = {"slot_width": self.value_.slot_width, "shape": self.value_.shape}
        value = (sizes, net_arrays(self.value_))
        return nest(config, {}, predictor=self.predictor_.state(), value=value)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        out = cls(**config["arguments"])
        out.losses_ = config["losses"]
        out.predictor_ = CrossFittedPredictor.from_state(*take_part(config, arrays, "predictor"))
        sizes, weights = take_part(config, arrays, "value")
        (length, n_features), slot_width = sizes["shape"], sizes["slot_width"]
        hidden, width = weights["layers.0.weight"].shape
        context_width = width - length * (slot_width + 1) - n_features
        net = ValueNet(slot_width, context_width, (length, n_features), hidden, 0.0)
        out.value_ = load_net(net, weights)
        return out
