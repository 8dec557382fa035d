"""The recommended method: several planners are fitted, and validation chooses (paper, section 6).

The rule. Candidates are ranked before anything is fitted: NOCT-Direct first, unless there are fewer
than 500 training subjects, when NOCT-Amortized comes first, because its averages over the
population need fewer. Each candidate acts on the validation subjects at five cost weights. The
first candidate is taken unless another has less loss plus cost by more than a standard error of
the paired difference; then the one that is furthest ahead, in standard errors, is taken.
NOCT-Contrastive and their ensemble are candidates only if the cohort is small enough for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ModelError
from nocta.core.predictor import Predictor, has_network
from nocta.model.presets.base import Planner, Task
from nocta.model.presets.default import DefaultPlanner
from nocta.model.presets.direct import DirectPlanner
from nocta.model.presets.options import AutoOptions, Candidate, DefaultOptions, DirectOptions
from nocta.model.state import Arrays, State, nest, take_part
from nocta.planning.algorithm import PlanningPolicy, Search
from nocta.planning.direct.training import FEW
from nocta.planning.plan_values import PlanValues

#: Cost weights at which candidates are compared, in units of the break-even weight.
_FACTORS = (0.1, 0.3, 0.6, 1.0, 2.0)
#: Most training subjects times slots times features for which neighbors are asked.
_MOST_FOR_NEIGHBORS = 20_000
#: Validation subjects on whom candidates are compared, at most; neighbors are slower.
_MOST_COMPARED, _MOST_WITH_NEIGHBORS = 1000, 150


@dataclass(frozen=True)
class Lead:
    """How far a candidate is ahead of the first one on validation."""

    candidate: Candidate
    mean: float  # less loss plus cost than the first candidate, in units of cost
    error: float  # standard error of that

    @property
    def in_errors(self) -> float:
        """The lead in standard errors."""
        return self.mean / max(self.error, 1e-12)


@dataclass(eq=False)
class AutoPlanner(Planner):
    """The planner that validation chose, and why."""

    chosen: Candidate
    planner: Planner
    leads: tuple[Lead, ...]
    #: Scores any plan, for explanations, if the chosen one only names plans.
    scorer: Planner | None = None

    @property
    def predictor(self) -> Predictor:  # type: ignore[override]
        return self.planner.predictor

    @property
    def cost_scale(self) -> float:  # type: ignore[override]
        return self.planner.cost_scale

    @property
    def chunk(self) -> int:  # type: ignore[override]
        return self.planner.chunk

    def search(self, cost_weight: float) -> Search:
        return self.planner.search(cost_weight)

    def policy(self, cost_weight: float, *, replan: bool = True) -> PlanningPolicy:
        return self.planner.policy(cost_weight, replan=replan)

    def values(self, cost_weight: float) -> PlanValues | None:
        return (self.scorer or self.planner).values(cost_weight)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "planner" not in vars(self):
            raise AttributeError(name)
        return getattr(self.planner, name)

    @property
    def reason(self) -> str:
        """Why this planner was chosen, in a sentence."""
        first = self.leads[0].candidate
        others = [lead for lead in self.leads[1:] if lead.candidate != self.chosen]
        if self.chosen == first:
            names = [f"NOCT-{lead.candidate.title()}" for lead in others]
            if not names:
                return f"NOCT-{self.chosen.title()} was the only candidate."
            listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
            return (
                f"NOCT-{self.chosen.title()} was chosen: {listed} did not do clearly better on "
                f"validation."
            )
        lead = next(lead for lead in self.leads if lead.candidate == self.chosen)
        return (
            f"NOCT-{self.chosen.title()} was chosen: on validation, its loss plus cost is lower "
            f"than that of NOCT-{first.title()} by {lead.in_errors:.1f} standard errors."
        )

    @classmethod
    def fit(cls, task: Task) -> Self:
        options: AutoOptions = task.options
        names = options.candidates or candidates(task.train)
        if task.predictor is not None and not has_network(task.predictor):
            names = tuple(name for name in names if name != "direct") or names
        shared = replace(task, predictor=task.cross_fitted(task.preset))
        fitted = {name: _fit(name, shared, options.quick) for name in names}
        leads = compare(fitted, task.val, task.seed)
        chosen = choose(leads)
        scorer = fitted.get("amortized") if chosen == "direct" else None
        return cls(chosen, fitted[chosen], leads, scorer)

    def state(self) -> State:
        leads = [[lead.candidate, lead.mean, lead.error] for lead in self.leads]
        config = {"estimator": "auto", "chosen": self.chosen, "leads": leads}
        parts = {"planner": self.planner.state()}
        if self.scorer is not None:
            parts["scorer"] = self.scorer.state()
        return nest(config, {}, **parts)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        chosen = config["chosen"]
        leads = tuple(Lead(*lead) for lead in config["leads"])
        if not {chosen, *(lead.candidate for lead in leads)} <= set(get_args(Candidate)):
            raise ModelError(f"'{chosen}' is not an estimator that can be chosen.")
        kind = DirectPlanner if chosen == "direct" else DefaultPlanner
        planner = kind.from_state(*take_part(config, arrays, "planner"))
        scorer = None
        if "scorer" in config:
            scorer = DefaultPlanner.from_state(*take_part(config, arrays, "scorer"))
        return cls(chosen, planner, leads, scorer)


def candidates(train: Cohort) -> tuple[Candidate, ...]:
    """What is fitted by default, the preferred one first."""
    names: list[Candidate] = ["direct", "amortized"]
    if len(train) < FEW:
        names.reverse()
    if train.recorded.size <= _MOST_FOR_NEIGHBORS:
        names += ["contrastive", "ensemble"]
    return tuple(names)


def compare(fitted: dict[Candidate, Planner], val: Cohort, seed: int) -> tuple[Lead, ...]:
    """Lead of every candidate over the first one, over a range of cost weights."""
    names = list(fitted)
    slow = {"contrastive", "ensemble"} & set(names)
    most = _MOST_WITH_NEIGHBORS if slow else _MOST_COMPARED
    some = val.subset(np.random.default_rng(seed).permutation(len(val))[:most])
    scale = fitted[names[0]].cost_scale

    def regret(planner: Planner) -> NDArray[np.float64]:
        each = [planner.regret(some, scale * factor) for factor in _FACTORS]
        return np.asarray(np.sum(each, axis=0))

    regrets = {name: regret(planner) for name, planner in fitted.items()}
    leads = []
    for name in names:
        ahead = regrets[names[0]] - regrets[name]
        error = float(ahead.std() / np.sqrt(max(len(ahead) - 1, 1)))
        leads.append(Lead(name, float(ahead.mean()), error))
    return tuple(leads)


def choose(leads: tuple[Lead, ...]) -> Candidate:
    """The first candidate, unless another is more than a standard error ahead of it."""
    best = max(leads, key=lambda lead: lead.in_errors)
    return best.candidate if best.in_errors > 1 else leads[0].candidate


def _fit(name: Candidate, task: Task, quick: bool) -> Planner:
    if name == "direct":
        return DirectPlanner.fit(replace(task, estimator=name, options=DirectOptions(quick=quick)))
    options = DefaultOptions(n_rounds=0) if quick else DefaultOptions()
    return DefaultPlanner.fit(replace(task, estimator=name, options=options))
