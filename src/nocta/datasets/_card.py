"""The data card: origin, content, costs and known pitfalls of a data set.

A card is plain data in the file of its data set. The loader builds its catalog from the card's
measurements, so that card and catalog always agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nocta.core.catalog import Catalog, Feature
from nocta.core.currency import money

if TYPE_CHECKING:
    from rich.console import Group

    from nocta.exact.task import FiniteTask

_GIVING = "(in every command: --data-option NAME=VALUE; in Python: NAME=VALUE)"


@dataclass(frozen=True)
class Measurement:
    """One feature of a data set: what it is, its unit, its cost."""

    name: str  # in plans and results
    about: str  # what it is, in a few words
    cost: float  # of one acquisition
    unit: str = ""  # of the value; empty for scores and codes
    group: str | None = None  # features of one group come from one draw, scan or form
    columns: tuple[str, ...] = ()  # table columns it reveals; the name itself by default
    at: tuple[int, ...] | None = None  # visit slots at which it can be acquired; all by default

    def feature(self) -> Feature:
        """The catalog entry of this measurement."""
        return Feature(self.name, self.columns or (self.name,), self.cost, self.group, self.at)


def make_catalog(
    measurements: Iterable[Measurement],
    n_times: int,
    context: Iterable[str] = (),
    group_fees: Mapping[str, float] | None = None,
    currency: str = "",
    visit_fee: float = 0.0,
) -> Catalog:
    """The catalog of these measurements."""
    features = tuple(m.feature() for m in measurements)
    return Catalog(features, n_times, tuple(context), dict(group_fees or {}), visit_fee, currency)


@dataclass(frozen=True)
class Card:
    """What a reader needs to know before using a data set. Empty entries are not shown."""

    name: str  # to load it by
    title: str  # one line
    size: str  # number of subjects and visits, in a few words
    labels: str  # the classes, in a few words
    measurements: tuple[Measurement, ...]  # what can be acquired, with costs
    origin: str = ""  # who collected what, when, from whom
    label_rule: str = ""  # how the label is defined, exactly
    slots: str = ""  # the visit slots in real time
    license: str = ""  # of the data (not of this package), in a few words
    terms: str = ""  # more about the license
    access: str = ""  # how to get the files, in a few words
    get: str = ""  # how to get the files, step by step
    url: str = ""  # home page
    files: tuple[str, ...] = ()  # the files a user needs, one line each
    package: str = ""  # Python package that contains the data, if any
    folder: str = ""  # folder under `data/` with the files; the name of the data set by default
    citations: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)  # free columns, explained
    cost_source: str = ""  # where the costs come from
    currency: str = ""
    group_fees: Mapping[str, float] = field(default_factory=dict)
    visit_fee: float = 0.0  # charged once per visit if anything is acquired
    unit: str = "patient"  # what a split keeps together, in one word
    fractions: tuple[float, ...] = (0.70, 0.15, 0.15)  # default train, validation and test split
    #: Name of the data set's own split, for `--split-column`; the cohort then has `fixed_split`.
    split_column: str = ""
    traps: tuple[str, ...] = ()  # known pitfalls
    options: Mapping[str, str] = field(default_factory=dict)  # of the loader, explained
    headline: str = "ap"  # metric that results are ranked and drawn by; or `roc_auc`, `accuracy`
    published: str = ""  # key of the table with the paper's results on this data set
    #: Makes the finite task the subjects are drawn from, if there is one. The exact optimum and
    #: the Bayes predictor are then known.
    finite_task: Callable[..., FiniteTask] | None = None

    @property
    def home(self) -> str:
        """Name of the folder with its files."""
        return self.folder or self.name

    @property
    def access_here(self) -> str:
        """How to get the files on this machine, in a few words; shown in the list."""
        there = bool(self.package) and find_spec(self.package) is not None
        return f"installed ({self.package})" if there else self.access

    def price(self, cost: float) -> str:
        """A cost with its currency."""
        return money(cost, self.currency) if self.currency else f"{cost:g}"

    def facts(self) -> list[tuple[str, str]]:
        """The card's short entries, in reading order."""
        home, own = self.home, self.split_column
        split = " / ".join(f"{100 * f:g}" for f in self.fractions)
        place = f"in data/{home}/ or $NOCTA_DATA/{home}/, or in the folder given with --path"
        options = [f"{name}: {about}" for name, about in self.options.items()]
        charged = dict(self.group_fees)
        if self.visit_fee:
            charged["any acquisition"] = self.visit_fee
        fees = ", ".join(f"{g} {self.price(fee)}" for g, fee in charged.items())
        entries = [
            ("Origin", self.origin),
            ("Size", self.size),
            ("Visits", self.slots),
            ("Labels", self.labels),
            ("Label rule", self.label_rule),
            ("License", ". ".join(filter(None, (self.license, self.terms)))),
            ("Get it", self.get),
            ("Files", "\n".join((*self.files, place)) if self.files else ""),
            ("Home page", self.url),
            ("Cite", "\n".join(self.citations)),
            ("Free context", "\n".join(f"{k}: {v}" for k, v in self.context.items())),
            ("Costs", self.cost_source),
            ("Fees per visit", fees),
            ("Default split", f"{split} % (train / validation / test, by {self.unit})"),
            ("Own split", f"by {own} (--split-column {own})" if own else ""),
            ("Options", "\n".join((*options, _GIVING)) if options else ""),
        ]
        return [(k, v) for k, v in entries if v]

    def measurement_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Name, meaning, unit, cost and group of every feature."""
        return [
            (m.name, m.about, m.unit, self.price(m.cost), m.group or "") for m in self.measurements
        ]

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for key, value in self.facts():
            facts.add_row(key, Text(value))
        table = Table(box=None, title=f"{len(self.measurements)} features", title_justify="left")
        for column in ("feature", "what", "unit", "cost", "group"):
            table.add_column(column, justify="right" if column == "cost" else "left")
        for row in self.measurement_rows():
            table.add_row(*map(Text, row))
        traps = Table.grid(padding=(0, 1))
        for trap in self.traps:
            traps.add_row("-", Text(trap))
        return Group(
            Text(f"{self.name}: {self.title}", style="bold"),
            "",
            facts,
            "",
            table,
            Text("\nKnown pitfalls", style="bold"),
            Padding(traps, (0, 0, 0, 2)),
        )

    def to_markdown(self) -> str:
        """The card as a section of a Markdown page."""
        lines = [f"## `{self.name}`", "", self.title, ""]
        lines += ["| | |", "|---|---|"]
        lines += [f"| {key} | {_cell(value)} |" for key, value in self.facts()]
        lines += ["", "| feature | what | unit | cost | group |", "|---|---|---|---|---|"]
        lines += [
            f"| `{name}` | {_cell(about)} | {unit} | {cost} | {group} |"
            for name, about, unit, cost, group in self.measurement_rows()
        ]
        lines += ["", "Known pitfalls:", ""]
        lines += [f"- {trap}" for trap in self.traps]
        return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
