"""Kill commands at random moments, fill the disk, and tamper with models; count what held.

    python benchmarks/soak.py --kills 30 --decisions 20000 --out results/reliability.md

A kill holds if the same command, run again, exits with 0 and leaves the same files as a command
that was never disturbed (times excepted), and nobody it started is still running.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: Times, and where a command ran, differ between runs.
_TIMES = re.compile(rb'"?(\w*seconds|created|checksum|versions)"?: ?[^,}\n]+')
_FIT = ["fit", "clinic.csv", "--quick", "--quiet", "--out", "model", "--resume"]
COMMANDS = {
    "describe": ["describe", "clinic.csv", "--out", "card.md", "--figure", "card.svg", "--force"],
    "init": ["init", "clinic.csv", "--out", "draft.toml", "--force"],
    "fit": [*_FIT, "--method", "static"],
    "compare": (
        "compare clinic.csv --methods random,static --seeds 1 --points 2 --jobs 2 --quick --quiet "
        "--out run"
    ).split(),
}
#: Files whose contents are times: the report and its figures show them too.
_SHOWN = ("results.csv", "summary.csv", "log.json", "card.md.times", "report.html")


@dataclass
class Count:
    """What was tried, and how often it held."""

    what: str
    tried: int = 0
    held: int = 0

    def note(self, fine: bool, why: str = "") -> None:
        self.tried += 1
        self.held += fine
        if not fine:
            print(f"{self.what}: {why}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="per command and signal")
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--disk", type=Path, help="a small file system, such as a tmpfs of 1 MB")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    rng = random.Random(0)
    counts = []
    for count in everything(asked, rng):
        counts.append(count)
        asked.out.write_text(page(counts, " ".join(sys.argv[1:])), "utf-8")


def everything(asked: argparse.Namespace, rng: random.Random) -> Iterator[Count]:
    for name in asked.commands.split(","):
        yield from kill(name, asked.kills, rng)
        if asked.disk is not None:
            yield fill(name, asked.disk)
    yield decide(asked.decisions)


def kill(name: str, n: int, rng: random.Random) -> Iterator[Count]:
    """Kill a command at random moments, and run it again."""
    with workplace() as place:
        started = time.monotonic()
        run(name, place).check_returncode()
        length, expected = time.monotonic() - started, contents(place)
    for number in SIGNALS:
        count = Count(f"`nocta {name}`, {number.name}")
        for _ in range(n):
            with workplace() as place:
                process = start(name, place)
                time.sleep(rng.uniform(0, length))
                process.send_signal(number)
                process.wait()
                left = gone(process.pid)
                again = run(name, place)
                same = again.returncode == 0 and contents(place) == expected
                why = again.stderr[-300:] if again.returncode else f"differs: {place}"
                count.note(same and left, why if left else "a process is still running")
        yield count


def fill(name: str, disk: Path) -> Count:
    """Run a command on a file system that is full after some kilobytes."""
    count = Count(f"`nocta {name}`, disk full")
    for free in (0, 1, 4, 16, 64):
        with workplace(disk) as place:
            filler = place / "filler"
            with suppress_full(), filler.open("wb") as stream:
                while True:
                    stream.write(bytes(1024))
            with filler.open("ab") as stream:
                stream.truncate(max(0, filler.stat().st_size - 1024 * free))
            before = contents(place)
            done = run(name, place)
            fine = done.returncode == 0 or (
                done.returncode == 2 and "Error: " in done.stderr and contents(place) == before
            )
            count.note(fine, f"exit {done.returncode}, {done.stderr[-300:]}")
    return count


def decide(n: int) -> Count:
    """Decisions for one subject after the other; memory must stay flat."""
    import numpy as np

    import nocta
    from nocta.core.history import History
    from nocta.testing import tiny_cohort

    train, val, test = tiny_cohort(n_subjects=120).split(seed=0)
    model = nocta.NOCTA(seed=0, options={"n_rounds": 0}).fit(train, val)
    known = History.of(test, np.array([[True, False]] + [[False, False]] * 3))
    count, peak = Count(f"{n:,} decisions, memory flat"), 0
    for i in range(n):
        model.decide(known.subset(np.array([i % len(test)])), 0.01)
        if i == n // 4:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    count.note(grown < 8192, f"grew by {grown} kB")
    return count


@contextmanager
def workplace(parent: Path | None = None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        place = Path(folder)
        lines = (EXAMPLES / "clinic.csv").read_text("utf-8").splitlines()
        few = [line for line in lines[1:] if int(line[1:4]) <= 60]
        (place / "clinic.csv").write_text("\n".join([lines[0], *few]) + "\n", "utf-8")
        shutil.copy(EXAMPLES / "clinic.schema.toml", place)
        yield place


@contextmanager
def suppress_full() -> Iterator[None]:
    try:
        yield
    except OSError:
        pass


def start(name: str, place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import nocta.cli; nocta.cli.main()", *COMMANDS[name]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=place, text=True, start_new_session=True, **quiet)  # type: ignore[call-overload, no-any-return]


def run(name: str, place: Path) -> subprocess.CompletedProcess[str]:
    process = start(name, place)
    _, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, "", stderr)


def gone(session: int) -> bool:
    """Whether every process of a session has ended, within a few seconds."""
    for _ in range(100):
        if not any(_is_in(session, entry) for entry in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.1)
    return False


def _is_in(session: int, entry: Path) -> bool:
    try:
        fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z" and int(fields[3]) == session


def contents(place: Path) -> dict[str, bytes]:
    """Every file with its contents, without times."""
    found = {}
    for path in sorted(p for p in place.rglob("*") if p.is_file()):
        data = b"" if path.name in _SHOWN or path.suffix in (".png", ".svg") else path.read_bytes()
        if path.name == "results.csv":
            rows = csv.DictReader(path.read_text("utf-8").splitlines())
            kept = [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in rows]
            data = json.dumps(kept).encode()
        found[str(path.relative_to(place))] = _TIMES.sub(b"", data)
    return found


def page(counts: list[Count], command: str) -> str:
    rows = [f"| {c.what} | {c.tried} | {c.held} |" for c in counts]
    return "\n".join(
        [
            "# Reliability",
            "",
            f"    python benchmarks/soak.py {command}",
            "",
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}. A "
            "kill holds if the same command, run again, leaves the files of an undisturbed run "
            "(times excepted) and no process.",
            "",
            "| what | tried | held |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    main()
