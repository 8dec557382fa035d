"""Judge a saved model at its operating points, piece by piece, and continue a stopped evaluation.

A hidden folder beside the results keeps finished operating points and, for the one that is being
judged, finished pieces of a large cohort.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.detection import DEFAULT_THRESHOLD, Alarms, find_alarms
from nocta.core.environment import Availability
from nocta.core.metrics import METRICS
from nocta.core.policy import Policy
from nocta.core.progress import progress_bar
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.isolation import IsolatedPolicy
from nocta.methods.saving import SavedMethod, as_saved
from nocta.model import archive
from nocta.model.nocta import NOCTA, piece_rows
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.results import MEASURES, make_row
from nocta.runs.saved import Judged, packed_policy
from nocta.runs.setup import hash_data

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What the columns of results.csv need of a roll-out; the rest is not kept.

    Labels `(p,)` and probabilities `(p, C)` of every labeled pair of subject and time; what each
    subject was charged, acquired and attended, `(n,)`; and its alarms, see `Alarms`.
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
    seconds: float

    @classmethod
    def of(cls, rollout: Rollout, threshold: float) -> Self:
        labels, probabilities = rollout.labels, rollout.probabilities
        return cls(
            labels=labels[labels >= 0],
            probabilities=probabilities[labels >= 0],
            costs=rollout.costs,
            tests=rollout.tests,
            visits=rollout.visits,
            seconds=rollout.seconds,
            **asdict(find_alarms(labels, probabilities, threshold)),
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(BytesIO(path.read_bytes())) as found:  # no open file if it is damaged
            arrays = {name: found[name] for name in found.files}
        return cls(**{**arrays, "seconds": float(arrays["seconds"])})

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **asdict(self))

    @classmethod
    def concatenate(cls, pieces: Sequence[Outcome]) -> Self:
        """Outcomes of several groups of subjects, in this order, as one."""
        names = [f.name for f in fields(cls) if f.name != "seconds"]
        arrays = {name: np.concatenate([getattr(p, name) for p in pieces]) for name in names}
        return cls(**arrays, seconds=sum(piece.seconds for piece in pieces))

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
        }


@dataclass(frozen=True)
class Evaluation:
    """A saved model, the subjects it is judged on, and what is finished."""

    model: SavedMethod
    folder: Path
    judged: Judged
    availability: Availability
    finished: Checkpoint
    limits: Limits = DEFAULT_LIMITS

    @classmethod
    def open(
        cls,
        model: NOCTA | SavedMethod,
        folder: Path,
        judged: Judged,
        availability: Availability,
        out: Path,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Self:
        """Begin an evaluation, or continue the same one; `out` is the results.csv."""
        request = {
            "model_hash": archive.folder_hash(folder),
            "data_hash": hash_data(judged.cohort),
            "part": judged.part,
            "availability": availability,
            "piece_size": limits.rollout_subjects,
        }
        finished = Checkpoint(out.with_name(f".{out.name}.points"), request)
        finished.open(
            remedy="It keeps what is finished of an evaluation that was stopped: repeat that one "
            "to continue it, delete the folder, or choose another --out."
        )
        return cls(as_saved(model), folder, judged, availability, finished, limits)

    @property
    def threshold(self) -> float:
        """Share of positive labels among the training subjects, if the model knows it."""
        if len(self.model.classes_) != 2:
            return float("nan")
        return float(self.model.record_.get("threshold") or DEFAULT_THRESHOLD)

    def rows(
        self,
        settings: Sequence[Setting],
        *,
        progress: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> Iterator[dict[str, Any]]:
        """One row of results.csv after the other; finished ones are not computed again.

        `say` receives a sentence on what was kept from before.
        """
        kept = [self.finished.get(f"{_name(setting)}.json") for setting in settings]
        n_kept, n = sum(row is not None for row in kept), len(self.judged.cohort)
        if n_kept:
            say(f"{n_kept} of {len(settings)} operating points were finished before.")
        with progress_bar(
            total=n * len(settings),
            initial=n * n_kept,
            unit=" subjects",
            unit_scale=True,
            desc="rolled out",
            show=progress,
        ) as bar:
            for setting, row in zip(settings, kept, strict=True):
                if row is None:
                    row = self._row(setting, self._roll_out(setting, bar))
                    self.finished.put(f"{_name(setting)}.json", row)
                    self.finished.drop(self.finished.names("*.npz"))
                yield row

    def _roll_out(self, setting: Setting, bar: Any) -> Outcome:
        """Piece by piece; only what the results need stays in memory.

        The policy runs in a process that loads the model itself and never holds the subjects.
        """
        with ExitStack() as stack:
            opened = cache(
                lambda: stack.enter_context(IsolatedPolicy(packed_policy(self.folder, setting)))
            )
            return self._pieces(setting, opened, bar)

    def _pieces(self, setting: Setting, policy: Callable[[], Policy], bar: Any) -> Outcome:
        pieces = []
        for i, rows in enumerate(piece_rows(len(self.judged.cohort), self.limits)):
            name = f"{_name(setting)}-{i:05d}.npz"
            piece = self.finished.read(name, Outcome.load)
            if piece is None:
                found = rollout(
                    policy(),
                    self.judged.cohort.subset(rows),
                    budget=setting.get("budget"),
                    availability=self.availability,
                    seed=self.model.seed,
                    progress=not bar.disable,
                )
                piece = Outcome.of(found, self.threshold)
                self.finished.write(name, piece.save)
            pieces.append(piece)
            bar.update(len(rows))
        return Outcome.concatenate(pieces)

    def _row(self, setting: Setting, outcome: Outcome) -> dict[str, Any]:
        keys = {
            "dataset": self.judged.cohort.name,
            "method": self.model.name,
            "preset": self.model.preset,
            "availability": self.availability,
            "seed": self.model.seed,
            "split": self.judged.part,
        }
        fit_seconds = self.model.record_["fit_seconds"]
        measured = {"threshold": self.threshold, **outcome.measures()}
        return asdict(make_row(keys, setting, fit_seconds=fit_seconds, **measured))


def _name(setting: Setting) -> str:
    text = "_".join(f"{name}-{value!r}" for name, value in sorted(setting.items()))
    # A setting may hold a list of names, which is not always the name of a file.
    plain = re.fullmatch(r"[\w.+-]{1,100}", text) is not None
    return text if plain else hashlib.sha256(text.encode()).hexdigest()[:20]
