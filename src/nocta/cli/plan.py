"""`nocta plan`: the next acquisition of one subject, why, and the runner-up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nocta.cli.data import say_remarks
from nocta.cli.model import ModelArgument, choose_cost_weight
from nocta.core.currency import money

if TYPE_CHECKING:
    from rich.table import Table

    from nocta.model.nocta import NOCTA
    from nocta.planning.explain import PlanSummary, Recommendation
    from nocta.tables.history_table import HistoryTable


def plan(
    model: ModelArgument,
    history: Annotated[
        Path,
        typer.Argument(
            metavar="HISTORY",
            help="CSV or Parquet with what is known: empty = not acquired, `unavailable` = asked "
            "for in vain.",
            show_default=False,
        ),
    ],
    cost_weight: Annotated[
        float | None,
        typer.Option(
            "--cost-weight",
            min=0.0,
            help="What one unit of cost is worth in loss; the middle one of the model by default.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", min=0.0, help="What may still be spent on the subject.", show_default=False
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject", help="Whose plan, where the file has several.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what to acquire next for one subject, what it is expected to bring, and the runner-up."""
    from nocta.model.persistence import load
    from nocta.tables.history_table import read_history

    fitted = load(model)
    table = read_history(history, fitted.schema_, fitted.catalog_)
    row = _find(table, subject, history)
    weight, origin = choose_cost_weight(fitted, cost_weight)
    found = fitted.decide(
        table.history.subset(_only(row)), weight, time=int(table.time[row]), remaining=budget
    )
    if as_json:
        _print_json(fitted, found, table, row, budget)
        return
    say_remarks(table.notes)
    _print(fitted, found, table, row, origin, budget)


def _only(row: int) -> Any:
    import numpy as np

    return np.array([row])


def _find(table: HistoryTable, subject: str | None, path: Path) -> int:
    """Which row of the histories is meant."""
    from nocta.core.errors import DataError, did_you_mean
    from nocta.tables.problems import enumerate_some

    names = [str(name) for name in table.subjects]
    if subject is None and len(names) == 1:
        return 0
    if subject in names:
        return names.index(subject)
    if subject is None:
        raise DataError(
            f"'{path}' has {len(names)} subjects; name one with --subject: "
            f"{enumerate_some(names, 8)}."
        )
    hint = did_you_mean(subject, names) or f" It has: {enumerate_some(names, 8)}."
    raise DataError(f"'{path}' has no subject '{subject}'.{hint}")


# -- output ---------------------------------------------------------------------------------


def _print_json(
    model: NOCTA, found: Recommendation, table: HistoryTable, row: int, budget: float | None
) -> None:
    import json

    content = {
        "subject": str(table.subjects[row]),
        "now": int(table.time[row]),
        **found.to_dict(),
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
    found: Recommendation,
    table: HistoryTable,
    row: int,
    origin: str,
    budget: float | None,
) -> None:
    from rich.console import Console

    now, currency = int(table.time[row]), model.catalog_.currency
    seen = "before the first visit" if now < 0 else f"at visit {_slot(model, now)}"
    console = Console(highlight=False)
    console.print(f"[bold]{_escaped(str(table.subjects[row]))}[/bold], {_escaped(seen)}")
    console.print(f"Prediction: {_prediction(model, found.prediction)}")
    if found.stop:
        console.print(
            f"[bold]Next: acquire nothing more[/bold] ({_escaped(_why(model, found, budget))})."
        )
    else:
        assert found.time is not None
        console.print(
            f"[bold]Next: {_escaped(_listed(found.features))}[/bold] at "
            + _escaped(f"visit {_slot(model, found.time)}, for {money(found.cost, currency)}.")
        )
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
        return "nothing is left that could be acquired"
    currency = model.catalog_.currency
    limit = "" if budget is None else f" within the budget of {money(budget, currency)}"
    if found.stop_reason == "budget":
        assert found.cheapest is not None
        return f"nothing is left{limit}; the cheapest costs {money(found.cheapest, currency)}"
    return f"no plan{limit} is expected to be worth its cost"


def _named_plans(found: Recommendation) -> dict[str, PlanSummary]:
    """The plans to set side by side, the best first."""
    named = {"best": found.stopping}
    if not found.stop:
        named = {"best": found.plan, "without it": found.stopping}
    if found.runner_up is not None and found.runner_up.visits:
        named["runner-up"] = found.runner_up
    return named


def _worth(model: NOCTA, named: dict[str, PlanSummary]) -> Table:
    """What the plans cost and what they are expected to bring."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    currency = model.catalog_.currency
    table = Table("", box=SIMPLE_HEAD)
    for name in ("price", "expected charge", "expected loss", "objective"):
        table.add_column(name, justify="right")
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
    """What the plans acquire when, in a table of its own: lists of features need the width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for name in ("", "visit"):
        table.add_column(name, no_wrap=True)
    table.add_column("acquires")
    for name, summary in named.items():
        lines = [(_slot(model, t), _listed(f)) for t, f in summary.visits.items()]
        for i, (when, features) in enumerate(lines or [("", "nothing more")]):
            table.add_row("" if i else name, _escaped(when), _escaped(features))
    return table


def _listed(names: Sequence[str]) -> str:
    """Names in a row, by semicolons where a name has a comma in it.

    Example:
        >>> _listed(["sodium", "potassium"]), _listed(["sodium, serum", "potassium"])
        ('sodium, potassium', 'sodium, serum; potassium')
    """
    return ("; " if any("," in name for name in names) else ", ").join(names)


def _legend(model: NOCTA) -> str:
    """How to read the tables."""
    options: Any = getattr(model.planner_, "options", None)
    kind = {"error": "expected number of wrong guesses"}.get(
        getattr(options, "loss", ""), "expected cross-entropy"
    )
    over = "mean" if getattr(options, "loss_reduction", "sum") == "mean" else "sum"
    return (
        f"Loss: {kind}, {over} over the visits to come. Only the first visit of a plan is carried "
        "out, then it is made anew. What turns out not to be available is not charged, so the "
        "expected charge is below the price; the objective is the expected loss plus the cost "
        "weight times the expected charge."
    )


def _slot(model: NOCTA, slot: int) -> str:
    times = model.record_.get("slot_times") if hasattr(model, "record_") else None
    name = f"{slot + 1} of {model.catalog_.n_times}"
    return f"{name} ({times[slot]:g} {model.record_['time_unit']})" if times else name


def _prediction(model: NOCTA, probabilities: list[float]) -> str:
    pairs = zip(model.classes_, probabilities, strict=True)
    return _escaped(", ".join(f"{name} {p:.0%}" for name, p in pairs))


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
