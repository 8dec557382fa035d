"""How time and memory grow with the number of subjects: fit, roll out and score Parquet parts.

    make bench-large
    .venv/bin/python benchmarks/large.py --subjects 10000 100000 1000000

For every size it draws the cohort (`make_large.py`), runs `nocta fit` on its parts, `nocta
evaluate` on the test subjects (15 % of them; whole trajectories at one cost weight) and `nocta
score` on the histories of all, each as a process of its own, and appends a row per step to
`results/bench/large.csv`: wall and processor seconds, and the peak of resident memory and of the
part of it that is not a mapped file (which the system can drop at any time). Steps that are in the
table already are not repeated. A million subjects take hours, most of them spent planning.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from measure import exponent
from nocta.runs.versions import versions

HERE = Path(__file__).parent
STEPS = ("make", "fit", "rollout", "score")
MEASURED = ("seconds", "cpu_seconds", "peak_mb", "anonymous_mb")
COLUMNS = ("subjects", "step", "jobs", "options", *MEASURED, "cores", "torch")
#: A short fit: its growth is what is asked about, and planning takes longer anyway.
FIT_OPTIONS = "--points 1 -o n_rounds=0 -o width=4"
_SAMPLED_EVERY = 0.1


def run(command: list[str]) -> dict[str, float]:
    """Run a command and watch the memory of it and of the processes it starts."""
    started, used = time.perf_counter(), cpu_seconds()
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=env)
    peak = anonymous = 0.0
    while process.poll() is None:
        found = [memory(pid) for pid in family(process.pid)]
        peak = max(peak, sum(rss for rss, _ in found))
        anonymous = max(anonymous, sum(anon for _, anon in found))
        time.sleep(_SAMPLED_EVERY)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": cpu_seconds() - used,
        "peak_mb": peak / 1024,
        "anonymous_mb": anonymous / 1024,
    }


def cpu_seconds() -> float:
    """What finished processes have used; on a shared machine it says more than the clock."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(p for child in children for p in family(int(child)))]


def memory(pid: int) -> tuple[int, int]:
    """Resident memory in KiB, and the part that belongs to no file."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {
        line.split(":")[0]: line.split()[1]
        for line in lines
        if line.startswith(("VmRSS", "RssAnon"))
    }
    return int(found.get("VmRSS", 0)), int(found.get("RssAnon", 0))


def steps(n: int, folder: Path, jobs: int, options: str) -> dict[str, list[str]]:
    """The commands of one size, in order."""
    nocta = [str(Path(sys.executable).with_name("nocta"))]
    model = str(folder / "model")
    return {
        "make": [
            sys.executable,
            str(HERE / "make_large.py"),
            "--subjects",
            str(n),
            "--out",
            str(folder),
        ],
        "fit": [
            *nocta,
            "fit",
            str(folder / "cohort"),
            "--out",
            model,
            "--force",
            "--quiet",
            *options.split(),
        ],
        "rollout": [
            *nocta,
            "evaluate",
            model,
            str(folder / "cohort"),
            "--points",
            "1",
            "--out",
            str(folder / "results.csv"),
            "--quiet",
        ],
        "score": [
            *nocta,
            "score",
            model,
            str(folder / "history"),
            "--out",
            str(folder / "scores"),
            "--force",
            "--jobs",
            str(jobs),
        ],
    }


def forget(step: str, folder: Path) -> None:
    """Remove what a step left before: it would go on from there, and less would be measured."""
    left = {"rollout": ("results.csv", ".results.csv.points"), "score": ("scores",)}
    for path in (folder / name for name in left.get(step, ())):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class Kind(NamedTuple):
    """Rows that can be compared: one step under the same options."""

    step: str
    jobs: str
    options: str

    @classmethod
    def of(cls, row: dict[str, str]) -> Kind:
        """The kind of a row of the table."""
        return cls(row["step"], row["jobs"], row["options"])

    def __str__(self) -> str:
        options = f"`{self.options}`, " if self.options else ""
        return f"{self.step} ({options}{self.jobs} process{'es' * (self.jobs != '1')})"


class Growth(NamedTuple):
    """How a kind of rows grows with the subjects, from the fewest to the most."""

    kind: Kind
    fewest: int
    most: int
    exponents: dict[str, float]

    @property
    def where(self) -> str:
        """What was measured, and over which sizes."""
        return f"{self.kind}, {self.fewest:,} to {self.most:,} subjects"


def growth(rows: Sequence[dict[str, str]]) -> list[Growth]:
    """Exponents of every kind that was measured at two sizes or more."""
    found = []
    for kind in dict.fromkeys(map(Kind.of, rows)):
        own = {int(r["subjects"]): r for r in rows if Kind.of(r) == kind}
        sizes = sorted(own)
        if len(sizes) > 1:
            grown = {
                name: exponent(sizes, [float(own[n][name]) for n in sizes]) for name in MEASURED
            }
            found.append(Growth(kind, sizes[0], sizes[-1], grown))
    return found


def print_growth(rows: Sequence[dict[str, str]]) -> None:
    """How seconds and memory grow, for the terminal."""
    for one in growth(rows):
        shown = ", ".join(f"{name} ~ n^{power:.2f}" for name, power in one.exponents.items())
        print(f"{one.where}: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--subjects", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--jobs", type=int, default=1, help="processes of nocta score")
    parser.add_argument("--fit-options", default=FIT_OPTIONS, help="of nocta fit, in quotes")
    parser.add_argument("--out", type=Path, default=Path("results/bench/large.csv"))
    parser.add_argument("--folder", type=Path, help="where the cohorts go; kept, so a run goes on")
    parser.add_argument(
        "--steps", nargs="+", choices=STEPS, default=STEPS, help="only these; fit before the others"
    )
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if not args.out.exists():
        args.out.write_text(",".join(COLUMNS) + "\n")
    base = args.folder or Path(tempfile.gettempdir()) / "nocta-large"
    for n in args.subjects:
        for step, command in steps(n, base / str(n), args.jobs, args.fit_options).items():
            with args.out.open() as file:
                rows = list(csv.DictReader(file))
            jobs = args.jobs if step == "score" else 1
            options = "" if step == "make" else args.fit_options  # the model's, from its fit on
            kind = Kind(step, str(jobs), options)
            if step not in args.steps or any(
                r["subjects"] == str(n) and Kind.of(r) == kind for r in rows
            ):
                continue
            forget(step, base / str(n))
            found = run(command)
            row = {"subjects": n, "step": step, "jobs": jobs, "options": options}
            row |= {name: f"{value:.1f}" for name, value in found.items()}
            with args.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writerow({**row, "cores": os.cpu_count(), "torch": versions()["torch"]})
            print(n, step, found)
    with args.out.open() as file:
        print_growth(list(csv.DictReader(file)))


if __name__ == "__main__":
    main()
