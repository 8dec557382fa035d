"""The sentence that holds a protocol against a curve."""

from __future__ import annotations

import pytest

from nocta.evaluation.against_protocol import protocol_sentence
from nocta.evaluation.frontier import Frontier


@pytest.mark.parametrize(
    ("costs", "qualities", "rest"),
    [
        ([120, 300], [0.81, 0.85], "for the same money .85, or .81 for $120"),
        ([120, 300], [0.8142, 0.85], "for the same money .850, or .814 for $120"),
        ([120], [0.83], ".83 for $120"),
        ([310], [0.83], "for the same money .83"),
        ([50, 400], [0.7, 0.9], "no operating point is better for the same money"),
        ([], [], "no operating point is better for the same money"),
        ([9.855], [0.9], ".90 for $9.86"),
    ],
)
def test_only_points_that_exist_are_promised(costs, qualities, rest):
    found = protocol_sentence(Frontier(costs, qualities, "ap"), 310.0, 0.81, currency="$")
    head, _, said = found.partition("; ")
    assert head.startswith("Your present protocol costs $310 and reaches AP .81")
    assert said == f"{rest}."


def test_a_loss_is_better_when_lower():
    curve = Frontier([120, 300], [0.5, 0.3], "cross_entropy")
    found = protocol_sentence(curve, 310.0, 0.4)
    assert found.endswith("reaches cross-entropy .40; for the same money .30, or .30 for 300.") or (
        found.endswith("reaches cross-entropy .40; .30 for 300.")
    )
