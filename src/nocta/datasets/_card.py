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
    """One feature of a data set: what it is, its unit, its cost.

    Args:
        name: Name of the feature in plans and results.
        about: What it is, in a few words.
        cost: Cost of one acquisition.
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
    """The catalog of these measurements."""
    return Catalog(
        features=tuple(m.feature() for m in measurements),
        n_times=n_times,
        context=tuple(context),
        group_fees=dict(group_fees or {}),
        currency=currency,
    )


@dataclass(frozen=True)
class Card:
    """What a reader needs to know before using a data set. Empty entries are not shown.

    Args:
        name: Name to load it by.
        title: One line.
        size: Number of subjects and visits, in a few words.
        labels: The classes, in a few words.
        measurements: What can be acquired, with costs.
        origin: Who collected what, when, from whom.
        label_rule: How the label is defined, exactly.
        slots: The visit slots in real time.
        license: License of the data (not of this package), in a few words.
        terms: More about the license.
        access: How to get the files, in a few words.
        get: How to get the files, step by step.
        url: Home page.
        files: The files a user needs, one line each; empty if none.
        package: Python package that contains the data, if any.
        folder: Folder under `data/` with the files; the data set's name by default.
        citations: What to cite.
        context: Free columns, with an explanation each.
        cost_source: Where the costs come from.
        currency: Unit of the costs.
        group_fees: Fees shared by a group.
        fractions: Sizes of the train, validation and test split by default.
        split_column: Name of the data set's own split, for `--split-column`; empty if it has
            none. The cohort then has `fixed_split`.
        traps: Known pitfalls.
        options: Loader options, with an explanation each.
        headline: Metric that results are ranked and drawn by: `ap`, `roc_auc` or `accuracy`.
        published: Key of the table with the paper's results on this data set; empty if none.
        finite_task: Makes the finite task the subjects are drawn from, if there is one. The exact
            optimum and the Bayes predictor are then known.
    """

    name: str
    title: str
    size: str
    labels: str
    measurements: tuple[Measurement, ...]
    origin: str = ""
    label_rule: str = ""
    slots: str = ""
    license: str = ""
    terms: str = ""
    access: str = ""
    get: str = ""
    url: str = ""
    files: tuple[str, ...] = ()
    package: str = ""
    folder: str = ""
    citations: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    cost_source: str = ""
    currency: str = ""
    group_fees: Mapping[str, float] = field(default_factory=dict)
    fractions: tuple[float, ...] = (0.70, 0.15, 0.15)
    split_column: str = ""
    traps: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    headline: str = "ap"
    published: str = ""
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
        fees = ", ".join(f"{g} {self.price(fee)}" for g, fee in self.group_fees.items())
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
            ("Default split", f"{split} % (train / validation / test, by patient)"),
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
