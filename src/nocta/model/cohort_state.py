"""A cohort as plain configuration and arrays, for models that keep their training subjects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort


def cohort_state(cohort: Cohort) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What is needed to learn from or retrieve these subjects again; not who they are.

    Identifiers, groups and assigned parts are left out. The values themselves are kept: what
    holds this state holds data of subjects.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> cohort = tiny_cohort(5)
        >>> bool((restore_cohort(*cohort_state(cohort)).recorded == cohort.recorded).all())
        True
    """
    config: dict[str, Any] = {
        "name": cohort.name,
        "catalog": cohort.catalog.to_dict(),
        "classes": list(cohort.classes),
    }
    arrays: dict[str, NDArray[Any]] = {
        "values": cohort.values,
        "labels": cohort.labels,
        "visits": cohort.visits,
        "context": cohort.context,
    }
    return config, arrays


def restore_cohort(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Cohort:
    """Inverse of `cohort_state`; subjects are numbered from 0."""
    return Cohort(
        values=arrays["values"],
        labels=arrays["labels"],
        visits=arrays["visits"],
        context=arrays["context"],
        subjects=np.arange(len(arrays["values"])),
        catalog=Catalog.from_dict(config["catalog"]),
        classes=tuple(config["classes"]),
        name=config["name"],
    )
