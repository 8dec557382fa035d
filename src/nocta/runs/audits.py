"""Audit a job: every operating point, each on its own small sample of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nocta.core.cohort import Cohort
from nocta.evaluation.audit import audit
from nocta.methods.contract import Method
from nocta.runs.record import Audit, AuditPoint
from nocta.runs.setup import Setup

#: Minimum number of subjects at every operating point.
MIN_SUBJECTS = 8
#: Maximum number of slots after which the future of the audited subjects is changed.
MAX_CUTS = 12


def audit_points(
    method: Method,
    settings: Sequence[dict[str, Any]],
    test: Cohort,
    setup: Setup,
    seed: int,
) -> Audit | None:
    """Audit the policy of every operating point on a sample of the test subjects.

    `setup.audit_subjects` are divided among the points, with at least `MIN_SUBJECTS` each, so an
    audit takes about the same time for any number of points. With 0 the result is `None`.
    """
    if not setup.audit_subjects:
        return None
    fewest = min(MIN_SUBJECTS, setup.audit_subjects)
    points = []
    for i, setting in enumerate(settings):
        found = audit(
            method.policy(setting),
            test,
            n_subjects=max(fewest, setup.audit_subjects // len(settings)),
            seed=1000 * seed + i,  # other subjects at every point
            budget=setting.get("budget"),
            availability=setup.availability,
            results=setup.results,
            n_cuts=min(test.n_times + 1, MAX_CUTS),
        )
        points.append(AuditPoint(**found.to_dict(), setting=setting, finding=str(found)))
    first = points[0]
    return Audit(
        n_points=len(points),
        n_subjects=sum(p.n_subjects for p in points),
        n_decisions=sum(p.n_decisions for p in points),
        n_predictions=sum(p.n_predictions for p in points),
        seconds=sum(p.seconds for p in points),
        availability=first.availability,
        results=first.results,
        kinds=first.kinds,
        cuts=first.cuts,
        points=points,
    )
