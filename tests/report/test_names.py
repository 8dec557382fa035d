"""Hostile names of features, classes and methods stay text in cards, pages and figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nocta.report.paper.page import Sheet
from nocta.report.plots.dynamics import dynamics_figure
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.tables.summary import CohortSummary
from nocta.testing import tiny_cohort

EVIL = "<script>alert(1)</script>|x"


def test_cards_and_pages_hold_no_markup() -> None:
    cohort = tiny_cohort(20)
    features = tuple(replace(f, name=f.name + EVIL) for f in cohort.catalog.features)
    named = replace(
        cohort,
        name=EVIL,
        classes=(EVIL, "b"),
        catalog=replace(cohort.catalog, features=features, group_fees={}),
        time_unit=EVIL,
    )
    card = CohortSummary.of(named, notes=[EVIL]).to_markdown()
    sheet = Sheet("", "", [{"method": EVIL, "cost": 1.0}]).markdown()
    for text in (card, sheet):
        assert "<script" not in text
        assert "&lt;script>" in text
    columns = {line.count("|") - line.count("\\|") for line in sheet.splitlines()}
    assert columns == {3}


@pytest.mark.parametrize("name", ["$x^2$", "price $ in $", r"\$a$"])
def test_dollars_in_names_are_not_formulas(name: str, comparison: Comparison) -> None:
    view = ReportView(comparison)
    entry = replace(view.dynamics()[0], method=name, features=(name, "other"))
    figure = dynamics_figure([entry], replace(view.axis, currency="$", unit=name))
    figure.canvas.draw()
    axes = figure.axes[2]
    assert axes.get_yticklabels()[0].get_text() == name
    assert not any(text.get_parse_math() for text in axes.get_yticklabels())
    assert not figure.axes[0].title.get_parse_math()
