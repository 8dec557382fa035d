"""DiFA over time: the gradient of the loss reaches the policy through the acquisitions.

Ghosh and Lan, "DiFA: Differentiable Feature Acquisition" (AAAI 2023); their code is not public.
The state holds the acquired values, imputations of the rest by a VAEAC, and the mask. A policy
network gives one logit for everything not yet acquired, a straight-through Gumbel-softmax picks
one, and the predictor's loss after the acquisition is differentiated through the pick: the
forward pass acquires one slot, the backward pass asks how much a little more of each slot, its
value in place of its imputation, would have lowered the loss.

As in the comparison of the NOCTA paper, what is acquired are the `L * M` slots of the current
visit or later, one at a time; acquiring one moves the clock to its visit. Predictor and policy
have two layers of 128 units with a skip connection, dropout and LeakyReLU. Where this departs
from the source, and what it and the paper leave open:

- **Stopping.** The source acquires a fixed number of features. The published costs over time are
  no whole numbers, so there a cost term decides: here stopping is one more action, and the loss is
  the cross-entropy plus `cost_weight` times what was charged. One training run per cost weight.
- **Loss.** Predictions are causal, `(subject, time)` by `(subject, time)`. The cross-entropy is
  the mean over time of the predictions after all acquisitions, and, with weight `step_share`, of
  those after a random number of them (an estimate of the mean over acquisitions). Each training
  step looks at a few random times of each subject.
- **Near slots first.** A logit has a learned share for how far ahead the slot is, which begins at
  `-1` per slot. With equal logits a first pick in the middle would close half of all slots, to
  which no gradient objects, since closing is not differentiable.
- **Start.** The predictor is trained under random masks first, with dropout chosen on validation,
  and each cost weight goes on from there. Imputer and this predictor are fitted once per seed.
- **Temperature** falls geometrically from 1 to 0.1 over the training. At test the largest logit
  is taken, and imputations are means: nothing is drawn.
- **Imputations are constants** of a step: no gradient through the imputer, which stays as fitted.
- The weights kept are the best on validation by the loss above, without noise.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.cohort.cohort import Cohort
from nocta.plans.sample import random_requests
from nocta.policies.base import Policy
from nocta.policies.difa_model import DifaModel, DifaNetworks, DifaPolicy
from nocta.policies.method import Trial, cost_of_everything
from nocta.policies.one_at_a_time import slot_prices
from nocta.policies.retrained import RetrainedMethod
from nocta.predictors.base import Predictor
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.training import TrainingConfig, train
from nocta.predictors.vaeac import VAEAC_TRAINING, Vaeac

PREDICTOR_TRAINING = TrainingConfig(epochs=100, learning_rate=6e-3, patience=4, check_every=10)
POLICY_TRAINING = TrainingConfig(epochs=9, learning_rate=2e-3, patience=99, check_every=3)


@dataclass(frozen=True)
class DifaOptions:
    """What the source and the paper leave open, and how long to train.

    Args:
        hidden: Units of each layer of predictor, policy and imputer.
        dropouts: Rates to choose from on validation.
        step_share: Weight of the predictions before the last acquisition, from 0 to 1.
        temperatures: Of the Gumbel-softmax, at the start and at the end of training.
        nearness: By how much a logit falls per slot ahead, to begin with.
        stop_logit: Added to the logit of stopping, to begin with.
        ramp: Share of the joint training over which the cost weight rises from 0 to its value.
        pairs_per_subject: Times of each subject a training step looks at, on average.
        max_acquisitions: Of one subject.
        imputer: Training of the imputer.
        predictor: Training of the predictor under random masks.
        policy: Joint training of predictor and policy, at each cost weight.
    """

    hidden: int = 128
    dropouts: tuple[float, ...] = (0.0, 0.3)
    step_share: float = 0.0
    temperatures: tuple[float, float] = (1.0, 0.1)
    nearness: float = 4.0
    stop_logit: float = -3.0
    ramp: float = 0.5
    pairs_per_subject: int = 1
    max_acquisitions: int = 200
    imputer: TrainingConfig = VAEAC_TRAINING
    predictor: TrainingConfig = PREDICTOR_TRAINING
    policy: TrainingConfig = POLICY_TRAINING


class Difa(RetrainedMethod):
    """DiFA, one training run per cost weight; the setting is `{"cost_weight": w}`.

    Args:
        options: What is left open by the source, and how long to train.
        grid: Cost weights to train at; chosen on validation by default.
        quick: A rehearsal: few and short fits.
    """

    name = "difa"
    knob = "cost_weight"
    knob_range = (1e-3, 1.0)

    def __init__(
        self,
        options: DifaOptions | Mapping[str, Any] | None = None,
        grid: Sequence[float] | None = None,
        quick: bool = False,
    ) -> None:
        super().__init__(grid, quick)
        self.options = options

    @classmethod
    def option_bundle(cls, preset: str) -> type[DifaOptions]:
        return DifaOptions

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Size, how strongly near slots are preferred, and two weights of the training."""
        return {
            "hidden": trial.suggest_categorical("hidden", [64, 128, 256]),
            "nearness": trial.suggest_float("nearness", 1.0, 8.0, log=True),
            "step_share": trial.suggest_categorical("step_share", [0.0, 0.3, 0.7]),
            "ramp": trial.suggest_float("ramp", 0.2, 0.8),
        }

    def _knob_range(self, train: Cohort) -> tuple[float, float]:
        """From a fiftieth of to five times the weight at which everything costs one nat."""
        everything = max(cost_of_everything(train), 1e-9)
        return 0.02 / everything, 5.0 / everything

    def _prepare(
        self, train: Cohort, val: Cohort, seed: int, predictor: Predictor | None, progress: bool
    ) -> None:
        given = self.options or DifaOptions()
        options = DifaOptions(**given) if isinstance(given, Mapping) else given
        self._options = _shortened(options) if self.quick else options
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
            )
            networks.set_dropout(dropout)
            model = DifaModel(self._imputer, networks)
            data, held_out = _Subjects(model, train_cohort), _Subjects(model, val)
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
        return DifaPolicy(model, self._options.max_acquisitions)

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
        known = self.availability == "known"
        data, held_out = _Subjects(model, train_cohort, known), _Subjects(model, val, known)
        everybody = np.arange(len(val))
        config = options.policy
        n_steps = config.epochs * max(1, round(len(train_cohort) / config.batch_size))
        temperatures = iter(np.geomspace(*options.temperatures, n_steps))
        weights = iter(cost_weight * np.minimum(np.arange(n_steps) / (options.ramp * n_steps), 1))

        def batch_loss(index: NDArray[np.int64]) -> Tensor:
            episode = data.episode(index, options.max_acquisitions, float(next(temperatures)))
            pairs = data.some_pairs(index, options.pairs_per_subject, rng)
            share = (1 - options.step_share) * episode.stops + options.step_share * episode.visited
            error = (share[:, pairs.row] * data.losses_along(index, episode, pairs)).sum(dim=0)
            charge = (episode.stops * episode.cost).sum(dim=0)
            return error.sum() / max(len(error), 1) + float(next(weights)) * charge.mean()

        def validation_loss() -> float:
            episode = held_out.episode(everybody, options.max_acquisitions)
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


