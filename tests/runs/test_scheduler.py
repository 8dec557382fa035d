"""Tasks run some at a time, and what goes wrong with one costs the others nothing."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Future

import pytest

from nocta.runs.scheduler import run_tasks


class Ended:
    """Futures that have ended when they are submitted: as told, then well."""

    def __init__(self, **errors: list[BaseException]) -> None:
        self.errors = errors
        self.submitted: list[str] = []

    def submit(self, task: str) -> Future[str]:
        self.submitted.append(task)
        future: Future[str] = Future()
        if self.errors.get(task):
            future.set_exception(self.errors[task].pop(0))
        else:
            future.set_result(task.upper())
        return future

    def run(self, tasks: str, n_at_once: int) -> Iterable[tuple[str, Future[str]]]:
        waiting = iter(tasks)
        ended = run_tasks(lambda _: next(waiting, None), self.submit, lambda: n_at_once, {})
        return [pair for pair in ended if pair is not None]


def test_what_went_well_comes_before_what_did_not() -> None:
    found = Ended(a=[ValueError("no")]).run("abc", n_at_once=3)
    assert [task for task, _ in found] == ["b", "c", "a"]


def test_what_a_dead_process_had_is_run_once_more() -> None:
    pool = Ended(a=[BrokenExecutor()], b=[BrokenExecutor(), BrokenExecutor()])
    found = dict(pool.run("abcd", n_at_once=3))
    assert pool.submitted == ["a", "b", "c", "a", "b", "d"]
    assert [found[task].result() for task in "acd"] == ["A", "C", "D"]
    with pytest.raises(BrokenExecutor):
        found["b"].result()


def test_the_number_at_once_may_change() -> None:
    sizes = iter([1, 1, 3, 3, 3, 3, 3, 3])
    running: dict[Future[str], str] = {}
    most = []

    def submit(task: str) -> Future[str]:
        future = Ended().submit(task)
        most.append(len(running) + 1)
        return future

    waiting = iter("abcd")
    list(run_tasks(lambda _: next(waiting, None), submit, lambda: next(sizes), running))
    assert most == [1, 1, 2, 3]
