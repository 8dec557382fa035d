"""`nocta plan`: the next acquisition for one subject, why, and the runner-up."""

from __future__ import annotations

from collections.abc import Sequence
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
from nocta.core.errors import DataError, did_you_mean

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
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what to acquire next for one subject, and why.

    Shows the best plan and the runner-up, with the cost and the expected loss of each. If the two
    are practically tied, the cheaper one is recommended.
    """
    import numpy as np

    from nocta.model.explaining import explain
    from nocta.model.persistence import load
    from nocta.tables.history_table import read_history

    fitted = load(model)
    table = read_history(history, fitted.schema_, fitted.catalog_)
    row = _find(table, subject, history)
    weight, origin = running.choose_cost_weight(fitted, cost_weight)
    known = table.history.subset(np.array([row]))
    why = explain(fitted, known, weight, time=int(table.time[row]), remaining=budget)
    if as_json:
        _print_json(fitted, why, table, row, budget)
        return
    say_notes(table.notes)
    _print(fitted, why, table, row, origin, budget)


def _find(table: HistoryTable, subject: str | None, path: Path) -> int:
    """The row of the subject to plan for."""
    from nocta.tables.problems import enumerate_some

    names = [str(name) for name in table.subjects]
    if subject is None and len(names) == 1:
        return 0
    if subject in names:
        return names.index(subject)
    if subject is None:
        raise DataError(
            f"'{path}' has {len(names)} subjects; choose one with --subject: "
            f"{enumerate_some(names, 8)}."
        )
    hint = did_you_mean(subject, names) or f" It has: {enumerate_some(names, 8)}."
    raise DataError(f"'{path}' has no subject '{subject}'.{hint}")


# -- output ---------------------------------------------------------------------------------


def _print_json(
    model: NOCTA, why: Explanation, table: HistoryTable, row: int, budget: float | None
) -> None:
    import json

    from nocta.model.wording import Words, reasons

    explanation = why.to_dict()
    content = {
        "subject": str(table.subjects[row]),
        "now": int(table.time[row]),
        **explanation.pop("recommendation"),
        "explanation": {**explanation, "reasons": reasons(why, Words.of(model))},
        "budget": budget,
        "currency": model.catalog_.currency,
        "classes": list(model.classes_),
        "slot_times": model.record_.get("slot_times"),
        "time_unit": model.record_.get("time_unit"),
        "notes": list(table.notes),
    }
    typer.echo(json.dumps(content, indent=2))


def _print(
    model: NOCTA,
    why: Explanation,
    table: HistoryTable,
    row: int,
    origin: str,
    budget: float | None,
) -> None:
    from nocta.model.wording import Words, reasons

    found = why.recommendation
    now, currency = int(table.time[row]), model.catalog_.currency
    seen = "before the first visit" if now < 0 else f"at visit {_slot(model, now)}"
    console = Console(highlight=False)
    console.print(f"[bold]{escape(str(table.subjects[row]))}[/bold], {escape(seen)}")
    console.print(f"Prediction: {_prediction(model, found.prediction)}")
    if found.stop:
        console.print(
            f"[bold]Next: acquire nothing more[/bold] ({escape(_why(model, found, budget))})."
        )
    else:
        assert found.time is not None
        console.print(
            f"[bold]Next: {escape(_listed(found.features))}[/bold] at "
            + escape(f"visit {_slot(model, found.time)}, for {money(found.cost, currency)}.")
        )
    for reason in reasons(why, Words.of(model)):
        console.print(escape(f"- {reason}"))
    if now < model.catalog_.n_times - 1:
        named = _named_plans(found)
        console.print(_worth(model, named))
        if any(plan.visits for plan in named.values()):
            console.print(_visits(model, named))
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


def _visits(model: NOCTA, named: dict[str, PlanSummary]) -> Table:
    """The visits of each plan, in a table of their own because feature lists are wide."""
    table = make_table("", "visit", n_text=2)
    table.add_column("acquires")
    for name, summary in named.items():
        lines = [(_slot(model, t), _listed(f)) for t, f in summary.visits.items()]
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


def _slot(model: NOCTA, slot: int) -> str:
    times = model.record_.get("slot_times") if hasattr(model, "record_") else None
    name = f"{slot + 1} of {model.catalog_.n_times}"
    return f"{name} ({times[slot]:g} {model.record_['time_unit']})" if times else name


def _prediction(model: NOCTA, probabilities: list[float]) -> str:
    pairs = zip(model.classes_, probabilities, strict=True)
    return escape(", ".join(f"{name} {p:.0%}" for name, p in pairs))
