"""`nocta plan`: the next acquisition for one subject, why, and the runner-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer import Argument, Option

from nocta.cli import running
from nocta.cli.outputs import make_table, say_notes
from nocta.core.currency import money

if TYPE_CHECKING:
    from nocta.model.nocta import NOCTA
    from nocta.planning.explain import PlanSummary, Recommendation
    from nocta.planning.explanation import Explanation
    from nocta.tables.history_table import HistoryTable


def plan(
    model: running.ModelArgument,
    history: Annotated[
        Path,
        Argument(
            metavar="HISTORY",
            help="CSV or Parquet file with the values acquired so far. Empty means not acquired; "
            "`unavailable` means requested but not available.",
        ),
    ],
    cost_weight: running.CostWeightOption = None,
    budget: running.BudgetOption = None,
    subject: Annotated[
        str | None, Option("--subject", help="Subject to plan for, if the file has several.")
    ] = None,
    constraint: running.ConstraintOption = None,
    today: Annotated[
        str | None,
        Option(
            "--today",
            metavar="DATE",
            help="Plan for a visit that happens on this day (YYYY-MM-DD; in a table without dates, "
            "a time or visit number). Default: plan for the visits after the last row.",
        ),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what to acquire next for one subject, and why.

    Shows the best plan and the runner-up, with the cost and the expected loss of each. If the two
    are practically tied, the cheaper one is recommended.
    """
    import numpy as np

    from nocta.model.explaining import explain
    from nocta.model.inputs import remarks
    from nocta.model.persistence import load
    from nocta.tables.history_table import read_history

    fitted = load(model)
    table = read_history(history, fitted.schema_, fitted.catalog_)
    row = table.row_of(subject, f"'{history}'", "--subject")
    table.check_planned(row)
    slot = None if today is None else table.slot_of_today(row, today)
    now = int(table.time[row]) if slot is None else max(slot - 1, int(table.time[row]))
    table = replace(table, notes=(*table.notes, *remarks(fitted, table, row)))
    weight, origin = running.choose_cost_weight(fitted, cost_weight)
    known = table.history.subset(np.array([row]))
    catalog = fitted.catalog_.constrained(constraint)
    why = explain(fitted, known, weight, time=now, remaining=budget, catalog=catalog)
    shown = Shown(fitted, table, row, now, slot)
    if as_json:
        _print_json(shown, why, budget)
        return
    say_notes(table.notes)
    _print(shown, why, origin, budget)


@dataclass(frozen=True)
class Shown:
    """The model, the subject and the visit that an answer is about."""

    model: NOCTA
    table: HistoryTable
    row: int
    now: int
    today: int | None  # the slot of a visit that happens today

    def slot(self, slot: int) -> str:
        """A visit in words: its number, and when it is."""
        catalog, calendar = self.model.catalog_, self.table.calendar
        name = f"{slot + 1} of {catalog.n_times}"
        times = getattr(self.model, "record_", {}).get("slot_times") or calendar.schema.grid
        if not times:
            return name
        time, day = calendar.named(times[slot]), calendar.date_of(self.row, slot)
        return f"{name} ({time})" if day is None else f"{name}, around {day} ({time})"


# -- output ---------------------------------------------------------------------------------


def _print_json(shown: Shown, why: Explanation, budget: float | None) -> None:
    import json

    from nocta.model.wording import Words, reasons

    model, table = shown.model, shown.table
    days = [table.calendar.date_of(shown.row, t) for t in range(model.catalog_.n_times)]
    explanation = why.to_dict()
    content = {
        "subject": str(table.subjects[shown.row]),
        "now": shown.now,
        "today": shown.today,
        **explanation.pop("recommendation"),
        "explanation": {**explanation, "reasons": reasons(why, Words.of(model))},
        "budget": budget,
        "currency": model.catalog_.currency,
        "classes": list(model.classes_),
        "slot_times": model.record_.get("slot_times"),
        "time_unit": model.record_.get("time_unit"),
        "slot_dates": [str(day) for day in days if day is not None] or None,
        "notes": list(table.notes),
    }
    typer.echo(json.dumps(content, indent=2))


