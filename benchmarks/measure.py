"""How the benchmarks measure: processor time, peak memory, growth.

On a machine that is busy with other work the clock says little, so ratios are of processor time
of one thread, taken in the same process; wall time is kept beside it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nocta
from nocta.runs.versions import versions


@dataclass(frozen=True)
class Timing:
    """What a piece of work took.

    Args:
        cpu_seconds: Processor time of this process.
        seconds: Wall time.
    """

    cpu_seconds: float
    seconds: float

    def to_dict(self) -> dict[str, float]:
        """Plain data, ready for JSON."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def timed(work: Callable[[], Any], repeat: int = 1) -> tuple[Any, Timing]:
    """What `work` returns, and the quickest of some runs of it."""
    found, best = None, Timing(np.inf, np.inf)
    for _ in range(repeat):
        cpu, wall = time.process_time(), time.perf_counter()
        found = work()
        now = Timing(time.process_time() - cpu, time.perf_counter() - wall)
        best = min(best, now, key=lambda t: t.cpu_seconds)
    return found, best


def peak_mb(work: Callable[[], Any]) -> float | None:
    """MiB of resident memory that `work` needs at most beyond what is held before; Linux only."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not sys.platform.startswith("linux"):
        return None
    # What was freed but kept by the allocator would hide what is needed.
    ctypes.CDLL(None).malloc_trim(0)
    try:
        reset.write_text("5")
    except OSError:
        return None
    before = _resident_kb(status, "VmRSS")
    work()
    return (_resident_kb(status, "VmHWM") - before) / 1024


def _resident_kb(status: Path, field: str) -> int:
    line = next(row for row in status.read_text().splitlines() if row.startswith(field))
    return int(line.split()[1])


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The power `e` of the best fit `value ~ size^e`.

    Example:
        >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 3)
        2.0
    """
    return exponent_with_error(sizes, values)[0]


def exponent_with_error(
    sizes: Sequence[float], values: Sequence[float]
) -> tuple[float, float | None]:
    """The same power and its standard error, which takes at least three sizes.

    Example:
        >>> exponent_with_error([1, 2, 4], [3.0, 12.0, 48.0])
        (2.0, 0.0)
    """
    x, y = np.log(sizes), np.log(np.maximum(values, 1e-9))
    slope, level = np.polyfit(x, y, 1)
    error = None
    if len(x) > 2:
        spread = ((y - level - slope * x) ** 2).sum() / (len(x) - 2)
        error = round(float(np.sqrt(spread / ((x - x.mean()) ** 2).sum())), 6)
    return round(float(slope), 6) + 0.0, error  # no minus before a zero


@cache
def source_hash() -> str:
    """What the package's source is, as it was when first asked for in this process."""
    folder = Path(nocta.__file__).parent
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        found.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]


def about() -> dict[str, Any]:
    """Under what a measurement was made."""
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source_hash(),
        "versions": versions(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "vector": torch.backends.cpu.get_cpu_capability(),
        "load": round(os.getloadavg()[0], 1),
    }
