"""Score a large cohort part by part, on processes or a cluster, and survive a kill.

Each finished part is a Parquet file that says in its metadata what it was made from: the model,
the settings, and the contents of the input. Only such a file counts as finished; files appear
whole. So a run that was stopped goes on where it was, and a changed input is scored anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.errors import ConfigError, ProcessKilled
from nocta.core.progress import progress_bar
from nocta.model import persistence
from nocta.planning.scoring import score_histories
from nocta.runs.files import Stamp, file_stamp, write_atomically
from nocta.runs.pool import is_death, process_pool, run_tasks, use_one_thread
from nocta.tables.parts.parts import CohortParts, Part
from nocta.tables.problems import enumerate_some

if TYPE_CHECKING:
    from nocta.model.nocta import NOCTA

_KEY = b"nocta.score"
_SUFFIXES = (".parquet", ".pq")
#: Parts in flight per process: one is computed while another waits.
_AHEAD = 2


@dataclass(frozen=True)
class ScoreRequest:
    """What every subject is scored with.

    Args:
        model: Folder of the model, reachable from wherever parts are scored.
        checksum: Of its manifest, so that another model of that name is noticed.
        cost_weight: What one unit of cost is worth in loss (`alpha`).
        budget: What may still be spent on each subject.
    """

    model: str
    checksum: str
    cost_weight: float
    budget: float | None = None

    @classmethod
    def of(cls, model: Path, cost_weight: float, budget: float | None = None) -> ScoreRequest:
        """Settings for the model in this folder."""
        return cls(str(model.resolve()), persistence.checksum(model), cost_weight, budget)

    def signature(self) -> dict[str, Any]:
        """What decides the result; where the model lies does not."""
        found = asdict(self)
        del found["model"]
        return found


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
    """Score every subject of a cohort.

    Args:
        request: Model and settings.
        cohort: A Parquet file with what was acquired so far, or a folder of such files.
        out: A name that ends in .parquet becomes one file; any other a folder with one file
            per part of the input.
        force: Replace results of other settings, and of parts that the cohort does not have.
        n_jobs: Processes of this machine; one per core by default.
        dask: Address of a Dask scheduler, whose workers then do the work.
        progress: Show a bar with the time left.
        say: Receives a sentence on what was kept from before.

    Returns:
        How many subjects were scored.

    Raises:
        ConfigError: The place is taken by something else.
        ProcessKilled: A part ended its process twice.
    """
    schema = persistence.read_manifest(request.model)["schema"]
    parts = CohortParts.open(cohort, schema)
    jobs = [ScorePart.of(request, part) for part in parts.parts]
    folder = _open(out, request, jobs, force)
    if folder is None:
        say(f"'{out}' is finished already.")
        return int(parts.n_subjects.sum())
    sizes = dict(zip(jobs, parts.n_subjects.tolist(), strict=True))
    left = [job for job in jobs if not job.is_finished(folder)]
    done = int(parts.n_subjects.sum()) - sum(sizes[job] for job in left)
    if len(left) < len(jobs):
        say(f"{len(jobs) - len(left)} of {len(jobs)} parts were finished before.")
    n_jobs = max(1, min(n_jobs or os.cpu_count() or 1, len(left)))
    with progress_bar(
        total=int(parts.n_subjects.sum()),
        initial=done,
        unit=" subjects",
        unit_scale=True,
        desc="scored",
        show=progress,
    ) as bar:
        if left:
            with _pool(n_jobs, dask) as (current, n_at_once):
                for job, data in _results(left, current, n_at_once):
                    write_atomically(job.file(folder), data)
                    bar.update(sizes[job])
    if folder != out:
        files = [job.file(folder) for job in jobs]
        made_from = [_receipt(file) for file in files]
        _merge(out, files, _whole(request, jobs, made_from))
        shutil.rmtree(folder)
    return int(parts.n_subjects.sum())


@dataclass(frozen=True)
class ScorePart:
    """One part to score: a task for any process on any machine that reaches its files.

    Args:
        request: Model and settings.
        part: The subjects.
    """

    request: ScoreRequest
    part: Part

    @classmethod
    def of(cls, request: ScoreRequest, part: Part) -> ScorePart:
        """The same file by a name that does not depend on where a process was started."""
        return cls(request, replace(part, path=part.path.resolve()))

    def file(self, folder: Path) -> Path:
        """Where its result goes."""
        return folder / f"{self.part.name}.parquet"

    def receipt(self) -> dict[str, Any]:
        """What a finished result says of itself; the input is read for it once."""
        return {
            **self.request.signature(),
            "input": _digest(self.part.path),
            "rows": None if self.part.rows is None else list(self.part.rows),
        }

    def is_finished(self, folder: Path) -> bool:
        """Whether its result is there, whole, and was made from the same input."""
        found = _receipt(self.file(folder))
        return found is not None and found == self.receipt()

    def __call__(self, receipt: dict[str, Any]) -> bytes:
        """Score it here; the result as the contents of a Parquet file.

        Args:
            receipt: As it is where the part was listed; here it has to be the same.
        """
        use_one_thread()
        from pyarrow import parquet

        if self.receipt() != receipt:
            raise ConfigError(
                f"'{self.part.path}' is another file where it is scored than where it was listed."
            )
        model = _load(self.request.model, self.request.checksum)
        table = self.part.read_histories(model.schema_, model.catalog_)
        scored = score_histories(model, table, self.request.cost_weight, self.request.budget)
        scored = _with_subjects_as_in(self.part, model.schema_["subject"], scored)
        out = BytesIO()
        parquet.write_table(_stamped(scored, receipt), out)
        return out.getvalue()


def run(job: ScorePart, receipt: dict[str, Any]) -> bytes:
    """Call a job; a plain function can be sent anywhere."""
    return job(receipt)


@contextmanager
def _pool(
    n_jobs: int, dask: str | None
) -> Iterator[tuple[Callable[[], Executor], Callable[[], int]]]:
    """Where parts are scored, and how many may be in flight now."""
    if dask is None:
        ahead = 1 if n_jobs == 1 else n_jobs * _AHEAD
        with process_pool(n_jobs) as current:
            yield current, lambda: ahead
        return
    from nocta.runs.cluster import connect

    with connect(dask) as cluster:
        yield lambda: cluster.executor, lambda: max(cluster.n_workers, 1) * _AHEAD


def _results(
    left: list[ScorePart], pool: Callable[[], Executor], n_at_once: Callable[[], int]
) -> Iterator[tuple[ScorePart, bytes]]:
    """Run what is left, a few parts at a time, and yield results as they come."""
    waiting = iter(left)

    def submit(job: ScorePart) -> Future[bytes]:
        return pool().submit(run, job, job.receipt())

    for ended in run_tasks(lambda _: next(waiting, None), submit, n_at_once, {}):
        if ended is None:
            continue
        job, future = ended
        if is_death(future.exception()):
            raise ProcessKilled(
                f"Part '{job.part.name}' ended its process twice, probably for lack of memory. "
                f"Finished parts are kept: go on with --jobs 1, or write the cohort in smaller "
                f"parts."
            ) from future.exception()
        yield job, future.result()


# -- files ----------------------------------------------------------------------------------


def _open(out: Path, request: ScoreRequest, jobs: list[ScorePart], force: bool) -> Path | None:
    """The folder for results of parts; `None` when the one file asked for is there already."""
    single = out.suffix.lower() in _SUFFIXES
    folder = out.with_name(f".{out.name}.parts") if single else out
    if single and out.is_dir():
        raise ConfigError(f"'{out}' is a folder; remove it, or choose another --out.")
    if not single and out.exists() and not out.is_dir():
        raise ConfigError(f"'{out}' is a file; end --out in .parquet, or name a folder.")
    if single and out.exists():
        found = _receipt(out)
        if found == {}:
            raise ConfigError(f"'{out}' was not made by nocta score; choose another --out.")
        if found == _whole(request, jobs, [job.receipt() for job in jobs]):
            return None
        if not force:
            raise ConfigError(
                f"'{out}' exists and was made otherwise; replace it with --force, or choose "
                f"another."
            )
    _check_settings(folder, request, force)
    if not single:
        _check_parts(folder, jobs, force)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_settings(folder: Path, request: ScoreRequest, force: bool) -> None:
    """Raise where a folder holds something else than results of these settings, or remove it."""
    expected = request.signature()
    for file in _parquet_files(folder):
        found = _receipt(file)
        if found is None:
            continue  # damaged: scored again
        if not found:
            raise ConfigError(
                f"'{file}' was not made by nocta score. Move it elsewhere, or choose another --out."
            )
        if {name: found.get(name) for name in expected} == expected:
            continue
        if not force:
            there = ", ".join(f"{k} {found.get(k)}" for k in ("cost_weight", "budget"))
            raise ConfigError(
                f"'{file}' was made otherwise ({there}). Use the same model and settings to go "
                f"on, --force to begin anew, or another --out."
            )
        file.unlink()


def _check_parts(folder: Path, jobs: list[ScorePart], force: bool) -> None:
    """Raise where a folder holds results of parts that are not in the cohort, or remove them."""
    own = {job.file(folder) for job in jobs}
    others = [file for file in _parquet_files(folder) if file not in own]
    if others and not force:
        raise ConfigError(
            f"'{folder}' holds results of parts that are not in this cohort: "
            f"{enumerate_some([file.name for file in others])}. Whoever reads the folder would "
            f"take them for results of this one. Use --force to remove them, or another --out."
        )
    for file in others:
        file.unlink()


def _parquet_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def _whole(
    request: ScoreRequest, jobs: list[ScorePart], receipts: list[dict[str, Any] | None]
) -> dict[str, Any]:
    """What one file of all parts says of itself."""
    named = zip((job.part.name for job in jobs), receipts, strict=True)
    text = json.dumps([[name, receipt] for name, receipt in named])
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {**request.signature(), "input": digest, "rows": None}


def _receipt(file: Path) -> dict[str, Any] | None:
    """What a file says it was made from; empty where it is no result of ours, `None` if damaged."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        stamp = (parquet.read_schema(file).metadata or {}).get(_KEY)
    except (pa.ArrowException, OSError):
        return None
    found: dict[str, Any] = {} if stamp is None else json.loads(stamp)
    return found


