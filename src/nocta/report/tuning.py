"""What the report says of tuning: what was chosen, and how every trial did on validation."""

from __future__ import annotations

from typing import Any

from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.tables import label, number
from nocta.report.view import ReportView
from nocta.runs.record import JobRecord


def tuning_table(view: ReportView) -> dict[str, Any] | None:
    """Of every job the defaults' score, the best one, what was chosen, and all scores.

    `None` where nothing was tuned.
    """
    comparison = view.comparison
    if not comparison.setup.n_trials:
        return None
    order = {method: i for i, method in enumerate(view.methods)}
    records = sorted(comparison.records, key=lambda record: order[record.job.label])
    return {
        "head": ["method", "seed", "defaults", "chosen", "options chosen", "score of every trial"],
        "rows": [_row(record) for record in records],
        "grouped": True,
        "prose": [4, 5],
        "n_trials": comparison.setup.n_trials,
        "quality": METRIC_LABELS[comparison.quality],
    }


def _row(record: JobRecord) -> list[str]:
    name, seed, tuning = label(record.job.label), str(record.job.seed), record.tuning
    if tuning is None or not tuning.tuned:
        return [name, seed, "–", "–", "nothing to tune", ""]
    scores = [number(trial.score) for trial in tuning.trials]
    chosen = ", ".join(f"{k} = {v}" for k, v in tuning.chosen.items()) or "the defaults"
    missing = tuning.n_trials - len(scores)
    tried = ", ".join(scores) + (" (there are no other options)" if missing else "")
    return [name, seed, scores[0], scores[tuning.best], chosen, tried]
