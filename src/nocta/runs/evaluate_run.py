"""Judge a saved model at its operating points, piece by piece, and survive a kill.

What is finished is kept in a folder beside the results until everything is: a file for every
operating point and, within the point that is being judged, one for every piece of a large cohort.
The folder says which model, data and rule they belong to; files appear whole.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.environment import Availability
from nocta.core.errors import ConfigError
from nocta.core.metrics import METRICS
from nocta.core.progress import progress_bar
from nocta.core.rollout import Rollout
from nocta.model import persistence
from nocta.model.nocta import NOCTA, piece_rows
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.runs.files import write_atomically
from nocta.runs.results import MEASURES, make_row, plain
from nocta.runs.saved import Judged
from nocta.runs.setup import data_fingerprint

Setting = Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """What the columns of results.csv need of a roll-out; the rest is not kept.

    Args:
        labels: `(p,)` the truth of every labelled pair of subject and time.
        probabilities: `(p, C)` what was predicted there.
        costs: `(n,)` what each subject was charged.
        seconds: Wall time of the roll-out.
    """

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    costs: NDArray[np.float64]
    seconds: float

    @classmethod
    def of(cls, rollout: Rollout) -> Self:
        """What is needed of a roll-out."""
        labelled = rollout.labels >= 0
        return cls(
            rollout.labels[labelled],
            rollout.probabilities[labelled],
            rollout.costs,
            rollout.seconds,
        )

    @classmethod
    def concatenate(cls, pieces: Sequence[Outcome]) -> Self:
        """Outcomes of several groups of subjects, in this order, as one."""
        return cls(
            np.concatenate([piece.labels for piece in pieces]),
            np.concatenate([piece.probabilities for piece in pieces]),
            np.concatenate([piece.costs for piece in pieces]),
            sum(piece.seconds for piece in pieces),
        )

    def measures(self) -> dict[str, Any]:
        """Columns of results.csv."""
        return {
            "cost": float(self.costs.mean()),
            **{n: METRICS[n](self.labels, self.probabilities) for n in METRICS if n in MEASURES},
            "n_subjects": len(self.costs),
            "n_labels": len(self.labels),
            "rollout_seconds": self.seconds,
        }


class PointStore:
    """Keeps what is finished of an evaluation, in a folder beside its results.

    Args:
        out: The results.csv.
        made_from: What decides the results; see `made_from`.
    """

    def __init__(self, out: Path, made_from: Mapping[str, Any]) -> None:
        self.folder = out.with_name(f".{out.name}.points")
        self._made_from = dict(made_from)

    def open(self) -> None:
        """Verify that what is there belongs to the same evaluation.

        Raises:
            ConfigError: It is what is finished of another one.
        """
        found = _read_json(self._claim)
        if found is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif found != self._made_from:
            other = [name for name in self._made_from if found.get(name) != self._made_from[name]]
            raise ConfigError(
                f"'{self.folder}' keeps what is finished of an evaluation that was stopped, with "
                f"other {' and '.join(other)}. Repeat that one to go on with it, delete the "
                f"folder, or choose another --out."
            )

    def point(self, setting: Setting) -> dict[str, Any] | None:
        """The row of an operating point that is finished."""
        return _read_json(self._point(setting))

    def save_point(self, setting: Setting, row: Mapping[str, Any]) -> None:
        """Keep a finished operating point; its pieces are not needed any more."""
        self._save(self._point(setting), json.dumps(plain(row), allow_nan=False))
        for piece in self.folder.glob("*.npz"):
            piece.unlink()

    def piece(self, setting: Setting, i: int) -> Outcome | None:
        """A finished piece of an operating point."""
        try:
            with np.load(BytesIO(self._piece(setting, i).read_bytes())) as found:
                arrays = {name: found[name] for name in found.files}
            return Outcome(**{**arrays, "seconds": float(arrays["seconds"])})
        except (OSError, ValueError, zipfile.BadZipFile):
            return None  # not there, or damaged: rolled out again

    def save_piece(self, setting: Setting, i: int, outcome: Outcome) -> None:
        """Keep a finished piece."""
        out = BytesIO()
        np.savez(out, **asdict(outcome))
        self._save(self._piece(setting, i), out.getvalue())

    def close(self) -> None:
        """Everything is in the results: nothing needs to be kept."""
        shutil.rmtree(self.folder)

    @property
    def _claim(self) -> Path:
        return self.folder / "made_from.json"

    def _save(self, path: Path, content: str | bytes) -> None:
        """Write a file; with the first one the folder is claimed."""
        if not self._claim.is_file():
            write_atomically(self._claim, json.dumps(self._made_from))
        write_atomically(path, content)

    def _point(self, setting: Setting) -> Path:
        return self.folder / f"{_name(setting)}.json"

    def _piece(self, setting: Setting, i: int) -> Path:
        return self.folder / f"{_name(setting)}-{i:05d}.npz"


def made_from(
    folder: Path, judged: Judged, availability: Availability, limits: Limits = DEFAULT_LIMITS
) -> dict[str, Any]:
    """What decides the results of an evaluation, besides the operating point.

    Args:
        folder: Of the model.
        judged: The subjects.
        availability: What is known of missing values beforehand.
        limits: How many subjects are rolled out together.
    """
    return {
        "model": persistence.checksum(folder),
        "data": data_fingerprint(judged.cohort),
        "part": judged.part,
        "availability": availability,
        "piece size": limits.rollout_subjects,
    }


def judge_points(
    model: NOCTA,
    judged: Judged,
    settings: Sequence[Setting],
    availability: Availability,
    store: PointStore,
    *,
    progress: bool = False,
    say: Callable[[str], None] = lambda _: None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[dict[str, Any]]:
    """One row of results.csv after the other; finished ones come from the store.

    Args:
        model: Fitted.
        judged: The subjects.
        settings: The operating points.
        availability: What is known of missing values beforehand.
        store: Open; keeps every point and piece as it is finished.
        progress: Show a bar over the subjects of all points.
        say: Receives a sentence on what was kept from before.
        limits: How many subjects are rolled out together.
    """
    kept = [store.point(setting) for setting in settings]
    n_kept, n = sum(row is not None for row in kept), len(judged.cohort)
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
                outcome = _roll_out(model, judged, setting, availability, store, bar, limits)
                row = _row(model, judged, setting, availability, outcome)
                store.save_point(setting, row)
            yield row


def _roll_out(
    model: NOCTA,
    judged: Judged,
    setting: Setting,
    availability: Availability,
    store: PointStore,
    bar: Any,
    limits: Limits,
) -> Outcome:
    """Piece by piece; of each only what the results need stays in memory."""
    pieces = []
    for i, rows in enumerate(piece_rows(len(judged.cohort), limits)):
        piece = store.piece(setting, i)
        if piece is None:
            rollout = model.rollout(
                judged.cohort.subset(rows),
                setting["cost_weight"],
                budget=setting.get("budget"),
                availability=availability,
                progress=not bar.disable,
            )
            piece = Outcome.of(rollout)
            store.save_piece(setting, i, piece)
        pieces.append(piece)
        bar.update(len(rows))
    return Outcome.concatenate(pieces)


def _row(
    model: NOCTA,
    judged: Judged,
    setting: Setting,
    availability: Availability,
    outcome: Outcome,
) -> dict[str, Any]:
    keys = {
        "dataset": judged.cohort.name,
        "method": f"nocta-{model.estimator}",
        "preset": model.preset,
        "availability": availability,
        "seed": model.seed,
        "split": judged.part,
    }
    fit_seconds = model.record_["fit_seconds"]
    return asdict(make_row(keys, setting, fit_seconds=fit_seconds, **outcome.measures()))


def _name(setting: Setting) -> str:
    return "_".join(f"{name}-{value!r}" for name, value in sorted(setting.items()))


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None  # not there, or damaged: made again
    return found
