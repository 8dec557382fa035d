"""A real Dask scheduler and workers, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
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

    def wait_for_worker(self, name: str) -> None:
        """Wait until a worker has reported to the scheduler."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            wait_until(
                lambda: any(
                    about["name"] == name
                    for about in client.scheduler_info(n_workers=-1)["workers"].values()
                )
            )

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


class Victim:
    """A worker that takes tasks without doing them, and is killed when it holds one.

    Args:
        cluster: Gets one more worker.
    """

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.process = cluster.add_worker("victim")
        cluster.wait_for_worker("victim")
        self.held: list[str] = []
        self._watch = threading.Thread(target=self._kill_when_it_holds)
        self._done = threading.Event()

    def stand_still(self) -> None:
        """From now on it does nothing; the scheduler will not notice for half a minute."""
        self.process.send_signal(signal.SIGSTOP)
        self._watch.start()

    def _kill_when_it_holds(self) -> None:
        from distributed import Client

        with Client(self.cluster.address, set_as_default=False) as client:
            workers = client.scheduler_info(n_workers=-1)["workers"]
            address = next(a for a, about in workers.items() if about["name"] == "victim")
            while not self.held and not self._done.wait(0.02):
                self.held += map(str, client.processing().get(address, ()))
            self.process.kill()

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._watch.is_alive():
            self._watch.join()
        self.process.kill()
        self.process.wait()


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
