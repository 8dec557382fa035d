"""What a command imports before it can answer."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "modules", ["nocta.model.persistence", "nocta.cli.plan, nocta.methods.nocta"]
)
def test_a_plan_needs_no_scikit_learn(modules: str) -> None:
    code = (
        f"import {modules}, sys; print([m for m in sys.modules if m in ('sklearn', 'matplotlib')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
