"""The data card: where a data set comes from, what it holds, what it costs, where it misleads.

A card is plain data in the file of its data set. The table of measurements is the same one the
loader makes its catalog from, so a card cannot disagree with the prices a policy pays.
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
    from rich.table import Table

    from nocta.exact.task import FiniteTask

_GIVING = "(--data-option NAME=VALUE in every command, NAME=VALUE in Python)"


@dataclass(frozen=True)
class Measurement:
    """One feature of a data set: what it is, its unit, its price.

    Args:
        name: Name of the feature in plans and reports.
        about: What is measured, in a few words.
        cost: Price of one acquisition.
        unit: Unit of the value; empty for scores and codes.
        group: Features of one group come from one draw, scan or form.
        columns: Table columns it reveals; the name itself by default.
        at: Visit slots at which it can be acquired; every slot by default.
    """

    name: str
    about: str
    cost: float
    unit: str = ""
    group: str | None = None
    columns: tuple[str, ...] = ()
    at: tuple[int, ...] | None = None

    def feature(self) -> Feature:
        """The catalog entry of this measurement."""
        return Feature(self.name, self.columns or (self.name,), self.cost, self.group, self.at)


def make_catalog(
    measurements: Iterable[Measurement],
    n_times: int,
    context: Iterable[str] = (),
    group_fees: Mapping[str, float] | None = None,
    currency: str = "",
) -> Catalog:
    """The price list of a table of measurements."""
    return Catalog(
        features=tuple(m.feature() for m in measurements),
        n_times=n_times,
        context=tuple(context),
        group_fees=dict(group_fees or {}),
        currency=currency,
    )


@dataclass(frozen=True)
class Card:
    """What a reader needs to know before using a data set.

    Args:
        name: Name under which it is loaded.
        title: One line.
        origin: Who collected what, when, from whom.
        size: Subjects and visits, in a few words.
        labels: The classes, in a few words.
        label_rule: How a label comes about, exactly.
        slots: What the visit slots are in real time.
        licence: Licence of the data (not of this package), in a few words.
        access: How to get the files, in a few words.
        get: How to get the files, step by step.
        url: Home page.
        terms: More about the licence.
        files: What has to lie in the folder, one line each; empty when nothing has to.
        package: Python package that brings the data; empty where none does.
        folder: Name of that folder under `data/`; the data set's name by default.
        citations: What to cite.
        measurements: What can be acquired, with prices.
        context: Free columns, with an explanation each.
        cost_source: Where the prices come from.
        currency: Unit of the prices.
        group_fees: Fees shared by a group.
        fractions: Train, validation and test part by default.
        split_column: What its own split is called, for `--split-column`; its cohort then has
            `fixed_split`. Empty where it has none.
        traps: What has misled people before.
        options: Loader options, with an explanation each.
        headline: Metric that results are ranked and drawn by: `ap`, `roc_auc` or `accuracy`.
        published: Key of the table with the paper's results on this data set; empty if none.
        finite_task: Makes the finite task the subjects are drawn from, if there is one. The exact
            optimum and the Bayes predictor are then known.
    """

    name: str
    title: str
    origin: str
    size: str
    labels: str
    label_rule: str
    slots: str
    licence: str
    access: str
    get: str
    url: str
    citations: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    cost_source: str
    traps: tuple[str, ...]
    terms: str = ""
    files: tuple[str, ...] = ()
    package: str = ""
    folder: str = ""
    context: Mapping[str, str] = field(default_factory=dict)
    currency: str = ""
    group_fees: Mapping[str, float] = field(default_factory=dict)
    fractions: tuple[float, ...] = (0.70, 0.15, 0.15)
    split_column: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    headline: str = "ap"
    published: str = ""
    finite_task: Callable[..., FiniteTask] | None = None

    @property
    def home(self) -> str:
        """Name of the folder its files are looked for in."""
        return self.folder or self.name

    @property
    def split(self) -> str:
        """The default parts, for reading: `70 / 15 / 15 %`."""
        return " / ".join(f"{100 * f:g}" for f in self.fractions) + " %"

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
        fees = ", ".join(f"{g} {self.price(fee)}" for g, fee in self.group_fees.items())
        entries = [
            ("Origin", self.origin),
            ("Size", self.size),
            ("Visits", self.slots),
            ("Labels", self.labels),
            ("Label rule", self.label_rule),
            ("Licence", f"{self.licence}. {self.terms}".strip()),
            ("Get it", self.get),
            ("Files", "\n".join((*self.files, *self._place()))),
            ("Home page", self.url),
            ("Cite", "\n".join(self.citations)),
            ("Free context", "\n".join(f"{k}: {v}" for k, v in self.context.items())),
            ("Prices", self.cost_source),
            ("Fees per visit", fees),
            ("Default split", f"{self.split} (train / validation / test, by patient)"),
            ("Own split", self._own_split()),
            ("Options", "\n".join(self._options())),
        ]
        return [(k, v) for k, v in entries if v]

    def _own_split(self) -> str:
        name = self.split_column
        return f"by {name} (--split-column {name})" if name else ""

    def _options(self) -> list[str]:
        lines = [f"{name}: {about}" for name, about in self.options.items()]
        return [*lines, _GIVING] if lines else []

    def _place(self) -> tuple[str, ...]:
        where = f"in data/{self.home}/ or $NOCTA_DATA/{self.home}/, or wherever --path says"
        return (where,) if self.files else ()

    def measurement_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Name, meaning, unit, price and group of every feature."""
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
        traps = Table.grid(padding=(0, 1))
        for trap in self.traps:
            traps.add_row("-", Text(trap))
        return Group(
            Text(f"{self.name}: {self.title}", style="bold"),
            "",
            facts,
            "",
            self._measurement_table(),
            Text("\nKnown traps", style="bold"),
            Padding(traps, (0, 0, 0, 2)),
        )

    def _measurement_table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, title=f"{len(self.measurements)} features", title_justify="left")
        for column in ("feature", "what", "unit", "cost", "group"):
            table.add_column(column, justify="right" if column == "cost" else "left")
        for row in self.measurement_rows():
            table.add_row(*(Text(cell) for cell in row))
        return table

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
        lines += ["", "Known traps:", ""]
        lines += [f"- {trap}" for trap in self.traps]
        return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
