"""Faults, load and bad input of the planner in their long form; writes one Markdown page.

python benchmarks/soak_service.py --kills 100 --requests 20000 --out results/service.md
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from nocta.service.store import Store

EXAMPLE = Path(__file__).parents[1] / "examples" / "clinic.csv"


class Service:
    """`nocta serve` as a process."""

    def __init__(self, model: Path, store: Path) -> None:
        begun = time.perf_counter()
        command = ["serve", str(model), "--store", str(store), "--port", "0", "--rate", "1e6"]
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", "from nocta.cli import main; main()", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        opened = re.search(r"(http://\S+)/open\?key=(\S+)", self.process.stdout.readline())
        assert opened is not None, "the service did not start"
        self.address, self.key = opened.groups()
        self.started = time.perf_counter() - begun

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request; its answer, or `None` if the service is gone."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError:
            raise
        except OSError:
            return None

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


def correction(value: float) -> dict[str, Any]:
    """A request that writes one event."""
    return {"context": "age", "value": value}


def killed(model: Path, folder: Path, n_kills: int) -> list[str]:
    """Kill the service at random moments of a write load; nothing answered may be missing."""
    store, draw = folder / "killed.db", random.Random(0)
    answered = lost = damaged = 0
    starts = []
    case = None
    for _ in range(n_kills):
        service = Service(model, store)
        starts.append(service.started)
        case = case or service.ask("POST", "/api/cases", {"name": "soak"})["id"]
        timer = threading.Timer(draw.uniform(0.05, 1.0), service.process.kill)
        timer.start()
        while True:
            answer = service.ask("POST", f"/api/cases/{case}/corrections", correction(50.0))
            if answer is None:
                break
            answered = answer["version"]
        service.process.wait()
        kept = Store(store)
        versions = [event.version for event in kept.events(case)]
        damaged += versions != list(range(1, len(versions) + 1))
        damaged += kept.query("PRAGMA integrity_check") != [("ok",)]
        lost += len(versions) < answered
        kept.close()
    return [
        f"- Killed with SIGKILL during writes: {n_kills} times; {answered:,} changes answered, "
        f"{lost} lost, {damaged} cases or files damaged. It started again within "
        f"{max(starts):.1f} s (median {np.median(starts):.1f} s)."
    ]


def loaded(model: Path, folder: Path, n_clients: int, n_requests: int) -> list[str]:
    """Many clients at once; memory over many requests."""
    service = Service(model, folder / "loaded.db")
    draw = random.Random(0)

    def plan(_: int) -> float:
        value = draw.uniform(0.2, 8.0)  # hardly ever the same twice: nothing comes from memory
        results = {"bilirubin": {"value": value}}
        begun = time.perf_counter()
        body = {"context": {"age": 50}, "visits": [{"slot": 0, "results": results}]}
        assert service.ask("POST", "/api/plan", body) is not None
        return time.perf_counter() - begun

    alone = np.array([plan(i) for i in range(50)])
    with ThreadPoolExecutor(n_clients) as clients:
        together = np.array(list(clients.map(plan, range(n_clients * 5))))
        first = service.memory()
        list(clients.map(plan, range(n_requests // 2)))
        half = service.memory()
        list(clients.map(plan, range(n_requests // 2)))
        last = service.memory()
    service.kill()
    p95 = float(np.quantile(together, 0.95))
    return [
        f"- One client: {1000 * np.median(alone):.0f} ms for a plan with its explanation (median).",
        f"- {n_clients} clients at once: no failed request, {1000 * p95:.0f} ms at the "
        f"ninety-fifth percentile ({p95 / np.median(alone):.1f} times one client).",
        f"- Memory over {n_requests:,} plans: {first:.0f} MB, {half:.0f} MB halfway, {last:.0f} MB "
        f"at the end. The last {4096:,} explanations are kept, so it grows until then.",
    ]


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results/service.md"))
    asked = parser.parse_args()
    # Many clients need many open files.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model"
        fit = ["fit", str(EXAMPLE), "--quick", "--quiet", "--out", str(model)]
        start = [sys.executable, "-c", "from nocta.cli import main; main()"]
        subprocess.run([*start, *fit], check=True)
        lines = killed(model, folder, asked.kills)
        lines += loaded(model, folder, asked.clients, asked.requests)
    command = (
        f"python benchmarks/soak_service.py --kills {asked.kills} --requests {asked.requests} "
        f"--clients {asked.clients}"
    )
    head = ["# The planner under faults and load", f"Written by `{command}` (two cores)."]
    asked.out.write_text("\n\n".join([*head, "\n".join(lines)]) + "\n", "utf-8")
    print(asked.out.read_text("utf-8"))


if __name__ == "__main__":
    main()
