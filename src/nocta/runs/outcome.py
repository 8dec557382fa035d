"""What is kept of a roll-out of one piece of a cohort: little, or all that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.detection import Alarms, find_alarms
from nocta.core.history import History
from nocta.core.metrics import METRICS
from nocta.core.rollout import Rollout
from nocta.runs.promise import Promise
from nocta.runs.results import MEASURES

#: Arrays of a roll-out that a report needs.
_WHOLE = ("probabilities", "labels", "cost_per_visit", "stop_time", "n_decisions")
_BEFORE = "rollout."


@dataclass(frozen=True)
class Outcome:
    """What the columns of results.csv need of a roll-out, and `whole` what a report needs.

    Labels `(p,)` and probabilities `(p, C)` of every labeled pair of subject and time, and what
    each subject was charged, acquired, attended and promised, `(n,)`; and its alarms, see `Alarms`.
    """

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    costs: NDArray[np.float64]
    tests: NDArray[np.int64]
    visits: NDArray[np.int64]
    delay: NDArray[np.float64]
    missed: NDArray[np.bool_]
    n_false: NDArray[np.int64]
    n_negative: NDArray[np.int64]
    expected_losses: NDArray[np.float64]
    expected_costs: NDArray[np.float64]
    realized_losses: NDArray[np.float64]
    seconds: float
    availability: str
    whole: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, rollout: Rollout, promise: Promise, *, threshold: float, whole: bool = False
    ) -> Self:
        labeled = rollout.labels >= 0
        kept = {name: getattr(rollout, name) for name in _WHOLE}
        kept["acquired"] = rollout.history.acquired
        return cls(
            labels=rollout.labels[labeled],
            probabilities=rollout.probabilities[labeled],
            costs=rollout.costs,
            tests=rollout.tests,
            visits=rollout.visits,
            **asdict(find_alarms(rollout.labels, rollout.probabilities, threshold)),
            **vars(promise),
            seconds=rollout.seconds,
            availability=rollout.availability,
            whole=kept if whole else {},
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(BytesIO(path.read_bytes())) as found:  # no open file if it is damaged
            arrays = {name: found[name] for name in found.files}
        whole = {n.removeprefix(_BEFORE): a for n, a in arrays.items() if n.startswith(_BEFORE)}
        own: dict[str, Any] = {n: a for n, a in arrays.items() if not n.startswith(_BEFORE)}
        own |= {"seconds": float(own["seconds"]), "availability": str(own["availability"])}
        return cls(**own, whole=whole)

    def save(self, path: Path) -> None:
        kept: dict[str, Any] = {_BEFORE + name: array for name, array in self.whole.items()}
        kept |= {f.name: getattr(self, f.name) for f in fields(self) if f.name != "whole"}
        with path.open("wb") as file:
            np.savez(file, **kept)

    @classmethod
    def concatenate(cls, pieces: Sequence[Outcome]) -> Self:
        """Outcomes of several groups of subjects, in this order, as one."""
        arrays = [n for n, value in vars(pieces[0]).items() if isinstance(value, np.ndarray)]
        return cls(
            **{name: np.concatenate([getattr(p, name) for p in pieces]) for name in arrays},
            seconds=sum(piece.seconds for piece in pieces),
            availability=pieces[0].availability,
            whole={n: np.concatenate([p.whole[n] for p in pieces]) for n in pieces[0].whole},
        )

    @property
    def promise(self) -> Promise:
        return Promise(self.expected_losses, self.expected_costs, self.realized_losses)

    def rollout(self, cohort: Cohort) -> Rollout:
        """The roll-out of these subjects, if it was kept whole, without what was revealed."""
        acquired = self.whole["acquired"]
        n, length, _ = acquired.shape
        nothing = np.zeros((n, length, 0), dtype=np.float32)
        kept: dict[str, Any] = {name: self.whole[name] for name in _WHOLE}
        return Rollout(
            history=History(nothing, acquired, np.zeros_like(acquired), nothing[:, 0]),
            **kept,
            classes=cohort.classes,
            subjects=cohort.subjects,
            availability=self.availability,
            seconds=self.seconds,
            groups=cohort.groups,
        )

    def measures(self) -> dict[str, Any]:
        alarms = Alarms(self.delay, self.missed, self.n_false, self.n_negative)
        return {
            "cost": float(self.costs.mean()),
            **{n: METRICS[n](self.labels, self.probabilities) for n in METRICS if n in MEASURES},
            "n_subjects": len(self.costs),
            "n_labels": len(self.labels),
            "rollout_seconds": self.seconds,
            "tests": float(self.tests.mean()),
            "visits": float(self.visits.mean()),
            **alarms.summary(),
            **self.promise.measures(),
        }
