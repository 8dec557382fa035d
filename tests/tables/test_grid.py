"""Times keep their order on the grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nocta.tables.grid import Snap, grid_end, place_on_grid, usual_times

grids = st.lists(st.integers(-50, 50), min_size=1, max_size=8, unique=True).map(sorted)
times = st.lists(st.floats(-60, 80), min_size=1, max_size=20)


@given(grid=grids, when=times, snap=st.sampled_from(["nearest", "before"]))
def test_a_later_record_is_in_no_earlier_slot(
    grid: list[int], when: list[float], snap: Snap
) -> None:
    slots = place_on_grid(np.sort(np.array(when)), grid, snap)
    assert (np.diff(slots) >= 0).all()
    assert ((slots == -1) == (np.sort(when) < grid[0])).all()


@given(grid=grids, snap=st.sampled_from(["nearest", "before"]))
def test_every_slot_holds_its_own_time(grid: list[int], snap: Snap) -> None:
    slots = place_on_grid(np.array(grid, dtype=float), grid, snap)
    assert slots.tolist() == list(range(len(grid)))


@pytest.mark.parametrize(
    ("snap", "time", "slot"),
    [
        ("nearest", 0.49, 0),
        ("nearest", 0.5, 0),
        ("nearest", 0.51, 1),
        ("nearest", 2.99, 2),
        ("nearest", 4.0, 3),
        ("before", 0.99, 0),
        ("before", 1.0, 1),
        ("before", 4.99, 2),
        ("before", 5.0, 3),
    ],
)
def test_which_slot_a_time_belongs_to(snap: Snap, time: float, slot: int) -> None:
    assert place_on_grid(np.array([time]), [0, 1, 3], snap).tolist() == [slot]


def test_one_slot_has_no_end() -> None:
    assert grid_end([2.0]) == np.inf


def test_irregular_times_suggest_a_grid_that_holds_them() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(50), 4)
    when = np.tile([0.02, 0.5, 1, 2], 50) + rng.normal(0, 0.02, 200)
    grid = usual_times(when, codes)
    assert grid[1:] == [0.5, 1.0, 2.0]
    assert place_on_grid(when, grid).min() == 0
