"""The data card of a cohort (`nocta describe`): subjects, visits, labels, missing values, costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nocta.core import markdown
from nocta.core.cohort import Cohort
from nocta.core.currency import with_currency
from nocta.core.markdown import escaped

_MOST_CLASSES = 8


@dataclass(frozen=True)
class CohortSummary:
    """Counts of a cohort, per visit slot."""

    cohort: Cohort
    subjects: NDArray[np.int64]  # (L,) number of subjects with a visit
    class_counts: NDArray[np.int64]  # (L, C) labels of each class
    #: `(L, M)` share of visits with a recorded value; NaN if the feature cannot be acquired or
    #: there was no visit.
    recorded: NDArray[np.float64]
    notes: tuple[str, ...] = ()  # what was left out or ignored when it was read

    @classmethod
    def of(cls, cohort: Cohort, notes: Iterable[str] = ()) -> CohortSummary:
        """Count a cohort."""
        subjects = cohort.visits.sum(axis=0)
        classes = np.arange(cohort.n_classes)
        offered = np.where(cohort.catalog.open_slots, subjects[:, None], 0)
        return cls(
            cohort=cohort,
            subjects=subjects,
            class_counts=(cohort.labels[:, :, None] == classes).sum(axis=0),
            recorded=np.where(
                offered > 0, cohort.recorded.sum(axis=0) / np.maximum(offered, 1), np.nan
            ),
            notes=tuple(notes),
        )

    @property
    def slot_names(self) -> list[str]:
        """Names of the visit slots: their times if known, else their numbers."""
        return [f"{t:g}" for t in self.cohort.slot_times or range(self.cohort.n_times)]

    @property
    def missing_by_feature(self) -> NDArray[np.float64]:
        """Share of visits without a recorded value of each feature, `(M,)`."""
        offered = np.where(self.cohort.catalog.open_slots, self.subjects[:, None], 0).sum(axis=0)
        return np.asarray(1 - self.cohort.recorded.sum(axis=(0, 1)) / np.maximum(offered, 1))

    def to_markdown(self) -> str:
        """The card as Markdown."""
        sections = [
            f"# {escaped(self.cohort.name)}",
            self._overview(),
            "## Visits and labels",
            self._visit_table(),
            "## Features",
            self._feature_table(),
            *self._fees(),
            "## Values",
            self._value_table(),
        ]
        if self.notes:
            sections += ["## Notes", "\n".join(f"- {escaped(note)}" for note in self.notes)]
        return "\n\n".join(sections) + "\n"

    def _overview(self) -> str:
        cohort, catalog = self.cohort, self.cohort.catalog
        n_visits, n_labels = int(self.subjects.sum()), int(self.class_counts.sum())
        lines = [
            f"- {len(cohort):,} subjects, {cohort.n_times} visit slots "
            f"({escaped(cohort.time_unit)}); {n_visits:,} visits took place",
            f"- {n_labels:,} labels ({_percent(n_labels, n_visits)} of the visits) "
            f"of {cohort.n_classes} classes",
            f"- {catalog.n_features} features in {len(catalog.columns)} columns; acquiring "
            f"everything costs {self._price(catalog.price_of_everything)} per subject",
        ]
        if catalog.context:
            lines.append(f"- free context: {escaped(', '.join(catalog.context))}")
        if cohort.groups is not None:
            lines.append(f"- {len(np.unique(cohort.groups)):,} groups, each kept in one split")
        if cohort.fixed_split is not None:
            names, counts = np.unique(cohort.fixed_split, return_counts=True)
            shown = ", ".join(f"{s} {c:,}" for s, c in zip(names, counts, strict=True))
            lines.append(f"- assigned split: {escaped(shown)}")
        return "\n".join(lines)

    def _visit_table(self) -> str:
        classes, counts = self.cohort.classes, self.class_counts
        many = len(classes) > _MOST_CLASSES
        header = [self.cohort.time_unit, "subjects", "labeled"]
        header += ["classes seen", "most frequent"] if many else list(classes)
        rows = []
        for slot, name in enumerate(self.slot_names):
            here, total = counts[slot], int(counts[slot].sum())
            row = [name, f"{self.subjects[slot]:,}", f"{total:,}"]
            if many:
                top = int(here.argmax())
                share = f"{classes[top]} ({_percent(int(here[top]), total)})"
                row += [str(int((here > 0).sum())), share if total else ""]
            else:
                row += [f"{n:,} ({_percent(int(n), total)})" if total else "" for n in here]
            rows.append(row)
        return markdown.table(header, rows, aligned=True)

    def _feature_table(self) -> str:
        catalog = self.cohort.catalog
        rows = []
        for m, feature in enumerate(catalog.features):
            costs = np.unique(catalog.costs[:, m])
            price = self._price(costs[0])
            if costs.size > 1:
                price += f" to {self._price(costs[-1])}"
            at = ", ".join(self.slot_names[t] for t in feature.at or ()) or "every visit"
            missing = f"{self.missing_by_feature[m]:.1%}"
            columns = ", ".join(feature.columns)
            rows.append([feature.name, columns, price, feature.group or "", at, missing])
        head = ["feature", "columns", "cost", "group", "at", "missing"]
        return markdown.table(head, rows, aligned=True)

    def _fees(self) -> list[str]:
        catalog = self.cohort.catalog
        lines = [
            f"- {self._price(fee)} per visit with any acquisition from group '{escaped(group)}'"
            for group, fee in catalog.group_fees.items()
        ]
        if catalog.visit_fee:
            lines.append(f"- {self._price(catalog.visit_fee)} per visit with any acquisition")
        return ["\n".join(lines)] if lines else []

    def _value_table(self) -> str:
        cohort = self.cohort
        columns = [(name, cohort.context[:, p]) for p, name in enumerate(cohort.catalog.context)]
        columns += [(name, cohort.values[:, :, d]) for d, name in enumerate(cohort.catalog.columns)]
        rows = []
        for name, values in columns:
            known = values[~np.isnan(values)].astype(float)
            if known.size:
                low, middle, high = np.quantile(known, [0, 0.5, 1])
                spread = [f"{x:.4g}" for x in (known.mean(), known.std(), low, middle, high)]
            else:
                spread = [""] * 5
            rows.append([name, f"{known.size:,}", *spread])
        head = ["column", "recorded", "mean", "sd", "min", "median", "max"]
        return markdown.table(head, rows, aligned=True)

    def _price(self, cost: float) -> str:
        amount = f"{cost:.2g}"
        if cost == 0 or cost >= 0.01:
            amount = f"{cost:,.2f}".rstrip("0").rstrip(".")
        return with_currency(amount, self.cohort.catalog.currency)


def _percent(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.1%}"
