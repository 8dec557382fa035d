"""How time and memory grow with the number of subjects: fit and score from Parquet parts.

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
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from nocta.experiments.versions import versions

HERE = Path(__file__).parent
MEASURED = ("seconds", "cpu_seconds", "peak_mb", "anonymous_mb")
COLUMNS = ("subjects", "step", "jobs", "options", *MEASURED, "cores", "torch")
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


def exponents(rows: list[dict[str, str]]) -> None:
    """Print how seconds and memory of each step grow between the smallest and the largest size."""
    kinds = dict.fromkeys((r["step"], r["jobs"], r["options"]) for r in rows)
    for kind in kinds:
        own = {int(r["subjects"]): r for r in rows if (r["step"], r["jobs"], r["options"]) == kind}
        low, high = min(own), max(own)
        if low == high:
            continue
        first, last = own[low], own[high]
        grown = {
            name: np.log(float(last[name]) / float(first[name])) / np.log(high / low)
            for name in MEASURED
        }
        shown = ", ".join(f"{name} ~ n^{exponent:.2f}" for name, exponent in grown.items())
        print(f"{' '.join(kind)}, {low} to {high} subjects: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--subjects", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--jobs", type=int, default=1, help="processes of nocta score")
    parser.add_argument("--fit-options", default="--points 3", help="of nocta fit, in quotes")
    parser.add_argument("--out", type=Path, default=Path("results/bench/large.csv"))
    parser.add_argument("--folder", type=Path, help="where the cohorts go; kept, so a run goes on")
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
            key = (str(n), step, str(jobs), options)
            if any((r["subjects"], r["step"], r["jobs"], r["options"]) == key for r in rows):
                continue
            found = run(command)
            row = {"subjects": n, "step": step, "jobs": jobs, "options": options}
            row |= {name: f"{value:.1f}" for name, value in found.items()}  # type: ignore[misc]
            with args.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writerow({**row, "cores": os.cpu_count(), "torch": versions()["torch"]})
            print(n, step, found)
    with args.out.open() as file:
        exponents(list(csv.DictReader(file)))


if __name__ == "__main__":
    main()
