"""Gradient boosting with everything acquired is a fair yardstick: it sees the past, all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import full_history
import nocta
from full_history import METRICS, MODELS, everything, report, summaries
from nocta.core.history import History


def test_a_row_depends_on_nothing_later() -> None:
    cohort = nocta.datasets.load("synthetic", seed=0, n_subjects=12)
    history = everything(cohort)
    later = np.array(history.values)
    later[:, 6:] += 100
    first, second = summaries(history), summaries(replace(history, values=later))
    np.testing.assert_array_equal(first[:, :6], second[:, :6])
    assert (np.nan_to_num(first[:, 6:]) != np.nan_to_num(second[:, 6:])).any()


def test_what_was_seen_last_is_carried_on() -> None:
    cohort = nocta.datasets.load("synthetic", seed=0, n_subjects=3)
    asked = np.zeros_like(cohort.recorded)
    asked[:, 1] = True
    rows = summaries(History.of(cohort, asked))
    depth = cohort.values.shape[2]
    assert np.isnan(rows[:, 0, : 3 * depth]).all()
    np.testing.assert_allclose(rows[:, 4, depth : 2 * depth], cohort.values[:, 1])  # last
    np.testing.assert_array_equal(rows[:, 4, 2 * depth : 3 * depth], 3.0)  # since


def test_the_report_gives_every_metric_of_both() -> None:
    rows: list[dict[str, object]] = [
        {"seed": seed, "model": name, **dict.fromkeys(METRICS, 0.5 + 0.1 * seed + 0.2 * k)}
        for seed in range(2)
        for k, name in enumerate(MODELS)
    ]
    text = report(rows)
    assert text.count("nocta 0.550, gradient boosting 0.750") == len(METRICS)
    ahead = [line.split("better by ")[1][:4] for line in text.splitlines()]
    assert ahead == ["-0.2", "-0.2", "+0.2"]  # cross-entropy is better where it is lower


def test_what_is_there_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[int, str]] = []

    def run(source: object, seed: int, name: str, kept: object) -> dict[str, object]:
        made.append((seed, name))
        scores = dict.fromkeys((*METRICS, "n_labels", "fit_seconds"), 0.5)
        return {"dataset": "synthetic", "seed": seed, "model": name, **scores}

    monkeypatch.setattr(full_history, "run_model", run)
    arguments = ["full_history.py", "synthetic", "--seeds", "2", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    full_history.main()
    assert len(made) == 4
    file = tmp_path / "synthetic.csv"
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join(line for line in lines if ",1,nocta," not in line) + "\n", "utf-8")
    full_history.main()
    assert made[4:] == [(1, "nocta")]
    assert file.read_text("utf-8").splitlines() == lines
