"""Part `decide`: one subject at a time, as a service calls it; measured by pytest-benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scenes import Sizes, fitted

HERE = Path(__file__).parent
#: Milliseconds.
TARGET = 20.0


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Milliseconds of processor time per call of `decide`, by estimator, slot and mask."""
    for estimator in ("amortized", "contrastive"):
        fitted("default", estimator, sizes, models)  # so that fitting is not timed
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "benchmark.json"
        command = [sys.executable, "-m", "pytest", str(HERE / "test_decide.py"), "-q"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={HERE}"]
        command += ["--benchmark-timer=time.process_time", f"--benchmark-json={out}"]
        command += [f"--benchmark-max-time={0.1 if sizes.name == 'tiny' else 1.0}"]
        env = os.environ | {"NOCTA_BENCH_MODELS": str(models.resolve())}
        env |= {"NOCTA_BENCH_SIZES": sizes.name, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pytest ended with status {done.returncode}:\n{done.stdout[-2000:]}")
        found = json.loads(out.read_text("utf-8"))
    calls = [
        entry["extra_info"]
        | {"calls": entry["stats"]["rounds"]}
        | {f"{name}_ms": 1e3 * entry["stats"][name] for name in ("median", "mean", "max")}
        for entry in found["benchmarks"]
    ]
    return {"target_ms": TARGET, "calls": calls}
