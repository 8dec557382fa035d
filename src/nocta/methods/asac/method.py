"""ASAC: a selector that decides what to acquire next, trained against a predictor.

Yoon, Jordon and van der Schaar, "ASAC: Active Sensing using Actor-Critic Models" (MLHC 2019). A
recurrent selector (the actor) reads what was acquired so far and opens or closes a gate for every
feature of the next visit. A predictor (the critic) reads what passed the gates. Both minimize

    mean cross-entropy of a labeled time + mu * cost of a subject.

Differences from the original:

- The selector reads only what was acquired. In the released code it reads the whole previous
  visit, acquired or not.
- Gates are hard and drawn at random in training; the predictor's gradient passes straight through
  them. `gradient="policy"` uses the policy gradient instead, with the predictor's loss as the
  reward and a state value as baseline. On the synthetic task, the policy gradient comes as close or
  closer to the optimum if `mu` is low, and closes nearly all gates for good if it is high. With the
  straight-through gradient, costs follow `mu` smoothly.
- The weight of the cost rises to `mu` over the first part of training, for the same reason.
- `mu` weighs the cost of one subject, fees included. In the released code it weighs the sum over
  the training set, so the paper's values mean nothing here. Values are found on validation, around
  the gain of everything over nothing, per cost of everything.
- `predictor="shared"` (the NOCTA paper's setting) adapts the predictor all methods are given to the
  gates. `"lstm"` (the original's) trains its own together with the selector, then fits a new one.
- A visit with every gate closed is passed over: the selector is asked about the next one.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from nocta.core.cohort import Cohort
from nocta.core.options import Count, NonNegative, Preset
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.predictor import Predictor, require_network
from nocta.core.rollout import rollout
from nocta.methods.asac.training import SMALL, Gradient, JointTraining, Selector, judge
from nocta.methods.contract import Trial, suggest
from nocta.methods.fixed import first_affordable
from nocta.methods.retrained import Grid, RetrainedMethod
from nocta.model.state import Arrays, State, load_net, nest, net_arrays, take_part
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted
from nocta.predictors.encoding import InputEncoder
from nocta.predictors.fitting import fit_predictor
from nocta.predictors.recurrent import LSTMPredictor
from nocta.predictors.registry import predictor_state, restore_predictor
from nocta.predictors.replay import ReplayedRequests
from nocta.predictors.training import TrainingConfig

PredictorKind = Literal["shared", "lstm"]


@dataclass(eq=False)
class AsacPolicy(Policy):
    """Goes to the next visit with an open gate and acquires what is behind it."""

    predictor: Predictor
    selector: Selector
    encoder: InputEncoder

    @torch.no_grad()
    def decide(self, observation: Observation) -> Decision:
        # Nothing is acquired at later visits yet, so their gates are those of passing by.
        logits = self.selector(self.encoder.encode(observation.history))[0].numpy()
        return first_affordable(observation, (logits > 0) & observation.open_slots, -logits)


@dataclass(eq=False)
class Asac(RetrainedMethod):
    """Selector and predictor trained together, once for every cost coefficient.

    The setting is `{"mu": loss per labeled time that one unit of a subject's cost is worth}`.

    Args:
        predictor: `"shared"` or `"lstm"`, see the module.
        gradient: `"straight-through"` or `"policy"`, see the module.
        hidden: Units of the selector; chosen by the size of the cohort by default.
        epochs: Length of joint training; chosen by the size of the cohort by default.
        entropy: Initial weight of the entropy of the gates if `gradient="policy"`; it falls
            linearly to 0.
        preset: Preset of the shared predictor, if none is given.
    """

    name = "asac"
    shares_predictor = True
    adapts_predictor = True
    knob = "mu"
    knob_range: ClassVar[tuple[float, float]] = (0.2, 2.0)

    predictor: PredictorKind = "shared"
    gradient: Gradient = "straight-through"
    hidden: Count | None = None
    epochs: Count | None = None
    entropy: NonNegative = 0.01
    grid: Grid = None
    preset: Preset = "default"
    quick: bool = False

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Size of the selector, how it learns, and how it explores if that counts."""
        gradients = ["straight-through", "policy"]
        out = suggest(trial, {"hidden": [None, 32, 64, 128], "gradient": gradients})
        if out["gradient"] == "policy":
            out |= suggest(trial, {"entropy": (0.001, 0.1)})
        return out

    def __post_init__(self) -> None:
        self.shares_predictor = self.predictor == "shared"

    def check_predictor(self, predictor: Predictor) -> None:
        super().check_predictor(predictor)
        require_network(predictor, f"Method '{self.name}'", "trains the predictor further")

    def _prepare(
        self, train: Cohort, val: Cohort, seed: int, predictor: Predictor | None, progress: bool
    ) -> None:
        if self.predictor == "lstm":
            first = self._lstm(train, seed).fit(train, val, progress=progress)
            self.pretrained_ = CrossFittedPredictor.single(first, train, expected=True)
        elif predictor is None:
            self.pretrained_ = fit_predictor(
                train, val, self.preset, seed, progress, quick=self.quick
            )
        else:
            self.check_predictor(predictor)
            self.pretrained_ = as_cross_fitted(predictor, train, val, seed, progress)

    def _knob_range(self, train: Cohort) -> tuple[float, float]:
        """In units of what everything gains over nothing, per cost of everything."""
        nothing, everything = (
            judge(self.pretrained_, train, np.broadcast_to(ask, train.recorded.shape))
            for ask in (np.zeros((1, 1, 1), bool), np.ones((1, 1, 1), bool))
        )
        gain = max(nothing[0] - everything[0], 0.02 * nothing[0], 1e-6)
        unit = gain / max(everything[1], 1e-9)
        return self.knob_range[0] * unit, self.knob_range[1] * unit

    def _train(self, value: float, train: Cohort, val: Cohort, seed: int, progress: bool) -> Policy:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            start = copy.deepcopy(self.pretrained_)
            joint = JointTraining(self, start, train, value, seed, self.availability)
            joint.run(val, progress)
        policy = AsacPolicy(joint.predictor, joint.selector, joint.data[0].encoder)
        if self.predictor == "lstm":
            asked = rollout(
                policy, train, availability=self.availability, seed=seed
            ).history.requested
            slots = train.catalog.open_slots
            replayed = ReplayedRequests(np.arange(len(train)), asked, slots, share=0.8)
            fresh = self._lstm(train, seed + 1)
            policy.predictor = fresh.fit(train, val, requests=replayed, progress=progress)
        return policy

    def _lstm(self, train: Cohort, seed: int) -> LSTMPredictor:
        small = len(train) < SMALL
        steps = 300 if self.quick else 1500
        epochs = max(8, round(steps * 128 / len(train)))
        config = TrainingConfig(
            epochs=min(epochs, 200),
            batch_size=64 if small else 128,
            learning_rate=6e-3,
            weight_decay=1e-2 if small else 0.0,
            check_every=max(1, min(epochs, 200) // 20),
        )
        return LSTMPredictor(
            hidden=32 if small else 64, dropout=0.4 if small else 0.0, training=config, seed=seed
        )

    def _policy_state(self, policy: AsacPolicy) -> State:
        selector, encoder = net_arrays(policy.selector), policy.encoder.state()
        predictor = predictor_state(policy.predictor)
        return nest({}, {}, predictor=predictor, selector=({}, selector), encoder=({}, encoder))

    def _recall_policy(self, config: dict[str, Any], arrays: Arrays) -> Policy:
        own = take_part(config, arrays, "predictor")
        lstm = own[0]["kind"] == LSTMPredictor.kind
        predictor = LSTMPredictor.from_state(*own) if lstm else restore_predictor(*own)
        encoder = InputEncoder.from_state(take_part(config, arrays, "encoder")[1])
        weights = take_part(config, arrays, "selector")[1]
        hidden = len(weights["embed.weight"])
        net = Selector(encoder.width, encoder.slot_width, encoder.n_features_, hidden, 0.0)
        return AsacPolicy(predictor, load_net(net, weights), encoder)