class _Pairs(NamedTuple):
    """Labelled predictions: position in the batch, and time, `(p,)` each."""

    row: Tensor
    time: Tensor


class _Episode(NamedTuple):
    """What a batch acquired, step by step; the first step is before any acquisition.

    Args:
        requested: `(s, b, L, M)` what had been asked for; the last of an episode is repeated.
        cost: `(s, b)` what had been charged.
        stops: `(s, b)` probability of stopping there, summing to one.
        visited: `(s, b)` the same if every step of the episode were as likely.
    """

    requested: Tensor
    cost: Tensor
    stops: Tensor
    visited: Tensor


class _Subjects:
    """A cohort to train on: simulated episodes and losses, both differentiable."""

    def __init__(self, model: DifaModel, cohort: Cohort, known: bool = False) -> None:
        self.model, self.catalog = model, cohort.catalog
        self.data = EncodedCohort(model.encoder, cohort)
        self.context = self.data.frame[:, 0, cohort.n_times :]
        self.recorded = torch.from_numpy(cohort.recorded)
        self.labelled = torch.from_numpy(cohort.labelled)
        #: What a policy may ask for: all that is open, or what is known to be there.
        self.offered = self.recorded if known else torch.from_numpy(cohort.catalog.open_slots)
        self.offered = self.offered.expand_as(self.recorded)

    def pairs(self, index: NDArray[np.int64]) -> _Pairs:
        """Every labelled prediction of these subjects."""
        row, time = self.labelled[torch.from_numpy(index)].nonzero(as_tuple=True)
        return _Pairs(row, time)

    def some_pairs(
        self, index: NDArray[np.int64], per_subject: int, rng: np.random.Generator
    ) -> _Pairs:
        """A few labelled predictions per subject, at random."""
        row, time = self.pairs(index)
        n = min(len(row), per_subject * len(index))
        chosen = torch.from_numpy(rng.permutation(len(row))[:n])
        return _Pairs(row[chosen], time[chosen])

    def loss(self, index: NDArray[np.int64], requested: Tensor, pairs: _Pairs) -> Tensor:
        """Mean cross-entropy of causal predictions after `requested`, `(b, L, M)`."""
        if not len(pairs.row):
            return requested.sum() * 0.0
        return self._losses(index, requested[pairs.row], pairs).mean()

    def losses_along(self, index: NDArray[np.int64], episode: _Episode, pairs: _Pairs) -> Tensor:
        """Cross-entropy of every prediction at every step, `(s, p)`.

        Acquisitions are in the order of time, so a prediction changes until the clock is past
        its time; it is computed at those steps and copied to the later ones.
        """
        past = torch.arange(self.recorded.shape[1]) <= pairs.time[:, None]  # (p, L)
        before = (episode.requested.detach()[-1, pairs.row].sum(dim=2) * past).sum(dim=1)
        n_changes = before.round().long()
        step = torch.arange(len(episode.requested))[:, None]
        at, pair = (step <= n_changes).nonzero(as_tuple=True)
        chosen = _Pairs(pairs.row[pair], pairs.time[pair])
        found = self._losses(index, episode.requested[at, chosen.row], chosen)
        table = torch.zeros(len(step), len(pairs.row)).index_put((at, pair), found)
        return table.gather(0, torch.minimum(step, n_changes))

    def _losses(self, index: NDArray[np.int64], requested: Tensor, pairs: _Pairs) -> Tensor:
        """Cross-entropy of each prediction after requests of its own, `(p, L, M)` to `(p,)`."""
        rows = torch.from_numpy(index)[pairs.row]
        slots = self.data.slots[rows] * requested[..., self.data.owner]
        logits = self.model.class_logits(slots, self.context[rows], pairs.time)
        return F.cross_entropy(logits, self.data.labels[rows, pairs.time], reduction="none")

    def episode(
        self, index: NDArray[np.int64], max_acquisitions: int, temperature: float | None = None
    ) -> _Episode:
        """Let the policy acquire one slot at a time.

        Args:
            index: The subjects.
            max_acquisitions: Of each.
            temperature: Of the straight-through Gumbel-softmax; an episode then goes on until
                stopping earlier is all but certain. `None` takes the largest logit and stops
                where that is more likely than not.
        """
        subjects = torch.from_numpy(index)
        recorded, full = self.recorded[subjects], self.data.slots[subjects]
        n, length, width = recorded.shape
        requested, cost = torch.zeros(n, length, width), torch.zeros(n)
        clock, going, goes_on = torch.full((n,), -1), torch.arange(n), torch.ones(n)
        trail, costs, stops = [requested], [cost], []
        while len(trail) <= max_acquisitions:
            asked = requested.detach()[going] > 0.5
            later = torch.arange(length)[:, None] >= clock[going, None, None]
            open_slots = (later & ~asked & self.offered[subjects[going]]).flatten(1)
            logits = self.model.action_logits(
                full[going] * requested[going][..., self.data.owner],
                self.context[subjects[going]],
                clock[going],
            )
            stop = torch.where(open_slots.any(dim=1), logits[:, -1].sigmoid(), 1.0)
            if temperature is None:
                stop = (stop > 0.5).float()
            stops.append(torch.zeros(n).index_put((going,), goes_on[going] * stop))
            goes_on = goes_on.index_put((going,), goes_on[going] * (1 - stop))
            stays = goes_on.detach()[going] > _NEGLIGIBLE
            going = going[stays]
            if not len(going):
                break
            picked = _pick(logits[stays, :-1], open_slots[stays], temperature)
            clock[going] = picked.detach().argmax(dim=1) // width
            picked = picked.view(-1, length, width)
            prices = slot_prices(self.catalog, (asked[stays] & recorded[going]).numpy())
            charge = picked * recorded[going] * torch.from_numpy(prices).float()
            cost = cost.index_add(0, going, charge.sum(dim=(1, 2)))
            requested = requested.index_add(0, going, picked)
            trail.append(requested)
            costs.append(cost)
        return _finished(trail, costs, stops, goes_on)


