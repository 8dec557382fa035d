"""Score a large cohort part by part, and continue a run that was stopped.

A finished part is a Parquet file whose metadata say what it was made from: the model, the settings
and the contents of the input. A part whose input changed is scored again. `order_list` turns the
parts into a CSV file, if that is asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.errors import ConfigError, ProcessKilled
from nocta.core.progress import progress_bar
from nocta.model import archive, persistence
from nocta.model.files import FileState, file_state
from nocta.model.folders import Folder, recognize
from nocta.model.inputs import remarks
from nocta.planning.scoring import score_histories
from nocta.runs import order_list
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.scheduler import (
    Workers,
    n_processes,
    open_workers,
    run_tasks,
    use_one_thread,
    worker_died,
)
from nocta.tables.history_table import Absent
from nocta.tables.parts.parts import SUFFIXES, CohortParts, Part
from nocta.tables.problems import add_up, enumerate_some
from nocta.tables.schema import Schema

if TYPE_CHECKING:
    from nocta.model.nocta import NOCTA

_KEY = b"nocta.score"
_NOTES = b"nocta.notes"
_OTHER = "Use the same model and settings to continue, --force to start over, or another --out."


@dataclass(frozen=True)
class ScoreRequest:
    """What every subject is scored with.

    The model's folder must be reachable from wherever parts are scored; the hash of its manifest
    shows another model under the same name. The budget is what may still be spent on each subject.
    """

    model: str
    model_hash: str
    cost_weight: float
    budget: float | None = None
    #: A feature whose column the input lacks counts as unavailable; otherwise it is an error.
    allow_missing: bool = False
    #: What must and must not be acquired, beside the constraints of the model.
    constraints: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        model: Path,
        cost_weight: float,
        budget: float | None = None,
        allow_missing: bool = False,
        constraints: Sequence[str] = (),
    ) -> ScoreRequest:
        """Settings for the model in this folder."""
        found = archive.folder_hash(model)
        place = str(model.resolve())
        return cls(place, found, cost_weight, budget, allow_missing, tuple(constraints))

    def to_dict(self) -> dict[str, Any]:
        """What decides the result; the place of the model does not."""
        names = ("model_hash", "cost_weight", "budget")
        rules = {"constraints": list(self.constraints)} if self.constraints else {}
        return {**{name: getattr(self, name) for name in names}, **rules}


def score_cohort(
    request: ScoreRequest,
    cohort: Path,
    out: Path,
    *,
    force: bool = False,
    n_jobs: int | None = None,
    dask: str | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Score every subject of a cohort; returns how many there are.

    Args:
        cohort: A Parquet or CSV file with what was acquired so far, or a folder of Parquet files.
        out: A name that ends in .parquet becomes one file, one that ends in .csv an order list;
            any other a folder with one file per part of the input.
        force: Replace results of other settings, and of parts that the cohort does not have.
        n_jobs: Processes of this machine; one per core by default.
        dask: Address of a Dask scheduler, whose workers then do the work.
        say: Receives sentences on what was kept from before, and notes on the input.
    """
    _check_name(out)
    schema = archive.read_manifest(request.model)["schema"]
    parts = CohortParts.open(cohort, schema)
    total = int(parts.n_subjects.sum())
    # Absolute paths do not depend on where a process was started.
    listed = [replace(part, path=part.path.resolve()) for part in parts.parts]
    jobs = [ScorePart(request, part) for part in listed]
    sizes = dict(zip(jobs, parts.n_subjects.tolist(), strict=True))
    single = out.suffix.lower() in (*SUFFIXES, order_list.SUFFIX)
    if out.suffix.lower() == order_list.SUFFIX:
        order_list.check_target(out, force)
    elif single and _is_finished(out, request, jobs, force):
        say(f"'{out}' is finished already.")
        return total
    finished = _open(out, single, request, jobs, force)
    left = [job for job in jobs if not job.is_finished(finished)]
    if len(left) < len(jobs):
        say(f"{len(jobs) - len(left)} of {len(jobs)} parts were finished before.")
    with progress_bar(
        total=total,
        initial=total - sum(sizes[job] for job in left),
        unit=" subjects",
        unit_scale=True,
        desc="scored",
        show=progress,
    ) as bar:
        if left:
            with open_workers(n_processes(n_jobs, len(left)), dask) as workers:
                for job, data in _results(left, workers):
                    _keep(finished, job, data)
                    bar.update(sizes[job])
    files = [finished.path(job.file) for job in jobs]
    for note in add_up(note for file in files for note in notes_of(file)):
        say(f"Note: {note}")
    if out.suffix.lower() == order_list.SUFFIX:
        Checkpoint(out.parent).write(
            out.name, lambda path: order_list.write(path, files, Schema.model_validate(schema))
        )
    elif single:
        _merge(finished, jobs, out, request)
    if single:
        finished.clear()
    return total


