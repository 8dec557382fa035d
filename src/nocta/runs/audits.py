"""The audit of a job: every operating point, each on a few subjects of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nocta.core.cohort import Cohort
from nocta.evaluation.audit import AuditReport, audit
from nocta.methods.contract import Method
from nocta.runs.setup import Setup

#: At least so many subjects at every operating point.
MIN_SUBJECTS = 8
#: The future of the audited subjects is cut off at every slot, or at this many.
MAX_CUTS = 12


def audit_points(
    method: Method,
    settings: Sequence[dict[str, Any]],
    test: Cohort,
    setup: Setup,
    seed: int,
) -> dict[str, Any] | None:
    """Audit the policy of every operating point on a sample of the test subjects.

    `setup.audit_subjects` are shared out over the points, at least `MIN_SUBJECTS` to each, so
    an audit takes about as long however many points there are.

    Args:
        method: Fitted.
        settings: Its operating points.
        test: The subjects that results are reported on.
        setup: Of the comparison.
        seed: Decides the samples and the changes.

    Returns:
        Totals over the points, and under `points` what was verified at each; `None` where
        nothing is to be audited.

    Raises:
        LeakageError: A policy knew something it never acquired.
    """
    if not setup.audit_subjects:
        return None
    fewest = min(MIN_SUBJECTS, setup.audit_subjects)
    reports = [
        audit(
            method.policy(setting),
            test,
            n_subjects=max(fewest, setup.audit_subjects // len(settings)),
            seed=1000 * seed + point,  # other subjects at every point
            budget=setting.get("budget"),
            availability=setup.availability,
            results=setup.results,
            n_cuts=min(test.n_times + 1, MAX_CUTS),
        )
        for point, setting in enumerate(settings)
    ]
    return _totals(reports, settings)


def _totals(reports: list[AuditReport], settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    points = [
        {**report.to_dict(), "setting": setting, "finding": str(report)}
        for report, setting in zip(reports, settings, strict=True)
    ]
    summed = ("n_subjects", "n_decisions", "n_predictions", "seconds")
    return {
        "n_points": len(points),
        **{name: sum(point[name] for point in points) for name in summed},
        **{name: points[0][name] for name in ("availability", "results", "kinds", "cuts")},
        "points": points,
    }
