"""What `nocta init` finds out about a table: the meaning of its columns, and what to check."""

from __future__ import annotations

from dataclasses import dataclass, field

from nocta.tables.dates import DateOrder
from nocta.tables.draft.seen import Column
from nocta.tables.grid import DraftedGrid
from nocta.tables.schema import EventSpec

LABEL = (
    r"(label|target|outcome|class|diagnosis|dx|stage|status|y|event|progression|response|death"
    r"|died)([_ ].*)?"
)
#: Most values of a text column, and most classes of a label.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Wish:
    """What the user asks of the label, if it is not to be guessed.

    Args:
        label: Its column.
        bins: Cut it into this many ranges of equal size, or at these numbers.
        event: Columns with the end of follow-up and with how it ended.
        within: How soon after a visit the event counts.
    """

    label: str | None = None
    bins: int | tuple[float, ...] | None = None
    event: tuple[str, str] | None = None
    within: float | None = None


@dataclass
class Guess:
    """The meaning of every column, and what to check."""

    subject: str | None = None
    visit: str | None = None
    first_visit: int = 0
    time: str | None = None
    time_unit: str | None = None
    grid: DraftedGrid | None = None
    date_order: DateOrder | None = None
    visit_prefix: str = ""
    label: str | None = None
    bins: list[float] = field(default_factory=list)
    event: EventSpec | None = None
    classes: list[str] = field(default_factory=list)
    split: str | None = None
    context: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    first_only: list[str] = field(default_factory=list)
    categories: dict[str, list[str]] = field(default_factory=dict)
    nominal: list[str] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    #: Why a column with a subject-like or visit-like name cannot be used.
    obstacle: str = ""


def first_of(key: str, candidates: list[Column], guess: Guess) -> Column:
    """The first candidate; the others are mentioned."""
    if len(candidates) > 1:
        others = ", ".join(f"'{c.name}'" for c in candidates[1:])
        guess.unsure.append(f"{key}: guessing '{candidates[0].name}'; {others} could be it too.")
    return candidates[0]
