"""The folder of a comparison: its setup, and a file for every finished job.

DIR/setup.json              what all jobs have in common
DIR/jobs/NAME.json          a finished job: its rows, details for the report, the audit
DIR/jobs/NAME.error         why a job failed, until it succeeds
DIR/jobs/NAME.tuning/       trials of a job that is being tuned, until it is finished
DIR/jobs/predictor-seedN/   the predictor that the jobs of a seed share
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from nocta.core.errors import ConfigError
from nocta.model.files import write_atomically
from nocta.model.folders import SETUP, Folder, recognize, refuse_other
from nocta.model.persistence import load_predictor, save_predictor
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.learning import FittedPredictor
from nocta.runs.record import Job, JobRecord
from nocta.runs.results import read_results
from nocta.runs.setup import Setup, request_defaults

FORMAT = 1
#: In the folder of a kept predictor, how long the fit took.
_SECONDS = "fit_seconds.json"


class JobStore:
    """Reads and writes the folder of a comparison, which is made when needed."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)
        self.jobs = self.directory / "jobs"
        self._pieces = Checkpoint(self.directory, file=SETUP, own=False)

    def open(self, setup: Setup, data_hash: str, jobs: Sequence[Job] = ()) -> None:
        """Begin a comparison in the folder, or continue one with the same setup and data.

        Results in the folder that are neither kept nor among `jobs` are an error.
        """
        there = recognize(self.directory)
        if there is Folder.FILE:
            raise ConfigError(f"'{self.directory}' is a file; --out names a folder.")
        if there is Folder.OTHER and (self.directory / "results.csv").exists():
            raise ConfigError(
                f"'{self.directory}' holds a results.csv but no setup.json, so it is not known "
                f"how those results were made. Choose another --out."
            )
        refuse_other(self.directory, Folder.COMPARISON)
        request = {"format": FORMAT, "setup": setup.to_dict(), "data_sha256": data_hash}
        self._pieces = Checkpoint(
            self.directory, request, file=SETUP, own=False, defaults=request_defaults(Setup)
        )
        self._pieces.open(
            remedy="Choose another --out, or repeat the settings to continue it (methods and "
            "seeds may be added)."
        )
        self._refuse_to_lose_rows(jobs)
        self._pieces.begin()

    def _refuse_to_lose_rows(self, wanted: Sequence[Job]) -> None:
        """`results.csv` is written from the jobs; rows whose job is gone would be lost."""
        path = self.directory / "results.csv"
        if not path.is_file():
            return
        rows = read_results(path)
        kept = {(job.label, job.seed) for job in wanted}
        kept |= {(record.job.label, record.job.seed) for record in self.records(skip_damaged=True)}
        lost = sorted({*zip(rows["method"], rows["seed"], strict=True)} - kept)
        if lost:
            some = ", ".join(f"{method} {seed}" for method, seed in lost[:3])
            raise ConfigError(
                f"'{path}' has results of {len(lost)} job(s) whose files are not in "
                f"'{self.jobs}' ({some}{', ...' if len(lost) > 3 else ''}), so it cannot be "
                f"continued without losing them. Choose another --out, or move results.csv away "
                f"to run them again."
            )

    def is_finished(self, job: Job) -> bool:
        """Whether the job need not be run again; a damaged file counts as missing."""
        record = self.read(job)
        if record is not None and record.job.to_dict() != job.to_dict():
            raise ConfigError(
                f"'{self._pieces.path(_piece(job))}' was made with method '{record.job.method}' "
                f"and options {record.job.options}; now it is method '{job.method}' and options "
                f"{job.to_dict()['options']}. Give the job another label, or choose another --out."
            )
        return record is not None

    def read(self, job: Job) -> JobRecord | None:
        """A finished job; `None` if it is not finished or its file is damaged."""
        return self._record(_piece(job))

    def _record(self, piece: str) -> JobRecord | None:
        found = self._pieces.get(piece)
        return None if found is None else JobRecord.read(found, self._pieces.path(piece))

    def save(self, job: Job, record: JobRecord) -> None:
        """Keep a finished job; its trials and its last error are not needed any more."""
        self._pieces.put(_piece(job), record.to_dict())
        self._pieces.drop([_piece(job, "error"), _piece(job, "tuning")])

    def save_error(self, job: Job, details: str) -> None:
        """Keep the traceback of a failed job, for whoever looks into it."""
        write_atomically(self._pieces.path(_piece(job, "error")), details)

    def tuning(self, job: Job, tuned: Sequence[str]) -> Path:
        """The journal of the trials of a job; trials of another job or search are removed."""
        request = {"job": job.to_dict(), "tuned": tuned}
        checkpoint = Checkpoint(self._pieces.path(_piece(job, "tuning")), request)
        checkpoint.open(discard=True)
        checkpoint.begin()
        return checkpoint.path("journal.log")

    def predictor(self, seed: int) -> FittedPredictor | None:
        """The predictor that was fitted for a seed; `None` if it is missing or damaged."""

        def load(folder: Path) -> FittedPredictor:
            seconds = json.loads((folder / _SECONDS).read_text("utf-8"))
            return FittedPredictor(load_predictor(folder), float(seconds))

        return self._pieces.read(f"jobs/predictor-seed{seed}", load)

    def save_predictor(self, seed: int, fitted: FittedPredictor) -> None:
        """Keep the predictor of a seed for the jobs that share it."""

        def save(folder: Path) -> None:
            save_predictor(fitted.predictor, folder)
            (folder / _SECONDS).write_text(json.dumps(fitted.seconds), "utf-8")

        self._pieces.write(f"jobs/predictor-seed{seed}", save)

    def records(self, order: Sequence[str] = (), *, skip_damaged: bool = False) -> list[JobRecord]:
        """Every finished job, methods in this order (others after them), then by seed."""
        found = []
        for piece in self._pieces.names("jobs/*.json"):
            record = self._record(piece)
            if record is not None:
                found.append(record)
            elif not skip_damaged:
                path = self._pieces.path(piece)
                raise ConfigError(f"'{path}' is damaged; delete it and run the job again.")
        rank = {label: i for i, label in enumerate(order)}

        def place(record: JobRecord) -> tuple[int, str, int]:
            job = record.job
            return rank.get(job.label, len(rank)), job.label, job.seed

        return sorted(found, key=place)


def _piece(job: Job, kind: str = "json") -> str:
    return f"jobs/{job.name}.{kind}"