@dataclass(frozen=True)
class ScorePart:
    """One part to score: a task for any process on any machine that reaches its files."""

    request: ScoreRequest
    part: Part

    @property
    def file(self) -> str:
        return f"{self.part.name}.parquet"

    def made_from(self) -> dict[str, Any]:
        """What its result is made from; the input is read for its hash, once."""
        rows = None if self.part.rows is None else list(self.part.rows)
        hashed = _hash_of(str(self.part.path), file_state(self.part.path))
        return {**self.request.to_dict(), "input_hash": hashed, "rows": rows}

    def is_finished(self, finished: Checkpoint) -> bool:
        """Whether its result is there and was made from the same input."""
        found = finished.read(self.file, made_from)
        return found is not None and found == self.made_from()

    def __call__(self, expected: dict[str, Any]) -> bytes:
        """The contents of a Parquet file; refused if the input is not the one that was listed."""
        use_one_thread()
        from pyarrow import parquet

        if self.made_from() != expected:
            raise ConfigError(
                f"'{self.part.path}' differs between this machine and the worker. Copy the same "
                f"file to both, or use a shared folder."
            )
        model = _load(self.request.model, self.request.model_hash)
        absent: Absent = "unavailable" if self.request.allow_missing else "refuse"
        table = self.part.read_histories(model.schema_, model.catalog_, absent)
        notes = [*table.notes, *remarks(model, table)]
        weight, budget = self.request.cost_weight, self.request.budget
        constraints = self.request.constraints
        scored = score_histories(model, table, weight, budget, constraints=constraints)
        scored = _with_subjects_as_in(self.part, model.schema_["subject"], scored)
        out = BytesIO()
        parquet.write_table(_with_metadata(scored, expected, notes), out)
        return out.getvalue()


def run(job: ScorePart, expected: dict[str, Any]) -> bytes:
    """Call a job; a plain function can be sent anywhere."""
    return job(expected)


def _results(left: Sequence[ScorePart], workers: Workers) -> Iterator[tuple[ScorePart, bytes]]:
    """Run what is left, a few parts at a time, and yield results as they come."""
    waiting = iter(left)

    def submit(job: ScorePart) -> Future[bytes]:
        return workers.submit(run, job, job.made_from())

    def n_at_once() -> int:
        return workers.n_workers * (1 + workers.n_ahead)

    for ended in run_tasks(lambda _: next(waiting, None), submit, n_at_once, {}):
        if ended is None:
            continue
        job, future = ended
        if worker_died(future.exception()):
            raise ProcessKilled(
                f"Part '{job.part.name}' crashed its process twice, probably for lack of memory. "
                f"Finished parts are kept: continue with --jobs 1, or write the cohort in smaller "
                f"parts."
            ) from future.exception()
        yield job, future.result()


# -- files ----------------------------------------------------------------------------------


def _check_name(out: Path) -> None:
    """Refuse a name that looks like a file of a kind that is not written."""
    if out.suffix.lower() in (".tsv", ".gz", ".txt", ".xlsx", ".xls", ".json", ".feather"):
        raise ConfigError(
            f"'{out}' looks like a file, but not like one that score writes. End --out in "
            f".parquet or .csv, or name a folder."
        )


def _is_finished(out: Path, request: ScoreRequest, jobs: list[ScorePart], force: bool) -> bool:
    """Whether one file holds the result already; raises if it holds something else."""
    if out.is_dir():
        raise ConfigError(f"'{out}' is a folder; remove it, or choose another --out.")
    if not out.exists():
        return False
    found = Checkpoint(out.parent).read(out.name, made_from)
    if found == {}:
        raise ConfigError(f"'{out}' was not made by nocta score; choose another --out.")
    if found == _whole(request, [(job.part.name, job.made_from()) for job in jobs]):
        return True
    if not force:
        raise ConfigError(
            f"'{out}' was made with other settings or data; replace it with --force, or choose "
            f"another --out."
        )
    return False


