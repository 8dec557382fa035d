"""The output of a recipe: a Markdown page, a CSV file per table, figures, the HTML report."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.model.files import write_atomically
from nocta.report import write_report
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.plots.style import method_style, save_figure
from nocta.report.published import PaperTable
from nocta.report.tables import with_error
from nocta.runs.compare import Comparison

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Columns and values as shown to readers.
NAMES = {
    "n_neighbors": "K",
    "n_top_plans": "κ",
    "similarity_scale": "β",
    "margin": "γ",
    "n_candidates": "|O|",
    "metric": "retrieval by",
    "values": "feature values",
    "predictor": "prediction embedding",
    "embedding": "embedding network",
    "accuracy": "accuracy",
    "ap": "AP",
    "roc_auc": "ROC AUC",
    "cross_entropy": "cross-entropy",
}
_SPREADS = ("_error", "_spread")
_TWO_DIGITS = ("cost", "cost_low", "cost_high", "growth", "measured")


@dataclass(frozen=True)
class Sheet:
    """A table of numbers with a title above and a note below.

    Column `x_error` or `x_spread` is shown after the ± of column `x`. The name is the suffix of its
    file, after the name of the recipe; empty for the first table.
    """

    name: str
    title: str
    lines: Any
    note: str = ""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The lines, dictionaries by column, as a table."""
        import pandas as pd

        return pd.DataFrame(self.lines)

    def readable(self) -> tuple[list[str], list[list[str]]]:
        shown = [c for c in self.frame if not c.endswith(_SPREADS)]
        rows = [
            [_text(row, column) for column in shown]
            for row in self.frame.astype(object).to_dict("records")
        ]
        return [_name(column) for column in shown], rows

    def markdown(self) -> str:
        head, rows = self.readable()
        body = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
        body.insert(1, ["---"] * len(head))
        return "\n".join(f"| {' | '.join(row)} |" for row in body)


def _name(column: str) -> str:
    for prefix, possessive in (("paper_", "paper's "), ("our_", "our ")):
        if column.startswith(prefix):
            return possessive + _name(column.removeprefix(prefix))
    return NAMES.get(column, column.replace("_", " "))


def _arm(label: str) -> str:
    """A method and its varied option for readers: `K = 10` instead of `n_neighbors=10`."""
    method, *options = label.split(" ")
    pairs = [option.partition("=") for option in options]
    if not all(equals for _, equals, _ in pairs):
        return label
    said = [f"{NAMES.get(name, name)} = {NAMES.get(value, value)}" for name, _, value in pairs]
    return ", ".join([method_style(method).label, *said])


def _text(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if isinstance(value, str):
        return NAMES.get(value) or _arm(value)
    if not isinstance(value, float):
        return str(value)
    spread = next((row[column + s] for s in _SPREADS if column + s in row), float("nan"))
    if column in NAMES and column not in METRIC_LABELS:
        return f"{value:g}"
    digits = 2 if column in _TWO_DIGITS else 3
    return with_error(value, spread, digits, sign=column == "difference")


@dataclass
class Page:
    """Everything a recipe produced.

    Sheets are by data set (an empty name if there is only one), figures and comparisons by the
    suffix of their file name. Each comparison gets an HTML report.
    """

    name: str
    paper: PaperTable
    title: str
    command: str
    sheets: dict[str, list[Sheet]] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def write(self, directory: Path) -> list[Path]:
        """Write everything; returns the files, the page first."""
        directory.mkdir(parents=True, exist_ok=True)
        files = [directory / f"{self.name}.md"]
        for group, sheets in self.sheets.items():
            for sheet in sheets:
                path = directory / f"{_joined(self.name, group, sheet.name)}.csv"
                text = sheet.frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
                write_atomically(path, text)
                files.append(path)
        for end, figure in self.figures.items():
            for suffix in (".png", ".svg"):
                files.append(save_figure(figure, directory / f"{_joined(self.name, end)}{suffix}"))
        for end, comparison in self.comparisons.items():
            files.append(directory / f"{_joined(self.name, end)}.html")
            write_report(comparison, files[-1])
        write_atomically(files[0], self.markdown())
        return files

    def markdown(self) -> str:
        lines = [f"# {self.title[:1].upper()}{self.title[1:]}", ""]
        lines += [f"{self.paper.place} of the paper: {self.paper.caption}", ""]
        lines += [f"    {self.command}", ""]
        for note in self.notes:
            lines += [note, ""]
        if self.failures:
            lines += [f"**{len(self.failures)} job(s) failed** and are missing here:", ""]
            lines += [*(f"- {failure}" for failure in self.failures), ""]
        for end in self.figures:
            lines += [f"![{self.title}]({_joined(self.name, end)}.png)", ""]
        for group, sheets in self.sheets.items():
            lines += [f"## {group}", ""] if group else []
            for sheet in sheets:
                lines += [f"### {sheet.title}", "", sheet.markdown(), ""]
                lines += [sheet.note, ""] if sheet.note else []
        return "\n".join(lines)


def _joined(*parts: str) -> str:
    return "-".join(part for part in parts if part)
