"""A real Dask scheduler and workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

#: Starting Python, torch and Dask takes seconds on a busy machine.
PATIENCE = 300.0


class RealCluster:
    """Starts processes, and ends those it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> RealCluster:
        file = self.folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        wait_until(file.is_file)
        wait_until(lambda: _has_address(file))
        self.address = json.loads(file.read_text())["address"]
        return self

    def add_worker(self, name: str) -> subprocess.Popen[bytes]:
        """One more worker with two threads, which must not matter."""
        return self._start(
            "worker",
            self.address,
            *("--name", name, "--nthreads", "2", "--no-nanny", "--host", "127.0.0.1"),
            *("--local-directory", self.folder / name, "--memory-limit", "0"),
            *("--death-timeout", "20"),
        )

    def wait_for_workers(self, n: int) -> None:
        """Wait until so many workers have reported to the scheduler."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(n, timeout=PATIENCE)

    def _start(self, kind: str, *args: Any) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "dask",
            kind,
            "--dashboard-address",
            "127.0.0.1:0",
            *map(str, args),
        ]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        log = (self.folder / f"{kind}-{len(self.processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
        self.processes.append(process)
        return process

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def _has_address(file: Path) -> bool:
    try:
        return "address" in json.loads(file.read_text())
    except ValueError:
        return False


def wait_until(condition: Any, patience: float = PATIENCE) -> None:
    """Wait for something that other processes bring about."""
    limit = time.monotonic() + patience
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"still not so after {patience:g} s: {condition}")
        time.sleep(0.05)
