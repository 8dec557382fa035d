"""What is acquired together: counted from acquisitions, drawn as arrows to later slots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from test_dynamics_figures import AXIS, entry

from nocta.core.errors import DataError
from nocta.report.plots.dynamics import MAX_ARROWS, dynamics_figure
from nocta.report.plots.frontier import Panel, frontier_panels
from nocta.runs.details import acquired_together


def test_pairs_are_counted_over_subjects_and_lead_forward() -> None:
    acquired = np.zeros((4, 3, 2), dtype=bool)
    acquired[:3, 0, 0] = True  # three subjects
    acquired[:2, 2, 1] = True  # two of them again
    acquired[3, 0, 1] = acquired[3, 1, 1] = True
    assert acquired_together(acquired) == [(0, 0, 2, 1, 0.5), (0, 1, 1, 1, 0.25)]
    assert acquired_together(acquired, most=1) == [(0, 0, 2, 1, 0.5)]


def test_arrows_lead_to_the_strongest_and_nearest() -> None:
    pairs = ((0, 0, 2, 0, 0.9), (0, 0, 2, 1, 0.9), (0, 0, 1, 1, 0.9), (0, 1, 1, 0, 0.05))
    figure = dynamics_figure([replace(entry("static"), together=pairs)], AXIS, bottom="graph")
    arrows = figure.axes[2].patches
    assert len(arrows) == MAX_ARROWS  # the rare pair is left out, as is the farther of equals
    ends = {tuple(arrow._posA_posB[1]) for arrow in arrows}
    assert (1, 1) in ends


def test_a_graph_needs_no_pairs() -> None:
    assert not dynamics_figure([entry("static")], AXIS, bottom="graph").axes[2].patches


def test_panels_share_one_legend() -> None:
    rows = pd.DataFrame({"method": "static", "seed": 0, "cost": [1.0, 2.0], "ap": [0.2, 0.3]})
    paper = pd.DataFrame({"method": ["static", "ras"], "cost": [1.0, 2.0], "ap": [0.5, 0.6]})
    figure = frontier_panels([Panel(rows, "ap", title="here"), Panel(None, "ap", paper=paper)])
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["static subset", "RAS (as published)", "hollow: as published"]
    assert figure.axes[0].get_title(loc="left") == "here"
    with pytest.raises(DataError, match="No data set to draw"):
        frontier_panels([])
