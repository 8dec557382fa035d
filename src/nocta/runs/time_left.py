"""How long a sweep will still take, estimated from how long its jobs took so far.

A method that has not finished once is assumed to take as long as the others, or as long as it has
been running; the estimate is then called a lower bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

#: A task that is late is given this share of its time so far.
_OVERDUE = 0.1


def time_left(
    waiting: Sequence[str],
    running: Iterable[tuple[str, float]],
    known: Mapping[str, Sequence[float]],
    n_jobs: int,
    *,
    ignored: frozenset[str] = frozenset({"predictor"}),
) -> str:
    """Say how long it will take until the last task has ended; empty until that can be estimated.

    Args:
        waiting: The kind of every task that has not begun, in the order in which they begin.
        running: The kind of every task that is running, and for how many seconds it has been.
        known: By kind, how many seconds the tasks took that have ended.
        n_jobs: How many run at once.
        ignored: Kinds that do not predict how long others take.
    """
    running = list(running)
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in known.items() if seconds}
    telling = [seconds for kind, seconds in means.items() if kind not in ignored]
    if not telling or not (waiting or running):
        return ""
    guesses: dict[str, float] = {}
    for kind, elapsed in [*((kind, 0.0) for kind in waiting), *running]:
        if kind not in means:
            typical = sum(telling) / len(telling)
            guesses[kind] = max(guesses.get(kind, typical), elapsed * (1 + _OVERDUE))
    expected = {**means, **guesses}
    ends = [max(expected[kind] - elapsed, _OVERDUE * elapsed) for kind, elapsed in running]
    ends += [0.0] * (n_jobs - len(ends))
    heapq.heapify(ends)
    for kind in waiting:  # each begins when the first of those before it has ended
        heapq.heapreplace(ends, ends[0] + expected[kind])
    return f"{'at least' if guesses else 'about'} {duration(max(ends))} left"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, in a few characters: 40 s, 7 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