def _stamped(table: Any, receipt: dict[str, Any]) -> Any:
    return table.replace_schema_metadata({_KEY: json.dumps(receipt)})


def _merge(out: Path, files: list[Path], receipt: dict[str, Any]) -> None:
    """One file from those of the parts, one in memory at a time."""
    from pyarrow import parquet

    beside = out.with_name(f".{out.name}.{os.getpid()}.part")
    schema = _stamped(parquet.read_table(files[0], partitioning=None).slice(0, 0), receipt).schema
    try:
        with parquet.ParquetWriter(beside, schema) as writer:
            for file in files:
                writer.write_table(_stamped(parquet.read_table(file, partitioning=None), receipt))
        os.replace(beside, out)
    finally:
        beside.unlink(missing_ok=True)


def _with_subjects_as_in(part: Part, column: str, scored: Any) -> Any:
    """Subjects in the type of the input: in one part all may look like numbers, in another not."""
    import pyarrow as pa
    from pyarrow import parquet

    kind = parquet.read_schema(part.path).field(column).type
    wanted = pa.int64() if pa.types.is_integer(kind) else pa.string()
    return scored.set_column(0, "subject", scored["subject"].cast(wanted))


def _digest(path: Path) -> str:
    return _digest_of(str(path), file_stamp(path))


@lru_cache(maxsize=1 << 16)
def _digest_of(path: str, stamp: Stamp) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _load(model: str, checksum: str) -> NOCTA:
    """The model, read once per process."""
    if persistence.checksum(model) != checksum:
        raise ConfigError(f"'{model}' is another model where parts are scored than here.")
    return persistence.load(model)
