"""How long a sweep will take yet."""

from __future__ import annotations

from nocta.runs.sweep import duration, time_left


def test_it_is_told_from_the_same_method_at_other_seeds() -> None:
    known = {"static": [300.0, 500.0], "random": [40.0]}
    assert time_left(["random"], [], known, 1) == "about 40 s left"
    assert time_left(["static", "random"], [], known, 1) == "about 7 min left"
    assert time_left(["static", "static", "static"], [], known, 2) == "about 13 min left"


def test_the_longest_job_decides_where_there_are_processes_enough() -> None:
    known = {"slow": [600.0], "fast": [10.0]}
    assert time_left(["slow", "fast", "fast"], [], known, 3) == "about 10 min left"


def test_what_runs_has_only_its_rest_before_it() -> None:
    known = {"static": [600.0]}
    assert time_left([], [("static", 360.0)], known, 2) == "about 4 min left"
    assert time_left(["static"], [("static", 360.0)], known, 1) == "about 14 min left"
    assert time_left([], [("static", 1200.0)], known, 1) == "about 2 min left"  # overdue


def test_a_method_that_never_ended_gives_a_lower_bound() -> None:
    known = {"nothing": [2.0], "static": [400.0]}
    assert time_left(["ras"], [], known, 1) == "at least 3 min left"  # like the others, 201 s
    # It has run for ten minutes: its other seeds will take as long at least.
    assert time_left(["ras"], [("ras", 600.0)], known, 1) == "at least 12 min left"
    assert time_left(["static"], [], known, 1) == "about 7 min left"


def test_nothing_is_told_before_a_method_ended() -> None:
    assert time_left(["static"], [("static", 5.0)], {}, 1) == ""
    # A predictor that was kept takes no time.
    assert time_left(["static"], [], {"predictor": [0.1, 0.2]}, 1) == ""
    assert time_left([], [], {"static": [1.0]}, 1) == ""


def test_predictors_that_wait_count_as_the_ones_before() -> None:
    known = {"predictor": [120.0], "static": [60.0]}
    assert time_left(["predictor", "static"], [], known, 1) == "about 3 min left"


def test_durations_have_a_unit_that_fits() -> None:
    assert [duration(s) for s in (0.4, 89, 91, 3000, 7200)] == [
        "0 s",
        "89 s",
        "2 min",
        "50 min",
        "2.0 h",
    ]
