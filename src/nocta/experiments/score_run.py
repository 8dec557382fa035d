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
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from nocta import persistence
from nocta.cohort.parts import CohortParts, Part
from nocta.exceptions import ConfigError
from nocta.experiments.files import write_atomically
from nocta.experiments.pool import process_pool, use_one_thread
from nocta.scoring import score_histories

if TYPE_CHECKING:
    from nocta.model import NOCTA

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
        return cls(str(model.resolve()), _checksum(model), cost_weight, budget)

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
        force: Replace results of other settings that are there.
        n_jobs: Processes of this machine; one per core by default.
        dask: Address of a Dask scheduler, whose workers then do the work.
        progress: Show a bar with the time left.
        say: Receives a sentence on what was kept from before.

    Returns:
        How many subjects were scored.

    Raises:
        ConfigError: The place is taken by something else.
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
    with tqdm(
        total=int(parts.n_subjects.sum()),
        initial=done,
        unit=" subjects",
        unit_scale=True,
        desc="scored",
        disable=not progress,
    ) as bar:
        if left:
            with _pool(n_jobs, dask) as (current, n_at_once):
                for job, data in _results(left, current, n_at_once):
                    write_atomically(job.file(folder), data)
                    bar.update(sizes[job])
    if folder != out:
        _merge(out, [job.file(folder) for job in jobs], _whole(request, jobs))
        shutil.rmtree(folder)
    return int(parts.n_subjects.sum())


@dataclass(frozen=True)
class ScorePart:
    """One part to score: a task for any process on any machine that reaches its files.

    Args:
        request: Model and settings.
        part: The subjects.
        digest: Of the input file's contents.
    """

    request: ScoreRequest
    part: Part
    digest: str

    @classmethod
    def of(cls, request: ScoreRequest, part: Part) -> ScorePart:
        part = replace(part, path=part.path.resolve())
        return cls(request, part, _digest(part.path))

    def file(self, folder: Path) -> Path:
        """Where its result goes."""
        return folder / f"{self.part.name}.parquet"

    @property
    def receipt(self) -> dict[str, Any]:
        """What a finished result says of itself."""
        return {
            **self.request.signature(),
            "input": self.digest,
            "rows": None if self.part.rows is None else list(self.part.rows),
        }

    def is_finished(self, folder: Path) -> bool:
        """Whether its result is there, whole, and was made from the same input."""
        return _receipt(self.file(folder)) == self.receipt

    def __call__(self) -> bytes:
        """Score it here; the result as the contents of a Parquet file."""
        use_one_thread()
        from pyarrow import parquet

        if _digest(self.part.path) != self.digest:
            raise ConfigError(
                f"'{self.part.path}' is another file where it is scored than where it was listed."
            )
        model = _load(self.request.model, self.request.checksum)
        table = self.part.read_histories(model.schema_, model.catalog_)
        scored = score_histories(model, table, self.request.cost_weight, self.request.budget)
        scored = _with_subjects_as_in(self.part, model.schema_["subject"], scored)
        out = BytesIO()
        parquet.write_table(_stamped(scored, self.receipt), out)
        return out.getvalue()


def run(job: ScorePart) -> bytes:
    """Call a job; a plain function can be sent anywhere."""
    return job()


@contextmanager
def _pool(n_jobs: int, dask: str | None) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Where parts are scored, and how many are at once."""
    if dask is None:
        with process_pool(n_jobs) as current:
            yield current, n_jobs
        return
    from nocta.experiments.cluster import connect

    with connect(dask) as cluster:
        yield lambda: cluster.executor, max(cluster.n_workers, 1)


def _results(
    left: list[ScorePart], pool: Callable[[], Executor], n_jobs: int
) -> Iterator[tuple[ScorePart, bytes]]:
    """Run what is left, a few parts at a time, and yield results as they come."""
    waiting, flying = iter(left), dict[Future[bytes], ScorePart]()
    ahead = 1 if n_jobs == 1 else n_jobs * _AHEAD
    while True:
        for job in waiting:
            flying[pool().submit(run, job)] = job
            if len(flying) >= ahead:
                break
        if not flying:
            return
        done, _ = wait(flying, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                yield flying.pop(future), future.result()
            except BrokenExecutor as error:
                raise RuntimeError(
                    "a process was killed, probably for lack of memory. Finished parts are kept: "
                    "go on with --jobs 1, or write the cohort in smaller parts."
                ) from error


# -- files ----------------------------------------------------------------------------------


def _open(out: Path, request: ScoreRequest, jobs: list[ScorePart], force: bool) -> Path | None:
    """The folder for results of parts; `None` when the one file asked for is there already."""
    single = out.suffix.lower() in _SUFFIXES
    folder = out.with_name(f".{out.name}.parts") if single else out
    if single and out.is_dir():
        raise ConfigError(f"'{out}' is a folder; remove it, or choose another --out.")
    if not single and out.exists() and not out.is_dir():
        raise ConfigError(f"'{out}' is a file; end --out in .parquet, or name a folder.")
    if single and out.exists() and not force:
        if _receipt(out) == _whole(request, jobs):
            return None
        raise ConfigError(
            f"'{out}' exists and was made otherwise; replace it with --force, or choose another."
        )
    expected = request.signature()
    for file in sorted(folder.glob("*.parquet")) if folder.is_dir() else []:
        found = _receipt(file)
        if found is None:
            continue  # damaged: scored again
        if force and found:
            file.unlink()
        elif {name: found.get(name) for name in expected} != expected:
            there = ", ".join(f"{k} {found.get(k)}" for k in ("cost_weight", "budget"))
            raise ConfigError(
                f"'{file}' was made otherwise ({there if found else 'not by nocta score'}). Use "
                f"the same model and settings to go on, --force to begin anew, or another --out."
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _whole(request: ScoreRequest, jobs: list[ScorePart]) -> dict[str, Any]:
    text = json.dumps([[job.part.name, job.receipt] for job in jobs])
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
    stamp = path.stat()
    return _digest_of(str(path), stamp.st_size, stamp.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest_of(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(model: Path) -> str:
    persistence.read_manifest(model)  # says what is wrong with it
    return _digest(model / persistence.MANIFEST)


@lru_cache(maxsize=1)
def _load(model: str, checksum: str) -> NOCTA:
    """The model, read once per process."""
    if _checksum(Path(model)) != checksum:
        raise ConfigError(f"'{model}' is another model where parts are scored than here.")
    return persistence.load(model)