#: An episode is given up where it goes on with less than this probability.
_NEGLIGIBLE = 0.01


def _pick(logits: Tensor, open_slots: Tensor, temperature: float | None) -> Tensor:
    """One open slot each, `(n, L * M)`: hard forwards, soft backwards."""
    logits = logits.masked_fill(~open_slots, -torch.inf)
    if temperature is None:
        return F.one_hot(logits.argmax(dim=1), logits.shape[1]).float()
    return F.gumbel_softmax(logits, tau=temperature, hard=True)


def _finished(
    trail: list[Tensor], costs: list[Tensor], stops: list[Tensor], goes_on: Tensor
) -> _Episode:
    """Stack the steps; whoever would still go on stops at the last step."""
    if len(stops) < len(trail):
        stops = [*stops, torch.zeros_like(goes_on)]
    stopping = torch.stack(stops)
    stopping = torch.cat([stopping[:-1], stopping[-1:] + (1 - stopping.sum(dim=0, keepdim=True))])
    requested = torch.stack(trail)
    n_acquired = requested.detach()[-1].sum(dim=(1, 2)).round()
    visited = (torch.arange(len(trail))[:, None] <= n_acquired).float()
    return _Episode(requested, torch.stack(costs), stopping, visited / visited.sum(dim=0))


def _shortened(options: DifaOptions) -> DifaOptions:
    """For a rehearsal: a third of the epochs, one dropout rate."""
    shorter = {
        stage: replace(config, epochs=max(4, config.epochs // 3))
        for stage, config in (
            ("imputer", options.imputer),
            ("predictor", options.predictor),
            ("policy", options.policy),
        )
    }
    return replace(options, dropouts=options.dropouts[:1], **shorter)  # type: ignore[arg-type]
