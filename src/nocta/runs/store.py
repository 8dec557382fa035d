"""The folder of a comparison: what it was set up with, and a file for every finished job.

    DIR/setup.json          what all jobs have in common
    DIR/jobs/NAME.json      a finished job: its rows, details for the report, the audit
    DIR/jobs/NAME.trials    the trials of a job that is being tuned, until it is finished
    DIR/jobs/NAME.error     why a job failed, until it succeeds

A job is finished when its file is there; files appear whole. So a sweep that was killed goes on
where it stopped, and results are always those of the finished jobs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nocta.core.errors import ConfigError
from nocta.runs.files import write_atomically
from nocta.runs.record import Job, JobRecord
from nocta.runs.results import read_results
from nocta.runs.setup import Setup

FORMAT = 1


class JobStore:
    """Reads and writes the folder of a comparison.

    Args:
        directory: The folder; made when needed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)
        self.jobs = self.directory / "jobs"

    def open(self, setup: Setup, fingerprint: str, jobs: Sequence[Job] = ()) -> None:
        """Claim the folder for a setup, or verify that it was made with the same one.

        Args:
            setup: What all jobs have in common.
            fingerprint: Hash of the data.
            jobs: Those that will be there afterwards, whether they are there now or not.

        Raises:
            ConfigError: The folder holds results of something else.
        """
        path = self.directory / "setup.json"
        if self.directory.exists() and not self.directory.is_dir():
            raise ConfigError(f"'{self.directory}' is a file; --out names a folder.")
        if path.is_file():
            self._compare(path, setup, fingerprint)
            self._refuse_to_lose_rows(jobs)
            return
        if (self.directory / "results.csv").exists():
            raise ConfigError(
                f"'{self.directory}' holds a results.csv but no setup.json, so it is not known "
                f"how those results were made. Choose another --out."
            )
        found = {"format": FORMAT, "setup": setup.to_dict(), "data_sha256": fingerprint}
        write_atomically(path, json.dumps(found, indent=2) + "\n")

    def _compare(self, path: Path, setup: Setup, fingerprint: str) -> None:
        found = _read_json(path)
        differences = setup.differences(found.get("setup", {}))
        if found.get("format") != FORMAT:
            differences.append(f"the format is {found.get('format')} there and {FORMAT} here")
        if not differences and found.get("data_sha256") != fingerprint:
            differences.append("the data have changed since")
        if differences:
            raise ConfigError(
                f"'{self.directory}' holds a comparison with other settings: "
                f"{'; '.join(differences)}. Choose another --out, or repeat the settings to "
                f"continue it (methods and seeds may be added)."
            )

    def _refuse_to_lose_rows(self, wanted: Sequence[Job]) -> None:
        """`results.csv` is written from the jobs; rows whose job is gone would be lost."""
        path = self.directory / "results.csv"
        if not path.is_file():
            return
        rows = read_results(path)
        jobs = [record.job for record in self.records()]
        kept = {(job.label, job.seed) for job in (*jobs, *wanted)}
        lost = sorted({*zip(rows["method"], rows["seed"], strict=True)} - kept)
        if lost:
            some = ", ".join(f"{method} {seed}" for method, seed in lost[:3])
            raise ConfigError(
                f"'{path}' has results of {len(lost)} job(s) whose files are not in "
                f"'{self.jobs}' ({some}{', ...' if len(lost) > 3 else ''}), so it cannot be "
                f"continued without losing them. Choose another --out, or move results.csv away "
                f"to run them again."
            )

    def path(self, job: Job) -> Path:
        """Where a finished job is kept."""
        return self.jobs / f"{job.name}.json"

    def is_finished(self, job: Job) -> bool:
        """Whether the job need not be run again.

        Raises:
            ConfigError: A job of that name was run with other options.
        """
        path = self.path(job)
        if not path.is_file():
            return False
        found = _read_json(path)["job"]
        if found != job.to_dict():
            raise ConfigError(
                f"'{path}' was made with method '{found['method']}' and options "
                f"{found['options']}; now it is method '{job.method}' and options "
                f"{job.to_dict()['options']}. Give the job another label, or choose another --out."
            )
        return True

    def read(self, job: Job) -> JobRecord:
        """A finished job."""
        return _read_record(self.path(job))

    def save(self, job: Job, record: JobRecord) -> None:
        """Keep a finished job."""
        write_atomically(self.path(job), json.dumps(record.to_dict(), allow_nan=False))
        for left in (self._error(job), self.trials(job)):
            left.unlink(missing_ok=True)

    def trials(self, job: Job) -> Path:
        """Where the trials of a job are kept while it is being tuned."""
        return self.jobs / f"{job.name}.trials"

    def save_error(self, job: Job, details: str) -> None:
        """Keep the traceback of a failed job, for whoever looks into it."""
        write_atomically(self._error(job), details)

    def _error(self, job: Job) -> Path:
        return self.jobs / f"{job.name}.error"

    def records(self, order: Sequence[str] = ()) -> list[JobRecord]:
        """Every finished job, methods in this order (others after them), then by seed."""
        found = [_read_record(path) for path in sorted(self.jobs.glob("*.json"))]
        rank = {label: i for i, label in enumerate(order)}

        def place(record: JobRecord) -> tuple[int, str, int]:
            job = record.job
            return rank.get(job.label, len(rank)), job.label, job.seed

        return sorted(found, key=place)


def _read_record(path: Path) -> JobRecord:
    return JobRecord.read(_read_json(path), path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"'{path}' cannot be read ({error}); delete it and run again.") from None
    return found
