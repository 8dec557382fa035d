"""Plans name dates where the table has them, and never lie in the past."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.model.nocta import NOCTA

HEAD = "subject;on;age;marker;volume\n"


@pytest.fixture
def dated(tiny_models: dict[str, NOCTA], tmp_path: Path) -> Path:
    """A model whose visits are on days 0, 90, 180 and 280, in dates as 10.01.2025."""
    model = copy(tiny_models["amortized"])
    clock = {"time": "on", "grid": [0, 90, 180, 280], "time_unit": "days", "date_order": "dmy"}
    without = {k: v for k, v in model.schema_.items() if k not in ("visit", "n_visits")}
    model.schema_ = {**without, **clock}
    model.record_ = {"cost_weights": [0.001], "slot_times": clock["grid"], "time_unit": "days"}
    model.save(tmp_path / "model")
    return tmp_path / "model"


def plan(model: Path, rows: str, *options: str) -> tuple[int, str]:
    (model.parent / "h.csv").write_text(HEAD + rows)
    args = ["plan", str(model), str(model.parent / "h.csv"), "--cost-weight", "0", *options]
    found = CliRunner().invoke(app, args)
    return found.exit_code, " ".join(found.output.split())


def plan_json(model: Path, rows: str, *options: str) -> dict:  # type: ignore[type-arg]
    status, shown = plan(model, rows, "--json", *options)
    assert status == 0, shown
    return dict(json.loads(shown[shown.index("{") :]))


def test_a_plan_names_dates(dated: Path) -> None:
    status, shown = plan(dated, "A;10.01.2025;60;0,5;\nA;14.07.2025;60;;\n")
    assert status == 0, shown
    assert "at visit 3 of 4, around 2025-07-09 (180 days)" in shown
    assert "at visit 4 of 4, around 2025-10-17 (280 days), for" in shown
    found = plan_json(dated, "A;10.01.2025;60;0,5;\n")
    assert found["slot_dates"] == ["2025-01-10", "2025-04-10", "2025-07-09", "2025-10-17"]


def test_a_visit_after_the_schedule_is_refused(dated: Path) -> None:
    rows = "A;10.01.2025;60;0,5;\nA;10.12.2025;60;0,7;\nB;10.01.2025;60;;\n"
    status, shown = plan(dated, rows, "--subject", "A")
    assert status == 2
    assert "Subject A has a visit (line 3) at 334 days, beyond the schedule this model" in shown
    assert "knows, which ends at 330 days." in shown
    assert plan(dated, rows, "--subject", "B")[0] == 0


def test_today_is_planned_for(dated: Path) -> None:
    rows = "A;10.01.2025;60;0,5;\n"
    found = plan_json(dated, rows, "--today", "2025-07-09")
    assert (found["now"], found["today"]) == (1, 2)
    assert found["time"] == 2
    assert "today at visit 3 of 4, around 2025-07-09" in plan(dated, rows, "--today", "9.7.2025")[1]
    # Today's visit is in the table already, so what follows it is planned.
    again = plan_json(dated, rows + "A;09.07.2025;60;0,5;\n", "--today", "2025-07-09")
    assert (again["now"], again["time"]) == (2, 3)
    # Somebody new starts today.
    assert plan_json(dated, "N;;60;;\n", "--today", "2031-01-01")["now"] == -1


@pytest.mark.parametrize(
    ("today", "message"),
    [
        ("2026-01-10", "Today, 2026-01-10, is 365 days, beyond the schedule this model knows"),
        ("2024-12-01", "is before the first visit of the subject"),
        ("2025-02-01", "is before the last row of subject A"),
        ("soon", "'soon', is not a date; write it as YYYY-MM-DD"),
    ],
)
def test_a_day_that_cannot_be_planned_for_is_refused(dated: Path, today: str, message: str) -> None:
    rows = "A;10.01.2025;60;0,5;\nA;14.07.2025;60;;\n"
    status, shown = plan(dated, rows, "--today", today)
    assert status == 2
    assert message in shown


def test_without_dates_today_is_a_time(fitted_model: Path, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("patient,years,age,sex,fatigue\nN1,0,64,F,4\n")
    args = ["plan", str(fitted_model), str(tmp_path / "h.csv"), "--cost-weight", "0.0001"]
    found = CliRunner().invoke(app, [*args, "--today", "2", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["now"] == 2
    assert CliRunner().invoke(app, [*args, "--today", "2025-01-01"]).exit_code == 2
