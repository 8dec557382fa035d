"""DiFA over time: the gradient of the loss reaches the policy through the acquisitions.

Ghosh and Lan, "DiFA: Differentiable Feature Acquisition" (AAAI 2023); their code is not public.
The state holds the acquired values, imputations of the rest by a VAEAC, and the mask. A policy
network gives one logit for everything not yet acquired, a straight-through Gumbel-softmax picks
one, and the predictor's loss after the acquisition is differentiated through the pick: the
forward pass acquires one slot, the backward pass asks how much a little more of each slot, its
value in place of its imputation, would have lowered the loss.

As in the comparison of the NOCTA paper, the `L * M` slots of the current visit or later are
acquired, one at a time; acquiring one moves the clock to its visit. Predictor and policy have two
layers of 128 units with a skip connection, dropout and LeakyReLU. Differences from the source, and
what it and the paper leave open:

- **Stopping.** The source acquires a fixed number of features. The published costs over time are
  not whole numbers, so a cost term decides there. The loss here is the cross-entropy plus
  `cost_weight` times the charge: one training run per cost weight. The policy gives every state a
  probability of stopping, and the loss is its exact expectation over when an episode stops. As one
  more pick of the Gumbel-softmax, stopping took over: costs are linear in a pick and gains are not,
  so the slope of the loss at an acquired slot is smaller than what the slot gained.
- **Visits.** By default a visit's results come back when it is over. The state then holds
  imputations and flags for what is pending, ending the visit is one more pick of the
  Gumbel-softmax, and stopping is decided between visits. Under `results="at-once"` each result is
  shown before the next pick, as in the source, which has no visits.
- **Loss.** Predictions are causal, each from what was acquired up to its own time. The
  cross-entropy is that of the predictions at the time of stopping; `step_share` mixes in the mean
  over all steps of an episode, which was worse on validation. A training step uses one labeled
  time per subject.
- **Near slots first.** A logit has a learned share for how far ahead its slot is. Training begins
  with nearly everything acquired in the order of time, and the cost weight rises to its value. With
  equal logits a first pick in the middle would close half of all slots; no gradient corrects that,
  since closing is not differentiable.
- **Start.** The predictor is trained under random masks first, with dropout chosen on validation,
  and each cost weight continues from there. Imputer and this predictor are fitted once per seed.
- **Temperature** falls from 1 to 0.5; 0.1 was worse on validation. At test the largest logit wins,
  an episode stops if stopping is more likely than not, and imputations are means: nothing is drawn.
- **Imputations are constants** of a step: no gradient passes the imputer, which stays as fitted.
- The weights kept are the best on validation by the loss above, without noise.

Modules: `vaeac` (the imputer), `networks` (networks and policy), `episodes` (differentiable
episodes).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.operating_points import cost_of_everything
from nocta.core.options import Count, Options, Positive, Share, given_values, read_options
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.core.random_plans import random_requests
from nocta.methods.contract import Trial, suggest
from nocta.methods.difa.episodes import Subjects
from nocta.methods.difa.networks import DifaModel, DifaNetworks, DifaPolicy
from nocta.methods.difa.vaeac import VAEAC_TRAINING, Vaeac
from nocta.methods.retrained import Grid, RetrainedMethod
from nocta.model.state import Arrays, State, load_net, nest, net_arrays, take_part
from nocta.predictors.encoding import InputEncoder
from nocta.predictors.training import TrainingConfig, train

DropRate = Annotated[float, Field(ge=0, lt=1)]
PREDICTOR_TRAINING = TrainingConfig(epochs=100, learning_rate=6e-3, patience=4, check_every=10)
#: With fewer subjects than this, batches hold this many of them.
_FEW, _SMALL_BATCH = 2000, 64


class DifaOptions(Options):
    """What the source and the paper leave open, and how long to train."""

    hidden: Count = 128
    """Units of each layer of predictor, policy and imputer."""
    dropouts: tuple[DropRate, ...] = Field(default=(0.0, 0.3), min_length=1)
    """Rates to choose from on validation."""
    step_share: Share = 0.0
    """Weight of the mean over all acquisitions in the cross-entropy."""
    last_temperature: Positive = 0.5
    """Temperature of the Gumbel-softmax at the end of training; it begins at 1."""
    nearness: float = 4.0
    """How much a logit falls per slot ahead, initially."""
    stop_logit: float = -3.0
    """Added to the logit of stopping, initially."""
    end_logit: float = 1.0
    """Added to the logit of ending a visit, initially, if results come back after the visit."""
    ramp: Positive = 0.5
    """Share of the joint training over which the cost weight rises from 0 to its value."""
    max_acquisitions: Count | None = None
    """Maximum number of requests per subject, unavailable ones included; no limit by default."""
    epochs: Count = 12
    """Length of joint training at each cost weight; more if there are few subjects."""
    min_steps: Count = 40
    """Minimum number of steps of joint training, however few subjects there are."""
    learning_rate: Positive = 4e-3
    """Learning rate of joint training."""
    imputer: TrainingConfig = VAEAC_TRAINING
    """Training of the imputer."""
    predictor: TrainingConfig = PREDICTOR_TRAINING
    """Training of the predictor under random masks."""


@dataclass(eq=False)
class Difa(RetrainedMethod):
    """DiFA: one training run per cost weight.

    The setting is `{"cost_weight": w}`.

    Args:
        options: `DifaOptions`, or some of them by name.
    """

    name = "difa"
    acts_within_visit = True
    knob = "cost_weight"
    bundle = DifaOptions

    options: DifaOptions | Mapping[str, Any] | None = None
    grid: Grid = None
    quick: bool = False

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Size and pace, how strongly near slots are preferred, and the shape of the loss."""
        ranges = {"learning_rate": (1e-3, 1e-2), "nearness": (1.0, 8.0)}
        choices = {"last_temperature": [0.1, 0.5, 1.0], "step_share": [0.0, 0.3, 0.7]}
        return suggest(trial, {"hidden": [64, 128, 256], **ranges, **choices})

    def _knob_range(self, train: Cohort) -> tuple[float, float]:
        """Around the weight at which everything costs as much as knowing the labels saves."""
        counts = np.bincount(train.labels[train.labeled], minlength=train.n_classes)
        share = counts / max(int(counts.sum()), 1)
        entropy = -float((share * np.log(np.maximum(share, 1e-12))).sum())
        scale = max(entropy, 0.1) / max(cost_of_everything(train), 1e-9)
        return 0.03 * scale, 2.0 * scale

    def _read_options(self) -> DifaOptions:
        """The options as given; a quick run shortens those that are not."""
        if isinstance(self.options, DifaOptions):
            return _shortened(self.options) if self.quick else self.options
        usual = _shortened(DifaOptions()) if self.quick else DifaOptions()
        return read_options(DifaOptions, {**dict(usual), **given_values(self.options)})

    def _prepare(
        self, train: Cohort, val: Cohort, seed: int, predictor: Predictor | None, progress: bool
    ) -> None:
        self._options = self._read_options()
        most = self._options.max_acquisitions
        self._most_acquisitions = int(train.catalog.open_slots.sum()) if most is None else most
        self._imputer = Vaeac(self._options.hidden, training=self._options.imputer, seed=seed)
        self._imputer.fit(train, val, InputEncoder().fit(train), progress)
        found = [self._pretrain(p, train, val, seed, progress) for p in self._options.dropouts]
        self._start = min(found, key=lambda pair: pair[0])[1]

    def _pretrain(
        self, dropout: float, train_cohort: Cohort, val: Cohort, seed: int, progress: bool
    ) -> tuple[float, DifaNetworks]:
        """Networks whose predictor knows random masks, and its loss on validation."""
        encoder, shape = self._imputer.encoder_, train_cohort.catalog.open_slots.shape
        width = shape[0] * encoder.slot_width + shape[0] + 2 * encoder.context_.width
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            networks = DifaNetworks(
                width,
                train_cohort.n_classes,
                shape,
                self._options.hidden,
                self._options.nearness,
                self._options.stop_logit,
                self._options.end_logit,
            )
            networks.set_dropout(dropout)
            model = DifaModel(self._imputer, networks)
            data, held_out = Subjects(model, train_cohort), Subjects(model, val)
            rng = np.random.default_rng(seed)
            fixed_rng = np.random.default_rng(seed + 1)
            open_slots = train_cohort.catalog.open_slots
            everybody = np.arange(len(val))
            masks = torch.from_numpy(random_requests(len(val), open_slots, fixed_rng)).float()

            def batch_loss(index: NDArray[np.int64]) -> Tensor:
                asked = torch.from_numpy(random_requests(len(index), open_slots, rng)).float()
                return data.loss(index, asked, data.some_pairs(index, 4, rng))

            log = train(
                networks.predictor,
                len(train_cohort),
                batch_loss,
                lambda: float(held_out.loss(everybody, masks, held_out.pairs(everybody))),
                self._options.predictor,
                rng,
                description=f"predictor, dropout {dropout:g}",
                progress=progress,
            )
        return min(log.validation_losses), networks

    def _train(self, value: float, train: Cohort, val: Cohort, seed: int, progress: bool) -> Policy:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = DifaModel(self._imputer, copy.deepcopy(self._start))
            rng = np.random.default_rng(seed)
            self._train_jointly(model, value, train, val, rng, progress)
        return DifaPolicy(model, self._most_acquisitions)

    def _train_jointly(
        self,
        model: DifaModel,
        cost_weight: float,
        train_cohort: Cohort,
        val: Cohort,
        rng: np.random.Generator,
        progress: bool,
    ) -> None:
        options = self._options
        rules = (self.availability, self.results)
        data, held_out = Subjects(model, train_cohort, *rules), Subjects(model, val, *rules)
        everybody = np.arange(len(val))
        config = _joint_training(options, len(train_cohort))
        n_steps = config.n_steps(len(train_cohort))
        temperatures = iter(np.geomspace(1.0, options.last_temperature, n_steps))
        weights = iter(cost_weight * np.minimum(np.arange(n_steps) / (options.ramp * n_steps), 1))

        def batch_loss(index: NDArray[np.int64]) -> Tensor:
            episode = data.episode(index, self._most_acquisitions, float(next(temperatures)))
            pairs = data.some_pairs(index, 1, rng)
            share = (1 - options.step_share) * episode.stops + options.step_share * episode.visited
            error = (share[:, pairs.row] * data.losses_along(index, episode, pairs)).sum(dim=0)
            charge = (episode.stops * episode.cost).sum(dim=0)
            return error.sum() / max(len(error), 1) + float(next(weights)) * charge.mean()

        def validation_loss() -> float:
            episode = held_out.episode(everybody, self._most_acquisitions)
            error = held_out.loss(everybody, episode.requested[-1], held_out.pairs(everybody))
            return float(error + cost_weight * episode.cost[-1].mean())

        train(
            model.networks,
            len(train_cohort),
            batch_loss,
            validation_loss,
            config,
            rng,
            description=f"difa at {cost_weight:.3g}",
            progress=progress,
        )

    def _shared_state(self) -> State:
        config = {"most_acquisitions": self._most_acquisitions}
        return nest(config, {}, imputer=self._imputer.state())

    def _recall_shared(self, config: dict[str, Any], arrays: Arrays) -> None:
        self._most_acquisitions = config["most_acquisitions"]
        self._imputer = Vaeac.from_state(*take_part(config, arrays, "imputer"))

    def _policy_state(self, policy: DifaPolicy) -> State:
        networks = policy.model.networks
        return {"shape": [networks.n_times, networks.n_features]}, net_arrays(networks)

    def _recall_policy(self, config: dict[str, Any], arrays: Arrays) -> Policy:
        hidden, width = arrays["predictor.first.weight"].shape
        n_classes, shape = len(arrays["predictor.head.weight"]), tuple(config["shape"])
        networks = DifaNetworks(width, n_classes, shape, hidden, 0.0, 0.0, 0.0)
        return DifaPolicy(
            DifaModel(self._imputer, load_net(networks, arrays)), self._most_acquisitions
        )


def _joint_training(options: DifaOptions, n_train: int) -> TrainingConfig:
    config = TrainingConfig(learning_rate=options.learning_rate)
    if n_train < _FEW:
        config = replace(config, batch_size=_SMALL_BATCH)
    epochs = max(options.epochs, -(-options.min_steps // config.n_batches(n_train)))
    # Never stopped early: the cost weight has to reach its value and the temperature its end.
    return replace(config, epochs=epochs, patience=epochs, check_every=max(1, epochs // 6))


def _shortened(options: DifaOptions) -> DifaOptions:
    """For a quick run: a third of the epochs, one dropout rate."""

    def shorter(config: TrainingConfig) -> TrainingConfig:
        return replace(config, epochs=max(4, config.epochs // 3))

    return options.model_copy(
        update={
            "dropouts": options.dropouts[:1],
            "epochs": max(3, options.epochs // 3),
            "imputer": shorter(options.imputer),
            "predictor": shorter(options.predictor),
        }
    )
