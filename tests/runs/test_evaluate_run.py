"""Judging a saved model: piece by piece, resumable, to the same numbers as one roll-out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from nocta.core.environment import Availability
from nocta.core.errors import ConfigError
from nocta.core.metrics import summarize
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout
from nocta.model.nocta import NOCTA
from nocta.planning.limits import Limits
from nocta.runs import evaluate_run
from nocta.runs.evaluate_run import Evaluation
from nocta.runs.results import MEASURES, TIMES
from nocta.runs.saved import Judged
from small_models import Parts

SETTINGS = [{"cost_weight": 0.01}, {"cost_weight": 0.001, "budget": 3.0}]
#: Test subjects in a piece, at most, and the number of pieces that this makes.
PIECE, N_PIECES = 5, 4
LIMITS = Limits(rollout_subjects=PIECE)


@pytest.fixture
def model(tiny_models: dict[str, NOCTA], tmp_path: Path) -> NOCTA:
    found = tiny_models["amortized"]
    found.record_ = {"fit_seconds": 1.0}
    found.save(tmp_path / "model")
    return found


@pytest.fixture
def judged(tiny_parts: Parts) -> Judged:
    return Judged(tiny_parts[2], "test", "kept aside")


@pytest.fixture
def evaluation(model: NOCTA, judged: Judged, tmp_path: Path) -> Evaluation:
    return evaluate(model, judged, tmp_path)


def evaluate(
    model: NOCTA, judged: Judged, folder: Path, availability: Availability = "on-arrival"
) -> Evaluation:
    out = folder / "r.csv"
    return Evaluation.open(model, folder / "model", judged, availability, out, LIMITS)


@dataclass
class Spy:
    """Sizes of what was rolled out; the next one after `last` is interrupted."""

    sizes: list[int] = field(default_factory=list)
    last: int | None = None


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spy]:
    found, real = Spy(), evaluate_run.rollout

    def rollout(policy: Policy, cohort: Any, **kwargs: Any) -> Rollout:
        if len(found.sizes) == found.last:
            raise KeyboardInterrupt
        found.sizes.append(len(cohort))
        return real(policy, cohort, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(evaluate_run, "rollout", rollout)
        yield found


def judge(evaluation: Evaluation, said: list[str] | None = None) -> list[dict[str, Any]]:
    """All rows, without how long they took."""
    evaluation.finished.open()
    rows = evaluation.rows(SETTINGS, say=(said if said is not None else []).append)
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def test_pieces_measure_what_one_rollout_does(
    model: NOCTA, judged: Judged, evaluation: Evaluation, spy: Spy
) -> None:
    rows = judge(evaluation)
    assert len(spy.sizes) == N_PIECES * len(SETTINGS)
    assert max(spy.sizes) <= PIECE
    for row, setting in zip(rows, SETTINGS, strict=True):
        budget = setting.get("budget")
        whole = summarize(model.rollout(judged.cohort, setting["cost_weight"], budget=budget))
        for name in MEASURES:
            if name not in TIMES and name in whole:
                assert row[name] == pytest.approx(whole[name], abs=1e-6, nan_ok=True), name


def without_nan(rows):
    """NaN is equal to NaN here."""
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]


@pytest.mark.parametrize("finished", [1, N_PIECES, N_PIECES + 2])
def test_a_stopped_run_goes_on_with_the_next_piece(
    finished: int, evaluation: Evaluation, spy: Spy
) -> None:
    expected = without_nan(judge(evaluation))
    evaluation.finished.clear()
    spy.sizes, spy.last = [], finished
    with pytest.raises(KeyboardInterrupt):
        judge(evaluation)
    spy.sizes, spy.last = [], None
    said: list[str] = []
    assert without_nan(judge(evaluation, said)) == expected
    assert len(spy.sizes) == N_PIECES * len(SETTINGS) - finished
    before = ["1 of 2 operating points were finished before."]
    assert said == (before if finished >= N_PIECES else [])
    evaluation.finished.clear()
    assert not evaluation.finished.folder.exists()


def test_a_damaged_piece_is_rolled_out_again(evaluation: Evaluation, spy: Spy) -> None:
    spy.last = 2
    with pytest.raises(KeyboardInterrupt):
        judge(evaluation)
    piece = min(evaluation.finished.folder.glob("*.npz"))
    piece.write_bytes(piece.read_bytes()[:100])
    spy.sizes, spy.last = [], None
    judge(evaluation)
    assert len(spy.sizes) == N_PIECES * len(SETTINGS) - 1


def test_what_another_evaluation_finished_is_not_mixed_in(
    model: NOCTA, judged: Judged, evaluation: Evaluation, tmp_path: Path
) -> None:
    judge(evaluation)
    others = {
        "the data changed": replace(judged, cohort=judged.cohort.subset([0, 1])),
        "part is 'test' there and 'all' here": replace(judged, part="all"),
    }
    for said, other in others.items():
        with pytest.raises(ConfigError, match=f"{said}. It keeps what is finished"):
            evaluate(model, other, tmp_path)
    with pytest.raises(ConfigError, match="availability is 'on-arrival' there and 'known' here"):
        evaluate(model, judged, tmp_path, "known")
    model.record_ = {"fit_seconds": 2.0}
    model.save(tmp_path / "model")
    with pytest.raises(ConfigError, match="the model changed"):
        evaluate(model, judged, tmp_path)
    evaluation.finished.open()


def test_progress_counts_subjects_of_every_piece(
    judged: Judged, evaluation: Evaluation, spy: Spy, capsys: pytest.CaptureFixture[str]
) -> None:
    total = len(judged.cohort) * len(SETTINGS)
    rows = evaluation.rows(SETTINGS, progress=True)
    next(rows)
    rows.close()  # type: ignore[attr-defined]  # a generator
    shown = capsys.readouterr().err
    assert f"{len(judged.cohort)}.0/{total}.0" in shown
    assert "subjects finished" in shown
