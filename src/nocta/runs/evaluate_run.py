"""Judge a saved model at its operating points, piece by piece, and continue a stopped evaluation.

A hidden folder beside the results keeps finished operating points and, for the one that is being
judged, finished pieces of a large cohort.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.detection import DEFAULT_THRESHOLD
from nocta.core.environment import Availability
from nocta.core.policy import Policy
from nocta.core.progress import progress_bar
from nocta.core.rollout import rollout
from nocta.evaluation.isolation import IsolatedPolicy
from nocta.methods.saving import SavedMethod, as_saved
from nocta.model import archive
from nocta.model.nocta import NOCTA, piece_rows
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.details import describe_rollout
from nocta.runs.fit_points import intervals
from nocta.runs.outcome import Outcome
from nocta.runs.promise import Promise, ask
from nocta.runs.recommended import best_looking_index, default_among
from nocta.runs.record import PointDetails, Recommended, read_details
from nocta.runs.results import make_row
from nocta.runs.saved import Judged, packed_policy
from nocta.runs.setup import hash_data
from nocta.runs.subgroups import describe_subgroups

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """A saved model, the subjects it is judged on, and what is finished."""

    model: SavedMethod
    folder: Path
    judged: Judged
    availability: Availability
    finished: Checkpoint
    limits: Limits = DEFAULT_LIMITS
    #: The metric to describe every operating point by, for a report; `None` keeps only its row.
    described_by: str | None = None

    @classmethod
    def open(
        cls,
        model: NOCTA | SavedMethod,
        folder: Path,
        judged: Judged,
        availability: Availability,
        out: Path,
        limits: Limits = DEFAULT_LIMITS,
        described_by: str | None = None,
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
        return cls(as_saved(model), folder, judged, availability, finished, limits, described_by)

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
        kept = [self._kept(setting) for setting in settings]
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
                    outcome = self._roll_out(setting, bar)
                    row = self._row(setting, outcome)
                    if self.described_by is not None:
                        self.finished.put(_details(setting), self._describe(outcome))
                    self.finished.put(f"{_name(setting)}.json", row)
                    self.finished.drop(self.finished.names("*.npz"))
                yield row

    def details(self, settings: Sequence[Setting]) -> list[PointDetails]:
        """What a report shows about operating points that are finished.

        Subgroups are compared at the recommended one, which is rolled out again.
        """
        assert self.described_by is not None
        found = [read_details(self.finished.get(_details(setting))) for setting in settings]
        default = self.recommended(settings)
        shown = default.index if default else best_looking_index(found, self.described_by)
        cohort = self.judged.cohort
        if not cohort.catalog.context:
            return found
        with progress_bar(total=0, show=False) as bar:
            outcome = self._roll_out(settings[shown], bar).rollout(cohort)
        subgroups = describe_subgroups(outcome, cohort, **self._how)
        found[shown] = replace(found[shown], subgroups=subgroups)
        return found

    def recommended(self, settings: Sequence[Setting]) -> Recommended | None:
        """The model's default operating point, if it is one of these."""
        return default_among(settings, self.model.default_point)

    @property
    def is_kept_whole(self) -> bool:
        """Whether a report or intervals can be made; for many subjects only if a report is asked.

        Otherwise only what the results need stays in memory.
        """
        n_pieces = len(list(piece_rows(len(self.judged.cohort), self.limits)))
        return self.described_by is not None or n_pieces == 1

    @property
    def _how(self) -> dict[str, Any]:
        return {"metric": self.described_by, "seed": self.model.seed}

    def _kept(self, setting: Setting) -> dict[str, Any] | None:
        """The row of a finished operating point, if what else is wanted of it was kept too."""
        if self.described_by is not None and self.finished.get(_details(setting)) is None:
            return None
        found: dict[str, Any] | None = self.finished.get(f"{_name(setting)}.json")
        return found

    def _describe(self, outcome: Outcome) -> PointDetails:
        cohort = self.judged.cohort
        rollout = outcome.rollout(cohort)
        entry = describe_rollout(
            rollout, cohort.catalog, threshold=self.threshold, promise=outcome.promise, **self._how
        )
        return replace(entry, together=[])  # a report of one model does not show them

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
            name = f"{_name(setting)}{'-whole' if self.is_kept_whole else ''}-{i:05d}.npz"
            piece = self.finished.read(name, Outcome.load)
            if piece is None:
                piece = self._piece(setting, policy(), rows, progress=not bar.disable)
                self.finished.write(name, piece.save)
            pieces.append(piece)
            bar.update(len(rows))
        return Outcome.concatenate(pieces)

    def _piece(
        self, setting: Setting, policy: Policy, rows: NDArray[np.int64], *, progress: bool
    ) -> Outcome:
        some = self.judged.cohort.subset(rows)
        rules: dict[str, Any] = {
            "budget": setting.get("budget"),
            "availability": self.availability,
            "seed": self.model.seed,
        }
        expected = ask(policy, some, **rules)
        found = rollout(policy, some, progress=progress, **rules)
        promise, whole = Promise.of(expected, found), self.is_kept_whole
        return Outcome.of(found, promise, threshold=self.threshold, whole=whole)

    def _row(self, setting: Setting, outcome: Outcome) -> dict[str, Any]:
        keys = {
            "dataset": self.judged.cohort.name,
            "method": setting.get("name", self.model.name),  # schedules have their own
            "preset": self.model.preset,
            "availability": self.availability,
            "seed": self.model.seed,
            "split": self.judged.part,
        }
        fit_seconds = self.model.record_["fit_seconds"]
        measured = {"threshold": self.threshold, **outcome.measures()}
        if self.is_kept_whole:
            found = intervals(outcome.rollout(self.judged.cohort)).items()
            measured |= {f"{name}_low": low for name, (low, _) in found}
            measured |= {f"{name}_high": high for name, (_, high) in found}
        return asdict(make_row(keys, setting, fit_seconds=fit_seconds, **measured))


def _details(setting: Setting) -> str:
    return f"{_name(setting)}-details.json"


def _name(setting: Setting) -> str:
    text = "_".join(f"{name}-{value!r}" for name, value in sorted(setting.items()))
    # A setting may hold a list of names, which is not always the name of a file.
    plain = re.fullmatch(r"[\w.+-]{1,100}", text) is not None
    return text if plain else hashlib.sha256(text.encode()).hexdigest()[:20]
