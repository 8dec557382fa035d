"""The data card counts what is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nocta.datasets import load
from nocta.report.plots.describe import cohort_figure
from nocta.tables.summary import CohortSummary
from nocta.tables.table import read_cohort


def test_counts_are_per_visit(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema["features"]["alt"]["at"] = [0, 2]
    summary = CohortSummary.of(read_cohort(visits, schema), notes=["a note"])
    assert summary.subjects.tolist() == [3, 1, 2]
    assert summary.class_counts.tolist() == [[2, 1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_array_equal(summary.recorded[:, 0], [1, np.nan, 1])
    np.testing.assert_allclose(summary.recorded[:, 1], [2 / 3, 1, 1 / 2])
    np.testing.assert_allclose(summary.missing_by_feature, [0, 2 / 6])
    card = summary.to_markdown()
    for line in (
        "- 3 subjects, 3 visit slots (visit); 6 visits took place",
        "- 5 labels (83.3% of the visits) of 3 classes",
        "| 0     | 3        | 3       | 2 (66.7%)  | 1 (33.3%) | 0 (0.0%)   |",
        "| scan    | left, right | 7 to 9 |       | every visit | 33.3%   |",
        "- 2 per visit with any acquisition from group 'blood'",
        "- a note",
    ):
        assert line in card


def test_parts_groups_and_prices_are_shown(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    table = visits.assign(part=["train"] * 5 + ["test"], home=[1] * 5 + [2])
    schema |= {"split": "part", "group": "home", "currency": "$"}
    schema["features"]["alt"]["cost"] = 12345.5
    card = CohortSummary.of(read_cohort(table, schema)).to_markdown()
    assert "- assigned split: test 1, train 2" in card
    assert "- 2 groups, each kept in one split" in card
    assert "$12,345.5" in card


def test_many_classes_and_slots_fit() -> None:
    summary = CohortSummary.of(load("synthetic", n_subjects=50))
    assert (
        "| time point | subjects | labeled | classes seen | most frequent" in summary.to_markdown()
    )
    figure = cohort_figure(summary)
    assert len(figure.axes) == 4


def test_the_figure_names_features_and_classes(
    visits: pd.DataFrame, schema: dict[str, Any]
) -> None:
    figure = cohort_figure(CohortSummary.of(read_cohort(visits, schema)))
    classes, _, missing, costs = figure.axes
    assert [t.get_text() for t in missing.get_yticklabels()] == ["alt", "scan"]
    legend = classes.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["mild", "moderate", "severe"]
    assert [p.get_width() for p in costs.patches] == [3.0, 8.0]
