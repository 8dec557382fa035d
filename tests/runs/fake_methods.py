"""Methods that fail, die, leak or have a cost weight, for tests of the machinery around them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.methods.contract import Method, Trial
from nocta.methods.fixed import FixedPlanPolicy
from nocta.runs.record import Job
from nocta.runs.score_run import ScorePart
from nocta.testing import NonCausalPredictor, RunningMeanPredictor

#: What to add to the registry, by name.
FAKES = {
    "fake-honest": "fake_methods:Honest",
    "fake-failing": "fake_methods:Failing",
    "fake-leaking": "fake_methods:Leaking",
    "fake-leaking-late": "fake_methods:LeakingLate",
    "fake-tunable": "fake_methods:Tunable",
    "fake-weighted": "fake_methods:Weighted",
}


class Honest(Method):
    """Acquires the first `n` visits; notes every fit in a file when told to."""

    name = "fake-honest"

    def __init__(self, n_visits: int = 2, notes: str = "", preset: str = "none") -> None:
        self.n_visits = n_visits
        self.notes = notes
        self.preset = preset

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        if self.notes:
            with Path(self.notes).open("a", encoding="utf-8") as file:
                file.write(f"{self.name} {seed}\n")
        self.open_slots_ = train.catalog.open_slots
        self.predictor_: Predictor = RunningMeanPredictor(train.n_classes)
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        return [{"n_visits": n} for n in range(1, self.n_visits + 1)]

    def policy(self, setting: dict[str, Any]) -> Policy:
        early = np.arange(len(self.open_slots_)) < setting.get("n_visits", 1)
        return FixedPlanPolicy(self.open_slots_ & early[:, None], self.predictor_)


class Failing(Honest):
    """Raises when fitted, at seed 1."""

    name = "fake-failing"

    def fit(self, train: Cohort, val: Cohort, *, seed: int, **rest: Any) -> Self:
        if seed == 1:
            raise RuntimeError("the flux\ncapacitor is empty")
        return super().fit(train, val, seed=seed, **rest)


@dataclass(frozen=True)
class DyingJob(Job):
    """Takes down every process but the one it was made in, as running out of memory does."""

    home: int = field(default_factory=os.getpid)

    @property
    def shares_predictor(self) -> bool:
        if os.getpid() != self.home:
            os._exit(1)
        return False


class FragilePart(ScorePart):
    """Takes its process down as often as a file beside the input says of the part."""

    def __call__(self, expected: dict[str, Any]) -> bytes:
        file = self.part.path.with_name("deaths")
        name, left = file.read_text("utf-8").split()
        if name == self.part.name and int(left) > 0:
            file.write_text(f"{name} {int(left) - 1}", "utf-8")
            os._exit(1)
        return super().__call__(expected)


class Leaking(Honest):
    """Predicts early times from late acquisitions."""

    name = "fake-leaking"

    def fit(self, train: Cohort, val: Cohort, *, seed: int, **rest: Any) -> Self:
        super().fit(train, val, seed=seed, **rest)
        self.predictor_ = NonCausalPredictor(train.n_classes)
        return self


class LeakingLate(Honest):
    """Is honest at every operating point but the most expensive."""

    name = "fake-leaking-late"

    def policy(self, setting: dict[str, Any]) -> Policy:
        found = super().policy(setting)
        if setting["n_visits"] == self.n_visits:
            found.predictor = NonCausalPredictor(self.predictor_.n_classes_)
        return found


class Weighted(Honest):
    """Has a cost weight as its knob: the higher, the fewer visits."""

    name = "fake-weighted"
    has_cost_weight = True

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        return [{"cost_weight": 1.0}, {"cost_weight": 0.5}]

    def policy(self, setting: dict[str, Any]) -> Policy:
        return super().policy({"n_visits": round(1 / setting["cost_weight"])})


class Tunable(Honest):
    """Has options to tune, of which the number of visits matters."""

    name = "fake-tunable"

    def __init__(
        self, n_visits: int = 2, notes: str = "", sharpness: float = 1.0, order: str = "early"
    ) -> None:
        super().__init__(n_visits, notes)
        self.sharpness = sharpness
        self.order = order

    def search_space(self, trial: Trial) -> dict[str, Any]:
        return {
            "n_visits": trial.suggest_int("n_visits", 1, 10),
            "sharpness": trial.suggest_float("sharpness", 0.1, 10.0, log=True),
            "order": trial.suggest_categorical("order", ["early", "late"]),
        }
