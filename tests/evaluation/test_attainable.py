"""Shares of the attainable gain, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.evaluation.attainable import (
    attainable_share,
    noct_frontier,
    optimum_frontier,
    share_over_costs,
)
from nocta.evaluation.frontier import Frontier
from nocta.exact.curve import CurvePoint, ExactCurve
from nocta.exact.yardstick import Yardstick


def frontier(*points: tuple[float, float], measure: str = "accuracy") -> Frontier:
    costs, qualities = zip(*points, strict=True)
    return Frontier(np.array(costs), np.array(qualities), measure)


OPTIMUM = frontier((0.0, 0.5), (2.0, 0.8), (4.0, 0.9))


@pytest.mark.parametrize(
    ("cost", "quality", "share"),
    [
        (2.0, 0.8, 1.0),
        (2.0, 0.5, 0.0),
        (1.0, 0.575, 0.5),
        (3.0, 0.45, -1 / 7),
        (9.0, 0.7, 0.5),  # the optimum gains nothing beyond its last vertex
    ],
)
def test_zero_is_nothing_and_one_is_the_optimum_at_the_same_cost(
    cost: float, quality: float, share: float
) -> None:
    assert attainable_share(OPTIMUM, [cost], [quality]) == pytest.approx([share])
    # Cross-entropy falls where accuracy rises; the shares are the same.
    mirrored = frontier(*(OPTIMUM.points * [1, -1]).tolist(), measure="cross_entropy")
    assert attainable_share(mirrored, [cost], [-quality]) == pytest.approx([share])


def test_where_nothing_can_be_gained_there_is_no_share() -> None:
    found = attainable_share(OPTIMUM, [0.0, 0.02, 0.1], [0.5, 0.6, 0.515])
    assert np.isnan(found).tolist() == [True, True, False]


def test_a_stretch_without_operating_points_costs_share() -> None:
    found = share_over_costs(OPTIMUM, frontier((4.0, 0.9)))
    # Mixing nothing with the last point has 2/3 of the gain up to the vertex at cost 2.
    assert found.lowest == pytest.approx(2 / 3)
    assert found.lowest_at <= 2.0
    assert share_over_costs(OPTIMUM, OPTIMUM).mean == pytest.approx(1.0)


def test_a_method_that_ends_early_keeps_its_last_quality() -> None:
    found = share_over_costs(OPTIMUM, frontier((0.0, 0.5), (2.0, 0.8)))
    assert found.lowest == pytest.approx(0.75)
    assert found.lowest_at == pytest.approx(4.0)


def test_a_task_without_gain_has_no_share() -> None:
    assert np.isnan(share_over_costs(frontier((0.0, 1.0)), frontier((0.0, 1.0)))).all()


def test_noct_is_judged_by_the_best_mixture_of_its_policies_for_either_loss() -> None:
    error = ExactCurve.of(
        [CurvePoint(2, 0, 0.5, 1.0), CurvePoint(1, 2, 0.5, 0.9), CurvePoint(0, 4, 0.9, 0.2)],
        "error",
        "noct",
    )
    entropy = ExactCurve.of([CurvePoint(1, 2, 0.75, 0.4)], "cross-entropy", "noct")
    yardstick = Yardstick((error, entropy))
    found = noct_frontier(yardstick, "accuracy")
    assert found is not None
    assert found.points.tolist() == [[0.0, 0.5], [2.0, 0.75], [4.0, 0.9]]
    found = noct_frontier(yardstick, "cross_entropy")
    assert found is not None
    assert found.points.tolist() == [[0.0, 1.0], [2.0, 0.4], [4.0, 0.2]]
    assert optimum_frontier(yardstick, "accuracy") is None