def _open(
    out: Path, single: bool, request: ScoreRequest, jobs: list[ScorePart], force: bool
) -> Checkpoint:
    """The folder of finished parts; raises if it holds something else."""
    if single:
        finished = Checkpoint(out.with_name(f".{out.name}.parts"), request.to_dict())
        finished.open(discard=force, remedy=_OTHER)
        return finished
    there = recognize(out)
    if there is Folder.FILE:
        raise ConfigError(f"'{out}' is a file; end --out in .parquet, or name a folder.")
    if there in (Folder.MODEL, Folder.UNFINISHED_FIT, Folder.COMPARISON):
        raise ConfigError(f"'{out}' {there.value}; choose another --out.")
    finished = Checkpoint(out, request.to_dict(), own=False)
    files = finished.names("*.parquet")
    for name in files:
        if finished.read(name, made_from) == {}:
            raise ConfigError(
                f"'{out / name}' was not made by nocta score. Move it elsewhere, or choose "
                f"another --out."
            )
    if files and there is not Folder.SCORES and not force:
        raise ConfigError(
            f"'{out}' holds scored parts, but not the settings they were made with "
            f"({finished.file.name}). Use --force to replace them, or another --out."
        )
    finished.open(discard=force, remedy=_OTHER)
    others = sorted({*files} - {job.file for job in jobs})
    if others and not force:
        raise ConfigError(
            f"'{out}' holds results of parts that are not in this cohort: "
            f"{enumerate_some(others)}. They would be mistaken for results of this cohort. "
            f"Use --force to remove them, or another --out."
        )
    finished.drop(others)
    return finished


def _keep(finished: Checkpoint, job: ScorePart, data: bytes) -> None:
    finished.write(job.file, lambda path: path.write_bytes(data))


def _whole(
    request: ScoreRequest, parts: Sequence[tuple[str, dict[str, Any] | None]]
) -> dict[str, Any]:
    text = json.dumps([[name, made] for name, made in parts])
    inputs = hashlib.sha256(text.encode()).hexdigest()
    return {**request.to_dict(), "input_hash": inputs, "rows": None}


def made_from(file: Path) -> dict[str, Any]:
    """What a result says it was made from; empty if it is not a result of ours."""
    from pyarrow import parquet

    text = (parquet.read_schema(file).metadata or {}).get(_KEY)
    found: dict[str, Any] = {} if text is None else json.loads(text)
    return found


def notes_of(file: Path) -> list[str]:
    """What was noted when the input of a part was read."""
    from pyarrow import parquet

    found: list[str] = json.loads((parquet.read_schema(file).metadata or {}).get(_NOTES, "[]"))
    return found


def _with_metadata(table: Any, made: dict[str, Any], notes: Sequence[str] = ()) -> Any:
    more = {_NOTES: json.dumps(list(notes))} if notes else {}
    return table.replace_schema_metadata({_KEY: json.dumps(made), **more})


def _merge(finished: Checkpoint, jobs: list[ScorePart], out: Path, request: ScoreRequest) -> None:
    """Write one file from those of the parts, with one in memory at a time."""
    from pyarrow import parquet

    files = [finished.path(job.file) for job in jobs]
    made = _whole(request, [(job.part.name, made_from(finished.path(job.file))) for job in jobs])

    def save(path: Path) -> None:
        first = parquet.read_table(files[0], partitioning=None).slice(0, 0)
        with parquet.ParquetWriter(path, _with_metadata(first, made).schema) as writer:
            for file in files:
                writer.write_table(
                    _with_metadata(parquet.read_table(file, partitioning=None), made)
                )

    Checkpoint(out.parent).write(out.name, save)


def _with_subjects_as_in(part: Part, column: str, scored: Any) -> Any:
    """Subjects in the type of the input: in one part all may look like numbers, in another not."""
    import pyarrow as pa
    from pyarrow import parquet

    if part.is_text:
        return scored
    kind = parquet.read_schema(part.path).field(column).type
    wanted = pa.int64() if pa.types.is_integer(kind) else pa.string()
    return scored.set_column(0, "subject", scored["subject"].cast(wanted))


@lru_cache(maxsize=1 << 16)
def _hash_of(path: str, state: FileState) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _load(model: str, model_hash: str) -> NOCTA:
    """The model, read once per process."""
    if archive.folder_hash(model) != model_hash:
        raise ConfigError(
            f"The model in '{model}' differs on the worker. Copy the same model there."
        )
    return persistence.load(model)
