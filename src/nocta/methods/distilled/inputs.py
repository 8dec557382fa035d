"""What a short tree may ask: context, last values, and how often a feature was acquired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.history import History

Kind = Literal["context", "last", "times"]
#: Texts of a column by their number, as in the schema.
Categories = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Input:
    """One number known of a subject before a visit; NaN if it is not known."""

    kind: Kind
    name: str


def inputs_of(catalog: Catalog) -> list[Input]:
    """Everything a tree may ask, in the order of `values_of`."""
    context = [Input("context", name) for name in catalog.context]
    last = [Input("last", name) for name in catalog.columns]
    return [*context, *last, *(Input("times", name) for name in catalog.names)]


def values_of(history: History) -> NDArray[np.float32]:
    """The values of all inputs, `(n, inputs)`, from everything in the history."""
    known = ~np.isnan(history.values)
    slots = np.arange(history.values.shape[1])[:, None]
    latest = np.where(known, slots, 0).max(axis=1, initial=0)  # (n, D)
    last = np.take_along_axis(history.values, latest[:, None], axis=1)[:, 0]
    times = history.acquired.sum(axis=1).astype(np.float32)
    return np.concatenate([history.context, last, times], axis=1).astype(np.float32)


@dataclass(frozen=True)
class Question:
    """Whether an input is at most a number.

    Args:
        input: What is asked about.
        most: The number; infinite if the question is only whether the input is known.
        if_unknown: The answer if the input is not known.
    """

    input: Input
    most: float
    if_unknown: bool

    def answer(self, values: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Yes or no, `(n,)`, for the values of this input."""
        return np.where(np.isnan(values), self.if_unknown, values <= self.most).astype(bool)

    def text(self, categories: Categories | None = None) -> str:
        """The question as a statement.

        Example:
            >>> Question(Input("last", "alt"), 41.5, if_unknown=True).text()
            'last alt is at most 41.5, or not known'
            >>> Question(Input("times", "mri"), 0.5, if_unknown=False).text()
            'mri was not acquired before'
        """
        name = self.input.name
        if self.input.kind == "times":
            return _times(name, int(self.most))
        what = f"last {name}" if self.input.kind == "last" else name
        if np.isinf(self.most):
            return f"{what} is known"
        texts = (categories or {}).get(name)
        if texts:
            listed = [f"'{text}'" for i, text in enumerate(texts) if i <= self.most]
            said = f"{what} is {' or '.join(listed)}"
        else:
            said = f"{what} is at most {self.most:g}"
        return f"{said}, or not known" if self.if_unknown else said

    def to_dict(self) -> dict[str, Any]:
        most = None if np.isinf(self.most) else self.most
        return {**vars(self.input), "most": most, "if_unknown": self.if_unknown}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Question:
        """Inverse of `to_dict`."""
        most = np.inf if data["most"] is None else float(data["most"])
        return cls(Input(data["kind"], data["name"]), most, bool(data["if_unknown"]))


def _times(name: str, most: int) -> str:
    if most == 0:
        return f"{name} was not acquired before"
    return f"{name} was acquired at most {'once' if most == 1 else f'{most} times'}"
