"""`nocta methods` lists what can be compared and what can be set."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.methods.registry import METHODS


def run(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["methods", *arguments])
    return result.output + str(result.exception or "")


def test_every_method_is_listed() -> None:
    page = run()
    assert all(name in page for name in METHODS)


@pytest.mark.parametrize("name", ["asac", "ras", "as", "dime", "difa", "nocta-amortized"])
def test_every_option_has_a_meaning(name: str) -> None:
    lines = run(name).splitlines()
    rows = [line for line in lines[2:-1] if line.strip()]
    assert len(rows) > 3
    assert all(len(row.split()) > 2 for row in rows)


def test_presets_have_their_own_options() -> None:
    assert "n_top_plans" in run("nocta-contrastive", "--preset", "paper")
    assert "n_top_plans" not in run("nocta-contrastive")
    assert "This method has no options." in run("random")
