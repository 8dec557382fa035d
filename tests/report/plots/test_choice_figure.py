"""The page of `nocta choose --figure`: what can be asked depends on the classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import pytest

from nocta.core.rollout import rollout
from nocta.methods.fixed import RandomPolicy
from nocta.model.choice.choose import choose_point, make_goal
from nocta.report.plots import choice as page
from nocta.testing import RunningMeanPredictor, tiny_cohort

SHARES = (0.2, 0.5, 0.9)


@pytest.mark.parametrize(
    ("classes", "positive", "titles"),
    [
        (
            ("stable", "worse"),
            None,
            [
                "average precision",
                "sensitivity at 80 % specificity",
                "cost of one more case found",
                "miss rate",
            ],
        ),
        (("a", "b", "c"), None, ["average precision", "share of visits predicted wrongly"]),
    ],
)
def test_every_panel_shows_its_measure_and_rings_the_chosen_point(
    classes: tuple[str, ...],
    positive: str | None,
    titles: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predictor = RunningMeanPredictor(len(classes))
    cohort = replace(tiny_cohort(60), classes=classes)
    found = [rollout(RandomPolicy(share, predictor), cohort) for share in SHARES]
    settings = [{"cost_weight": 1 / share} for share in SHARES]
    most = 1.001 * found[1].cost
    choice = choose_point(settings, found, make_goal(classes, at_most_cost=most))
    drawn: list[Any] = []
    monkeypatch.setattr(page, "save_figure", lambda figure, path: drawn.append(figure))
    model: Any = SimpleNamespace(classes_=classes)
    page.draw_choice(choice, found, tmp_path / "f.png", metric="ap", positive=positive, model=model)
    (figure,) = drawn
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title().removesuffix(", 95 %") for ax in shown] == titles
    assert choice.index is not None
    chosen = found[choice.index].cost
    for ax in shown:
        ringed = [text.xy[0] for text in ax.texts if text.get_text() == "chosen"]
        assert ringed in ([], [pytest.approx(chosen)])
    assert shown[0].texts
    plt.close(figure)
