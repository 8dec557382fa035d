"""Whoever starts processes may be killed: they end too, and a folder belongs to one process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nocta.core.errors import ConfigError
from nocta.model.files import only_process

WORKERS = """
import os, sys, time
from nocta.runs.scheduler import open_workers
def work(path):
    import os, time
    open(path + str(os.getpid()), "w").close()
    time.sleep(600)
with open_workers(2) as workers:
    found = [workers.submit(work, sys.argv[1]) for _ in range(2)]
    found[0].result()
"""
CELL = """
import os, sys, time
from nocta.evaluation.isolation import Cell, _Nursery, pack
def work(path, nursery):
    import os, time
    for pid in (os.getpid(), nursery):
        open(path + str(pid), "w").close()
    time.sleep(600)
with Cell() as cell:
    cell.run(pack(work), sys.argv[1], _Nursery.running().process.pid)
"""


@pytest.mark.parametrize("code", [WORKERS, CELL], ids=["workers", "cell"])
def test_nobody_outlives_a_killed_process(code: str, tmp_path: Path) -> None:
    folder = tmp_path / "pids"
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-c", code, f"{folder}/"])
    wait_until(lambda: len(list(folder.iterdir())) == 2)
    process.kill()
    process.wait()
    pids = [int(file.name) for file in folder.iterdir()]
    wait_until(lambda: not any(map(is_running, pids)))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text("utf-8").rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: object) -> None:
    assert callable(condition)
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("this took more than a minute")


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with only_process(folder):
        with (
            pytest.raises(ConfigError, match="Another process is writing into"),
            only_process(folder),  # another handle counts as another process
        ):
            pass
        assert folder.is_dir()
    assert not folder.exists()  # it was made for nothing
    with only_process(folder):
        (folder / "results.csv").write_text("kept")
    assert (folder / "results.csv").read_text() == "kept"


def test_a_killed_process_frees_its_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_hold, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(ConfigError, match="Another process"), only_process(tmp_path):
        pass
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with only_process(tmp_path):
        pass


def _hold(folder: Path, ready: object) -> None:
    with only_process(folder):
        ready.set()  # type: ignore[attr-defined]
        time.sleep(600)
