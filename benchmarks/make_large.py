"""Draw a large cohort from a known process, as a folder of Parquet parts.

    .venv/bin/python benchmarks/make_large.py --subjects 100000 --out /tmp/large

A hidden disease is in one of three stages and rarely goes back. Eight tests see the stage through
noise: the more expensive, the clearer. A tenth of what was asked for is missing, at random.
`cohort/` holds everything that was recorded, to fit on; `history/` what has been acquired of the
same subjects by a random visit, to score. The same seed and size give the same files.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from nocta.core.cohort import Cohort

N_TIMES = 10
START = np.array([0.7, 0.25, 0.05])
STEP = np.array([[0.85, 0.14, 0.01], [0.04, 0.82, 0.14], [0.0, 0.03, 0.97]])
COSTS = np.array([1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 6.0, 9.0])
NOISE = np.array([2.5, 2.2, 1.7, 1.5, 1.2, 1.0, 0.7, 0.5])
MISSING = 0.1
SCHEMA = """subject = "subject"
visit = "visit"
n_visits = 10
label = "stage"
classes = ["0", "1", "2"]
context = ["age"]

""" + "\n".join(f"[features.test{m + 1}]\ncost = {cost}\n" for m, cost in enumerate(COSTS))


def draw_stages(n: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Stage at every visit, `(n, L)`."""
    stage = np.empty((n, N_TIMES), dtype=np.int8)
    stage[:, 0] = np.searchsorted(START.cumsum()[:-1], rng.random(n), side="right")
    edges = STEP.cumsum(axis=1)[:, :-1]
    for t in range(1, N_TIMES):
        stage[:, t] = (rng.random(n)[:, None] >= edges[stage[:, t - 1]]).sum(axis=1)
    return stage


def draw_table(first: int, n: int, seed: int) -> pa.Table:
    """Long table of `n` subjects numbered from `first`, one row per visit."""
    rng = np.random.default_rng([seed, first])
    stage = draw_stages(n, rng)
    age = np.round(rng.normal(60, 10, n), 1).astype(np.float32)
    columns: dict[str, object] = {
        "subject": np.repeat(np.arange(first, first + n), N_TIMES),
        "visit": np.tile(np.arange(N_TIMES, dtype=np.int8), n),
        "stage": stage.reshape(-1),
        "age": np.repeat(age, N_TIMES),
    }
    for m, noise in enumerate(NOISE):
        value = (stage + noise * rng.standard_normal(stage.shape, dtype=np.float32)).reshape(-1)
        missing = rng.random(value.shape, dtype=np.float32) < MISSING
        columns[f"test{m + 1}"] = pa.array(value.astype(np.float32), mask=missing)
    return pa.table(columns)


def cut_history(table: pa.Table, seed: int) -> pa.Table:
    """What is known by a random visit, of a random share of the tests; nobody is finished."""
    n = table.num_rows // N_TIMES
    rng = np.random.default_rng([seed, 1])
    now = rng.integers(-1, N_TIMES - 1, n)
    visit = table["visit"].to_numpy()
    # Somebody who has not been seen yet has one row without a visit.
    keep = visit <= np.maximum(np.repeat(now, N_TIMES), 0)
    unseen = np.repeat(now < 0, N_TIMES)
    out = table.drop_columns(["stage"])
    out = out.set_column(1, "visit", pa.array(visit, mask=unseen))
    for m in range(len(COSTS)):
        name = f"test{m + 1}"
        hidden = (rng.random(len(visit)) < 0.7) | unseen
        cells = table[name].to_numpy(zero_copy_only=False)
        hidden |= np.isnan(cells)
        out = out.set_column(out.column_names.index(name), name, pa.array(cells, mask=hidden))
    return out.filter(pa.array(keep))


def write_large(folder: Path, n: int, per_part: int = 10_000, seed: int = 0) -> Iterator[int]:
    """Write `cohort/` and `history/`; yields how many subjects are done."""
    for name in ("cohort", "history"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "schema.toml").write_text(SCHEMA, "utf-8")
    for i, first in enumerate(range(0, n, per_part)):
        size = min(per_part, n - first)
        table = draw_table(first, size, seed)
        parquet.write_table(table, folder / "cohort" / f"part-{i:05d}.parquet")
        history = cut_history(table, seed + first)
        parquet.write_table(history, folder / "history" / f"part-{i:05d}.parquet")
        yield first + size


def draw_cohort(n: int) -> Cohort:
    """This number of subjects as a cohort in memory."""
    with tempfile.TemporaryDirectory() as folder:
        list(write_large(Path(folder), n))
        path = Path(folder) / "cohort"
        return Cohort.from_table(path, path / "schema.toml")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--subjects", type=int, default=100_000)
    parser.add_argument("--per-part", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    for done in write_large(args.out, args.subjects, args.per_part, args.seed):
        print(f"\r{done} subjects", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
