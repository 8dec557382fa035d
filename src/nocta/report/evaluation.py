"""The report of one saved model on the subjects it was evaluated on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nocta.evaluation.audit import AuditReport
from nocta.model.files import write_atomically
from nocta.report.build import render
from nocta.report.tables import Table, number
from nocta.runs.compare import Comparison
from nocta.runs.drift import NOT_RECORDED, Drift
from nocta.runs.evaluate_run import Evaluation
from nocta.runs.record import (
    Audit,
    CohortDescription,
    Job,
    JobRecord,
    PointDetails,
    Recommended,
)
from nocta.runs.results import Row
from nocta.runs.setup import DataSource, Setup
from nocta.runs.versions import versions


def write_evaluation(
    evaluation: Evaluation,
    details: Sequence[PointDetails],
    rows: Sequence[Mapping[str, Any]],
    recommended: Recommended | None,
    path: Path,
    *,
    source: DataSource,
    finding: AuditReport,
    drift: Drift | None,
    command: str,
) -> None:
    """Write the same report as that of a comparison, for one model, with its drift."""
    model, judged = evaluation.model, evaluation.judged
    record = JobRecord(
        job=Job(model.name, model.seed),
        rows=[Row(**row) for row in rows],
        details=list(details),
        recommended=recommended,
        audit=_audit(finding),
        cohort=CohortDescription.of(
            judged.cohort,
            n_train=model.record_.get("n_train", 0),
            n_val=model.record_.get("n_val", 0),
        ),
        versions=versions(),
    )
    setup = Setup(
        source,
        preset=model.preset,  # type: ignore[arg-type]  # checked when it was fitted
        availability=evaluation.availability,
        quick=bool(model.record_.get("request", {}).get("quick")),
    )
    comparison = Comparison(path.parent, setup, [record], [], command, judged=judged.note)
    write_atomically(path, render(comparison, drift=drift_table(drift), warnings=judged.warnings))


def drift_table(drift: Drift | None) -> Table:
    """The columns that moved, or else all of them, with the verdict as a note."""
    if drift is None:
        return Table([], [], notes={"verdict": f"Training inputs and labels: {NOT_RECORDED}"})
    rows = [
        [
            column.name,
            column.role,
            number(column.psi, 2),
            f"{column.missing_before:.0%}",
            f"{column.missing_now:.0%}",
            f"{column.outside:.0%}",
            column.level,
        ]
        for column in sorted(drift.columns, key=lambda c: -c.psi)
    ]
    head = ["column", "kind", "PSI", "missing in training", "missing here"]
    head += ["outside the usual range", "verdict"]
    return Table(head, rows, notes={"verdict": drift.verdict})


def _audit(finding: AuditReport) -> Audit:
    names = ("n_subjects", "n_decisions", "n_predictions", "seconds", "availability", "results")
    found = {name: getattr(finding, name) for name in (*names, "kinds", "cuts")}
    return Audit(**found)
