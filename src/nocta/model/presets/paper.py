"""The `paper` preset: architectures, hyper-parameters and search as published.

Ten-unit networks (section 4.3, appendix B.3), five neighbors, a thousand random plans. As in the
paper, an embedding is trained for one cost weight: there are a few, and the nearest is used.
`docs/explanation/paper-choices.md` lists what the text leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.estimator import NoctEstimator
from nocta.core.losses import TrajectoryLoss
from nocta.core.policy import Observation
from nocta.core.predictor import Predictor, require_network
from nocta.model.presets.base import Planner, Task, break_even_weight, slot_worth
from nocta.model.presets.default_state import restore_retrieval, retrieval_state
from nocta.model.presets.options import PaperOptions
from nocta.model.state import State, nest, take_part
from nocta.planning.algorithm import Search
from nocta.planning.estimators.amortized_mlp import AMORTIZED_TRAINING, AmortizedMLPEstimator
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.embedding import Embedding
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.objective import self_expected_losses
from nocta.planning.plan_values import PlanValues
from nocta.planning.search import FoundPlans, draw_candidates, sample_search
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.registry import predictor_state, restore_predictor
from nocta.predictors.training import TrainingConfig


@dataclass(eq=False)
class PaperPlanner(Planner):
    """A fitted `paper` preset; see the module.

    `"ensemble"` keeps the estimator that is better on validation, since the two predict on
    different scales.
    """

    chunk = 64

    name: str
    options: PaperOptions
    base: CrossFittedPredictor  # as trained under random masks
    cost_scale: float
    worth: NDArray[np.float64]  # (L, M) worth of each slot, for guided plans
    seed: int
    amortized: AmortizedMLPEstimator | None = None  # with its fine-tuned predictor
    contrastive: dict[float, ContrastiveEstimator] = field(default_factory=dict)  # by cost weight

    @property
    def loss(self) -> TrajectoryLoss:
        mean = self.options.loss_reduction == "mean"
        return "mean-cross-entropy" if mean else "cross-entropy"

    @property
    def predictor(self) -> Predictor:  # type: ignore[override]
        """Fine-tuned along with the amortized estimator, as published; plain otherwise."""
        return self.base if self.amortized is None else self.amortized.predictor_

    def estimator(self, cost_weight: float) -> NoctEstimator:
        """The estimator that plans at this cost weight."""
        if self.amortized is not None:
            return self.amortized
        distance = {w: abs(np.log(w / max(cost_weight, 1e-9))) for w in self.contrastive}
        return self.contrastive[min(distance, key=lambda w: distance[w])]

    def search(self, cost_weight: float) -> Search:
        estimator = self.estimator(cost_weight)

        worth = self.worth if self.options.guided else None

        def find(observation: Observation, weights: NDArray[np.float64], /) -> FoundPlans:
            plans = draw_candidates(observation, self.options.n_candidates, self.seed, worth)
            charges = observation.catalog.cost_of(plans)
            found = sample_search(estimator, observation, plans, charges, weights)
            if self.amortized is None:
                return found
            # The published network predicts gains; what stopping costs makes losses of them.
            return found.shifted(self._loss_if_stopping(self.amortized, observation))

        return find

    def _loss_if_stopping(
        self, amortized: AmortizedMLPEstimator, observation: Observation
    ) -> NDArray[np.float64]:
        """What the predictor expects of itself after the current slot, `(n,)`."""
        predictor = amortized.predictor_
        log_proba = predictor.log_proba(predictor.encode(observation.history))
        losses = self_expected_losses(log_proba, "cross-entropy")
        later = losses[:, int(observation.time[0]) + 1 :]
        total = later.sum(1) if self.options.loss_reduction == "sum" else later.mean(1)
        return total.double().numpy()

    def values(self, cost_weight: float) -> PlanValues:
        return PlanValues(self.estimator(cost_weight))

    # -- fitting --------------------------------------------------------------------

    @classmethod
    def fit(cls, task: Task) -> Self:
        train, val, estimator, seed = task.train, task.val, task.estimator, task.seed
        knobs: PaperOptions = task.options
        if task.predictor is not None:
            require_network(task.predictor, "The 'paper' preset", "trains the predictor further")
        base = task.cross_fitted("paper")
        targets = LossTargets(train, base.members, base.fold, ("cross-entropy",))
        scale = break_even_weight(targets, train)
        worth = slot_worth(targets, train) if knobs.guided else np.zeros(train.recorded.shape[1:])
        planner = cls(estimator, knobs, base, scale, worth, seed)
        if estimator != "amortized":
            planner.contrastive = planner._fit_contrastive(train, val, targets, task.progress)
        if estimator == "contrastive":
            return planner
        net = AmortizedMLPEstimator(
            hidden=getattr(base.members[0], "hidden", 10),
            joint_weight=knobs.joint_weight,
            fine_tune=knobs.fine_tune,
            pin_stopping=knobs.pin_stopping,
            reduction=knobs.loss_reduction,
            training=replace(AMORTIZED_TRAINING, epochs=knobs.amortized_epochs),
            seed=seed,
        )
        planner.amortized = net.fit(base.networks[0], train, val, progress=task.progress)
        if estimator == "ensemble":
            planner._keep_better(val)
        return planner

    def _fit_contrastive(
        self, train: Cohort, val: Cohort, targets: LossTargets, progress: bool
    ) -> dict[float, ContrastiveEstimator]:
        """One embedding per cost weight; other metrics need none."""
        if self.options.metric != "embedding":
            return {self.cost_scale: self._retrieval(train, targets, None)}
        val_targets = LossTargets(val, self.base.members[:1], kinds=("cross-entropy",))
        out = {}
        for factor in self.options.embedding_weights:
            weight = self.cost_scale * factor
            embedding = Embedding(
                n_top_plans=self.options.n_top_plans,
                similarity_scale=self.options.similarity_scale,
                margin=self.options.margin,
                weighting=self.options.weighting,
                reduction=self.options.loss_reduction,
                n_candidates=100,
                training=TrainingConfig(
                    epochs=self.options.embedding_epochs,
                    batch_size=64,
                    learning_rate=1e-3,
                    schedule="constant",
                    check_every=1,
                ),
                seed=self.seed,
            )
            embedding.fit(train, targets, val, val_targets, [weight], progress=progress)
            out[weight] = self._retrieval(train, targets, embedding)
        return out

    def _retrieval(
        self, train: Cohort, targets: LossTargets, embedding: Embedding | None
    ) -> ContrastiveEstimator:
        first = self.base.networks[0]
        bank = NeighborBank(
            train,
            self.options.metric,
            encoder=first.encoder_ if embedding is None else embedding.encoder_,
            embedding=embedding,
            predictor=first,
            n_neighbors=self.options.n_neighbors,
            radius=self.options.radius,
            kernel=self.options.kernel,
        )
        return ContrastiveEstimator(bank, targets, reduction=self.options.loss_reduction)

    def _keep_better(self, val: Cohort) -> None:
        """Drop the estimator that does worse on validation."""
        some = val.subset(np.random.default_rng(self.seed).permutation(len(val))[:150])
        both = (self.amortized, self.contrastive)
        regret = []
        for amortized, contrastive in ((both[0], {}), (None, both[1])):
            self.amortized, self.contrastive = amortized, contrastive
            tried = [self.regret(some, self.cost_scale * f).mean() for f in (0.3, 0.6, 1.0)]
            regret.append(sum(tried))
        better = int(np.argmin(regret))
        self.amortized, self.contrastive = (both[0], {}) if better == 0 else (None, both[1])

    # -- saving -----------------------------------------------------------------------

    def state(self) -> State:
        config = {
            "estimator": self.name,
            "options": self.options.model_dump(),
            "cost_scale": self.cost_scale,
            "seed": self.seed,
            "weights": list(self.contrastive),
        }
        parts: dict[str, State] = {"base": self.base.state()}
        if self.amortized is not None:
            parts["amortized"] = self.amortized.state()
            parts["tuned"] = predictor_state(self.amortized.predictor_)
        for i, estimator in enumerate(self.contrastive.values()):
            parts[f"contrastive{i}"] = retrieval_state(estimator)
        return nest(config, {"worth": self.worth}, **parts)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        base = CrossFittedPredictor.from_state(*take_part(config, arrays, "base"))
        amortized = None
        if "amortized" in config:
            tuned = restore_predictor(*take_part(config, arrays, "tuned")).network
            assert tuned is not None
            parts = take_part(config, arrays, "amortized")
            amortized = AmortizedMLPEstimator.from_state(*parts, predictor=tuned)
        contrastive = {
            weight: restore_retrieval(base, *take_part(config, arrays, f"contrastive{i}"))
            for i, weight in enumerate(config["weights"])
        }
        return cls(
            config["estimator"],
            PaperOptions(**config["options"]),
            base,
            config["cost_scale"],
            arrays["worth"],
            config["seed"],
            amortized,
            contrastive,
        )
