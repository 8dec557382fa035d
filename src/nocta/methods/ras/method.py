"""RAS and AS: at every visit, what to acquire next time and how long to wait until then.

Qin, van der Schaar and Lee, "Risk-averse active sensing for timely outcome prediction under cost
pressure" (NeurIPS 2023). An actor sees what was acquired so far. It draws a set of features for the
next visit, one coin per feature, and the interval until then, from a Beta distribution. A follow-up
costs the acquisitions, plus `lambda` times the *prediction deficiency* (the Jensen-Shannon
divergence from the prediction with everything acquired), plus a penalty for visits at which nothing
is acquired. `lambda` is the knob, `prediction_weight`. The predictor is trained first, under an
auxiliary policy that visits at random and drops each feature at a given rate. Actor and critic are
then trained on simulated follow-ups of the training subjects. In the end RAS trains on the worst
tenth of them only, which makes it risk-averse. AS has a fixed interval and trains on everybody.

Modules: `pretraining` (the predictor), `networks` (encoder, actor, critic, and how they decide),
`simulation` (follow-ups and their costs), `training` (actor-critic). Differences from the original:

- **Causal.** The original interpolates between acquisitions and predicts after the last one, so
  a later acquisition changes earlier predictions. Here each prediction, and the actor's encoder,
  reads the history up to its own slot (see `nocta.predictors.cde`).
- **On a grid.** Waiting times lead to the next slot at or after. The shortest interval is 0 by
  default, so that more than one exact value reaches the next slot.
- **A prediction at every slot.** The deficiency compares the two predictions slot by slot, and the
  one from what was acquired knows the slot. The original keeps the prediction of the last visit;
  labels drift with time, so that one would be judged by staleness alone.
- **Softmax** over classes, trained by cross-entropy; the original has one sigmoid per class.
- **The drop rate is chosen on validation** (the released code uses test subjects), and so are the
  weights: by the mean cost of a follow-up for AS, by that of the worst tenth (and a little by that
  of everybody) for RAS.
- **The critic judges the state in which an action is taken.** In the released code the advantage
  of a set of features subtracts the value of the state that already contains what it revealed.
- **Exploration.** Probabilities are squeezed away from 0 and 1, not clipped, so that a gradient
  remains; a reward of undecided coins fades; advantages trust the critic a few visits ahead.
  Training begins with nearly everything acquired: from coins at one half the actor unlearns to
  acquire before it learns what is worth it. Learning rates are a tenth to a fifth of the released
  ones, which settle within a few steps on the first policy they find.
- **From everybody to the tail.** RAS learns from everybody first; the pool shrinks to the worst
  tenth over the first part of training. From the tail alone it keeps acquiring everything. With
  many subjects the tail is searched in a sample.
- **Few subjects in the tail** are followed several times in a batch, each time with another draw.
- **A recurrent unit** (`encoder="gru"`) encodes by default; `"cde"` is the published neural CDE,
  with slots as its unit of time.
- **The auxiliary policy** begins at the first slot, and AS chooses among one, two and four slots.
- **Scales.** `lambda` is tried around (cost of everything) / (deficiency of acquiring nothing). The
  published values depend on their predictor and are tried with `preset="paper"` only. The penalty
  of an empty visit is in units of the most expensive feature.

A value that was never recorded yields nothing and is not charged; the actor learns that the request
was unavailable. With a hard budget the most wanted features are acquired while it lasts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.operating_points import cost_of_everything
from nocta.core.options import Preset, given_values
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.methods.contract import Trial, suggest
from nocta.methods.ras.networks import ActorCritic, EncoderKind, Intervals, SensingPolicy
from nocta.methods.ras.pretraining import DROP_RATES, pretrain
from nocta.methods.ras.simulation import Prices, Simulator
from nocta.methods.ras.training import ActorTraining, RasTraining
from nocta.methods.retrained import Grid, RetrainedMethod
from nocta.model.state import Arrays, State, load_net, nest, net_arrays, take_part
from nocta.predictors.cde import CdePredictor
from nocta.predictors.recurrent import RecurrentPredictor

#: Knob values to look at, in units of (cost of everything) / (deficiency of acquiring nothing).
_KNOB_SHARES = (0.4, 4.0)
#: Fixed intervals that AS may choose from, in units of the usual distance of two slots.
_FIXED_INTERVALS = (1.0, 2.0, 4.0)
#: Longest intervals of the NOCTA paper by `Cohort.published`, in the unit of the slot times.
_LONGEST = {"synthetic": 5.0, "adni": 18.0, "womac": 54.0, "klg": 54.0}
Hidden = Annotated[int, Field(ge=2)]
DropRate = Annotated[float, Field(ge=0, lt=1)]
TailShare = Annotated[float, Field(gt=0, le=1)]


@dataclass(eq=False)
class _ActiveSensing(RetrainedMethod):
    """What RAS and AS share: pretrained predictor, prices, scale of the knob.

    The setting is `{"prediction_weight": lambda}`; a larger weight acquires more.

    Args:
        preset: `"paper"` also tries the published prediction weights.
        encoder: `"gru"`, or the published `"cde"`, which needs `nocta[cde]` and is slower by an
            order of magnitude.
        hidden: Units of the predictor's state; the actor's has half as many.
        drop_rate: Drop rate of the auxiliary policy; chosen on validation by default.
        empty_penalty: Penalty of a visit without acquisitions, in units of the most expensive
            feature.
        options: `RasTraining`, or some of its fields by name: length and pace.
    """

    knob = "prediction_weight"
    knob_buys = True
    bundle = RasTraining
    paper_grids: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "synthetic": (5000.0, 7000.0, 9000.0),
        "adni": (50.0, 75.0, 100.0, 175.0),
        "womac": (2000.0, 4500.0, 9000.0),
        "klg": (1200.0, 1700.0),
    }

    grid: Grid = None
    quick: bool = False
    preset: Preset = "default"
    encoder: EncoderKind = "gru"
    hidden: Hidden = 64
    drop_rate: DropRate | None = None
    #: Share of the follow-ups, the most expensive ones, that is trained on in the end.
    tail_share: TailShare = field(default=1.0, init=False)
    empty_penalty: float = 10.0
    options: RasTraining | Mapping[str, Any] | None = None

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Size and pace, and the penalty of an empty visit."""
        pace = {"learning_rate": (3e-3, 3e-2), "entropy": (0.01, 0.2), "empty_penalty": (0.3, 30.0)}
        return suggest(trial, {"hidden": [32, 64, 128], **pace})

    def _prepare(
        self, train: Cohort, val: Cohort, seed: int, predictor: Predictor | None, progress: bool
    ) -> None:
        self.slot_times_ = _slot_times(train)
        self.predictor_, self.drop_rate_ = pretrain(
            train,
            val,
            self.slot_times_,
            kind=self.encoder,
            hidden=self.hidden,
            drop_rates=DROP_RATES if self.drop_rate is None else (self.drop_rate,),
            quick=self.quick,
            seed=seed,
            progress=progress,
        )
        self.curves_: dict[float, list[float]] = {}
        self._simulators = (
            Simulator(train, self.predictor_, self.availability),
            Simulator(val, self.predictor_, self.availability),
        )

    def _first_values(self, train: Cohort) -> Sequence[float]:
        return super()._first_values(train) if self.preset == "paper" else ()

    def _knob_range(self, train: Cohort) -> tuple[float, float]:
        scale = cost_of_everything(train) / self._simulators[0].deficiency_of_nothing()
        return _KNOB_SHARES[0] * scale, _KNOB_SHARES[1] * scale

    def _train(self, value: float, train: Cohort, val: Cohort, seed: int, progress: bool) -> Policy:
        prices = Prices(value, self.empty_penalty * float(train.catalog.costs.max()))
        training = self._training()
        # Many follow-ups of the same few subjects are slow and add little.
        size = min(training.batch_size, max(64, len(train) // 2))
        training = training.model_copy(update={"batch_size": size})
        candidates = self._candidates(train)
        best = candidates[0]
        if len(candidates) > 1:
            short = training.model_copy(update={"rounds": max(2, training.rounds // 6)})
            tried = [self._run(c, prices, short, seed, progress)[1] for c in candidates]
            best = candidates[int(np.argmin([min(curve) for curve in tried]))]
        net, self.curves_[value] = self._run(best, prices, training, seed, progress)
        return SensingPolicy(self.predictor_, net, best)

    def _run(
        self, intervals: Intervals, prices: Prices, training: RasTraining, seed: int, progress: bool
    ) -> tuple[ActorCritic, list[float]]:
        train, val = self._simulators
        width, share = self.hidden // 2, self.tail_share
        actor = ActorTraining(train, intervals, prices, training, share, width, self.encoder, seed)
        return actor.run(val, progress)

    def _training(self) -> RasTraining:
        if isinstance(self.options, RasTraining):
            return self.options
        short = {"rounds": 4, "steps_per_round": 5, "batch_size": 64} if self.quick else {}
        return RasTraining(**{**short, **given_values(self.options)})

    def _shared_state(self) -> State:
        config, arrays = {"drop_rate": self.drop_rate_}, {"slot_times": self.slot_times_}
        return nest(config, arrays, predictor=self.predictor_.state())

    def _recall_shared(self, config: dict[str, Any], arrays: Arrays) -> None:
        kind = CdePredictor if self.encoder == "cde" else RecurrentPredictor
        self.predictor_ = kind.from_state(*take_part(config, arrays, "predictor"))
        self.drop_rate_, self.slot_times_ = config["drop_rate"], arrays["slot_times"]
        self.curves_ = {}

    def _policy_state(self, policy: SensingPolicy) -> State:
        spaced = {"shortest": policy.intervals.shortest, "longest": policy.intervals.longest}
        return spaced, net_arrays(policy.net)

    def _recall_policy(self, config: dict[str, Any], arrays: Arrays) -> Policy:
        net = ActorCritic(self.predictor_.encoder_, self.hidden // 2, self.encoder)
        return SensingPolicy(
            self.predictor_, load_net(net, arrays), Intervals(self.slot_times_, **config)
        )

    @abstractmethod
    def _candidates(self, train: Cohort) -> list[Intervals]:
        """Ways to space visits; the best on validation is kept."""


@dataclass(eq=False)
class Ras(_ActiveSensing):
    """Risk-averse active sensing: adaptive intervals, trained on the worst tenth of follow-ups.

    Args:
        intervals: Shortest and longest interval between visits, in the unit of the cohort's slot
            times; from the next slot to half the follow-up by default, or to what the NOCTA paper
            allows on its data sets.
        tail_share: Train on this share of the follow-ups, the most expensive ones.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> train, val = tiny_cohort(80).split((0.5, 0.5))
        >>> ras = Ras(grid=[100.0], quick=True, hidden=8, drop_rate=0.3).fit(train, val, seed=0)
        >>> ras.settings(val, 5)
        [{'prediction_weight': 100.0}]
    """

    name = "ras"

    intervals: tuple[float, float] | None = None
    tail_share: TailShare = 0.1

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """The same, and how much of the tail is trained on."""
        own = suggest(trial, {"tail_share": (0.05, 1.0)})
        return {**super().search_space(trial), **own}

    def _candidates(self, train: Cohort) -> list[Intervals]:
        shortest, longest = self.intervals or (
            0.0,
            _LONGEST.get(train.published, float(np.ptp(self.slot_times_)) / 2),
        )
        return [Intervals(self.slot_times_, shortest, longest)]


@dataclass(eq=False)
class As(_ActiveSensing):
    """Active sensing with one fixed interval between visits.

    As `Ras`, but trained on everybody.

    Args:
        interval: Between two visits, in the unit of the cohort's slot times; by default the best
            on validation of one, two and four slots, at each prediction weight.
    """

    name = "as"

    interval: float | None = None

    def _candidates(self, train: Cohort) -> list[Intervals]:
        if self.interval is not None:
            return [Intervals(self.slot_times_, self.interval, self.interval)]
        span, usual = float(np.ptp(self.slot_times_)), float(np.median(np.diff(self.slot_times_)))
        waits = [k * usual for k in _FIXED_INTERVALS if k == 1 or k * usual <= span]
        return [Intervals(self.slot_times_, wait, wait) for wait in waits]


def _slot_times(cohort: Cohort) -> NDArray[np.float64]:
    if cohort.n_times < 2:
        raise ConfigError("Active sensing decides about intervals; it needs at least two slots.")
    times = cohort.slot_times or tuple(range(cohort.n_times))
    return np.asarray(times, dtype=float)
