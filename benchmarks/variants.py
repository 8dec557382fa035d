"""Methods on the family of random tasks, each beside its exact optimum and exact NOCT.

    python benchmarks/variants.py --exact                    exact curves, figure and page: a minute
    python benchmarks/variants.py                            the default methods on every task
    python benchmarks/variants.py --methods nocta-direct,dime --tasks 3,late-starts --seeds 2

Runs `nocta compare synthetic-family --data-option task=K` on the named tasks and on ten numbered
ones, on which no method is tuned. Tables are written again after every task:

    exact.csv     (--exact) columns task, policy, loss, cost_weight, cost, accuracy, cross_entropy
    variants.csv  one row per task, method, seed and operating point, with the optimum and exact
                  NOCT at the same cost, and their shares of the attainable gain
    summary.csv   that share over the whole range of costs, mean and lowest, and how operating
                  points are spread; exact NOCT has rows of its own
    variants.md   the same to read

Methods are run at the operating points they propose themselves. They are compared with the exact
policies on the same test subjects, so that both have the same luck with them. Rows that are in
`variants.csv` are not measured again; a stopped run continues from the finished jobs in `runs/`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from nocta.core.errors import ConfigError
from nocta.exact.family import N_TASKS, NAMED_TASKS
from nocta.exact.yardstick import Yardstick, yardstick_on
from nocta.methods.registry import method_names, parse_methods
from nocta.model.files import write_atomically
from nocta.runs.compare import compare, make_jobs
from nocta.runs.optimum import compute_yardstick, finite_task
from nocta.runs.record import Job
from nocta.runs.setup import DataSource, Setup
from variants_page import write_figure, write_page
from variants_tables import exact_table, judged, markdown, summary

#: Run if they are there; nobody may fall behind `static`, the best fixed schedule.
DEFAULT_METHODS = ("nocta-direct", "nocta-amortized", "static")
DEFAULT_TASKS = (*NAMED_TASKS, *map(str, range(N_TASKS)))
PAGE = Path("docs/explanation/open-and-closed-loop.md")
#: The test part is large: at low costs little is gained, and luck weighs most.
FRACTIONS = (0.42, 0.09, 0.49)


def source(task: str, n_subjects: int) -> DataSource:
    """The data of one task."""
    options = {"task": int(task) if task.isdigit() else task, "n_subjects": n_subjects}
    return DataSource("synthetic-family", data_options=options, fractions=FRACTIONS)


def measure(setup: Setup, jobs: Sequence[Job], folder: Path, n_jobs: int | None) -> pd.DataFrame:
    """The rows of `results.csv` of some jobs on one task; failures are printed."""
    comparison = compare(setup, jobs, folder, n_jobs=n_jobs, progress=True)
    for failure in comparison.failures:
        print(f"Failed: {failure}. The traceback is in {folder / 'jobs'}.", flush=True)
    return comparison.results


def check_sizes(table: pd.DataFrame, file: Path, n_subjects: int, n_points: int) -> None:
    """Refuse to add to rows of another size."""
    for column, now in {"subjects": n_subjects, "points": n_points}.items():
        others = set() if table.empty else set(table[column]) - {now}
        if others:
            raise ConfigError(
                f"{file} has rows with {column} = {', '.join(map(str, others))}; this run has "
                f"{now}. Give the same --{column}, or another --out."
            )


def left(table: pd.DataFrame, task: str, jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose rows are not there yet."""
    if table.empty:
        return list(jobs)
    rows = table[table["task"] == task]
    done = set(zip(rows["method"], rows["seed"], strict=True))
    return [job for job in jobs if (job.label, job.seed) not in done]


def run(
    named: Sequence[str], setup: Setup, jobs: Sequence[Job], out: Path, n_jobs: int | None
) -> None:
    """Measure what is missing on the named tasks, and write all tables after every task."""
    file, n_subjects = out / "variants.csv", int(setup.source.data_options["n_subjects"])
    table = pd.read_csv(file, dtype={"task": str}) if file.is_file() else pd.DataFrame()
    check_sizes(table, file, n_subjects, setup.n_points)
    shares = pd.DataFrame()
    known = [] if table.empty else table["task"]
    for task in dict.fromkeys([*known, *named]):
        yardstick = compute_yardstick(source(task, 1))
        options = source(task, n_subjects).data_options
        mine = replace(setup, source=replace(setup.source, data_options=options))
        missing = left(table, task, jobs) if task in named else []
        rows = table if table.empty else table[table["task"] == task]
        if missing:
            new = measure(mine, missing, out / "runs" / task, n_jobs)
            new = new.assign(task=task, subjects=n_subjects, points=setup.n_points)
            rows = pd.concat([rows, new], ignore_index=True)
        if rows.empty:
            continue  # every job failed, and was named
        on_test = {int(s): on_test_subjects(yardstick, mine, int(s)) for s in rows["seed"].unique()}
        rows = judged(rows, on_test)
        others = table if table.empty else table[table["task"] != task]
        table = pd.concat([others, rows], ignore_index=True)
        shares = pd.concat([shares, summary(rows, yardstick, on_test)], ignore_index=True)
        write(file, table)
        write(out / "summary.csv", shares)
        write_atomically(out / "variants.md", markdown(table, shares))


def on_test_subjects(yardstick: Yardstick, setup: Setup, seed: int) -> Yardstick:
    """The exact policies on the test subjects of a seed, so that luck concerns all alike."""
    test = setup.source.split(setup.source.load(seed), seed)[2]
    return yardstick_on(yardstick, finite_task(setup.source), test.values, test.labels)


def write(file: Path, table: pd.DataFrame) -> None:
    write_atomically(file, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    methods = ",".join(name for name in DEFAULT_METHODS if name in method_names())
    tasks = ",".join(DEFAULT_TASKS)
    parser.add_argument("--methods", default=methods, help=f"default: {methods}")
    parser.add_argument("--tasks", default=tasks, help=f"numbers or names; default: {tasks}")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--subjects", type=int, default=10_000, help="42 %% to train, 49 %% to test; default: 10000"
    )
    parser.add_argument("--points", type=int, default=10, help="operating points per method")
    parser.add_argument("--jobs", type=int, help="processes; default: one per core")
    parser.add_argument(
        "--exact", action="store_true", help="exact curves, figure and page of the default tasks"
    )
    parser.add_argument("--quick", action="store_true", help="a short try with worse numbers")
    parser.add_argument("--out", type=Path, default=Path("results/variants"))
    parser.add_argument("--page", type=Path, default=PAGE, help=f"rewritten by --exact: {PAGE}")
    return parser.parse_args()


def main() -> None:
    chosen = parse_arguments()
    if chosen.exact:
        tasks = {task: compute_yardstick(source(task, 1)) for task in DEFAULT_TASKS}
        write(chosen.out / "exact.csv", exact_table(tasks))
        write_figure(tasks, chosen.out)
        write_page(tasks, chosen.page)
        return
    named = [task.strip() for task in chosen.tasks.split(",")]
    setup = Setup(source(named[0], chosen.subjects), n_points=chosen.points, audit_subjects=16)
    jobs = make_jobs(parse_methods(chosen.methods), range(chosen.seeds))
    run(named, setup.as_quick() if chosen.quick else setup, jobs, chosen.out, chosen.jobs)


if __name__ == "__main__":
    main()