def _print(shown: Shown, why: Explanation, origin: str, budget: float | None) -> None:
    from nocta.model.wording import Words, reasons

    found, model, now = why.recommendation, shown.model, shown.now
    currency = model.catalog_.currency
    seen = "before the first visit" if now < 0 else f"at visit {shown.slot(now)}"
    if shown.today is not None:
        seen = f"today at visit {shown.slot(shown.today)}"
    console = Console(highlight=False)
    console.print(f"[bold]{escape(str(shown.table.subjects[shown.row]))}[/bold], {escape(seen)}")
    console.print(f"Prediction: {_prediction(model, found.prediction)}")
    if found.stop:
        console.print(
            f"[bold]Next: acquire nothing more[/bold] ({escape(_why(model, found, budget))})."
        )
    else:
        assert found.time is not None
        console.print(
            f"[bold]Next: {escape(_listed(found.features))}[/bold] at "
            + escape(f"visit {shown.slot(found.time)}, for {money(found.cost, currency)}.")
        )
    for reason in reasons(why, Words.of(model)):
        console.print(escape(f"- {reason}"))
    if now < model.catalog_.n_times - 1:
        named = _named_plans(found)
        console.print(_worth(model, named))
        if any(plan.visits for plan in named.values()):
            console.print(_visits(shown, named))
        console.print(_legend(model), style="dim")
    console.print(f"Cost weight {found.cost_weight:.4g}, {origin}.", style="dim")


def _why(model: NOCTA, found: Recommendation, budget: float | None) -> str:
    """Why nothing more is acquired."""
    if found.stop_reason == "last visit":
        return "this was the last visit"
    if found.stop_reason == "nothing left":
        return "nothing is left to acquire"
    currency = model.catalog_.currency
    limit = "" if budget is None else f" within the budget of {money(budget, currency)}"
    if found.stop_reason == "budget":
        assert found.cheapest is not None
        return f"nothing is affordable{limit}; the cheapest costs {money(found.cheapest, currency)}"
    return f"no plan{limit} is expected to be worth its cost"


def _named_plans(found: Recommendation) -> dict[str, PlanSummary]:
    """The plans to show side by side, the best first."""
    named = {"best": found.stopping}
    if not found.stop:
        named = {"best": found.plan, "without it": found.stopping}
    if found.runner_up is not None and found.runner_up.visits:
        named["runner-up"] = found.runner_up
    return named


def _worth(model: NOCTA, named: dict[str, PlanSummary]) -> Table:
    """Cost, expected loss and objective of each plan."""
    currency = model.catalog_.currency
    table = make_table("", "price", "expected charge", "expected loss", "objective", n_text=1)
    for name, summary in named.items():
        table.add_row(
            name,
            money(summary.cost, currency),
            money(summary.expected_charge, currency),
            f"{summary.expected_loss:.3f}",
            f"{summary.objective:.3f}",
        )
    return table


def _visits(shown: Shown, named: dict[str, PlanSummary]) -> Table:
    """The visits of each plan, in a table of their own because feature lists are wide."""
    table = make_table("", "visit", n_text=2)
    table.add_column("acquires")
    for name, summary in named.items():
        lines = [(shown.slot(t), _listed(f)) for t, f in summary.visits.items()]
        for i, (when, features) in enumerate(lines or [("", "nothing more")]):
            table.add_row("" if i else name, escape(when), escape(features))
    return table


def _listed(names: Sequence[str]) -> str:
    """Names separated by commas, or by semicolons if a name contains a comma.

    Example:
        >>> _listed(["sodium", "potassium"]), _listed(["sodium, serum", "potassium"])
        ('sodium, potassium', 'sodium, serum; potassium')
    """
    return ("; " if any("," in name for name in names) else ", ").join(names)


def _legend(model: NOCTA) -> str:
    """How to read the tables."""
    options: Any = getattr(model.planner_, "options", None)
    kind = {"error": "expected number of wrong predictions"}.get(
        getattr(options, "loss", ""), "expected cross-entropy"
    )
    over = "mean" if getattr(options, "loss_reduction", "sum") == "mean" else "sum"
    return (
        f"Loss: {kind}, {over} over the visits to come. Only the first visit of a plan is carried "
        "out; then the rest is planned again. Unavailable features are not charged, so the "
        "expected charge can be below the price. Objective = expected loss + cost weight x "
        "expected charge."
    )


def _prediction(model: NOCTA, probabilities: list[float]) -> str:
    pairs = zip(model.classes_, probabilities, strict=True)
    return escape(", ".join(f"{name} {p:.0%}" for name, p in pairs))
