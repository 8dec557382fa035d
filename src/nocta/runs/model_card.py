"""The card of a saved model: its data, its validation results, its intended use and limits."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from nocta.core.catalog import Catalog
from nocta.core.currency import money
from nocta.methods.nocta import estimator_of, model_of
from nocta.methods.saving import SavedMethod
from nocta.model.nocta import NOCTA
from nocta.runs.point_text import default_sentence, point_table

_WHAT = {
    "amortized": "NOCT-Amortized: a network predicts what a plan will save.",
    "contrastive": "NOCT-Contrastive: similar training subjects vote on a plan.",
    "ensemble": "NOCT-Amortized and NOCT-Contrastive, mixed on validation.",
}
_METHOD_PRIVACY = (
    "Privacy: methods of this package save plans, network weights and scales, no subject's data; "
    "for others, their package decides."
)


def model_card(saved: SavedMethod) -> str:
    """Markdown, from what `nocta.runs.fit_run` recorded with the model."""
    record, catalog = saved.record_, saved.catalog_
    request = record["request"]
    source = request["source"]
    model = model_of(saved.method)
    title = "A model" if model else f"`{saved.name}`"
    serves = " One fit serves every cost weight and every budget." if model else ""
    parts = [
        f"# {title} for {record['dataset']}",
        f"{_what(saved)} Preset `{saved.preset}`. It says which features to acquire next, and "
        f"when, and predicts the class ({', '.join(saved.classes_)}) at every visit.{serves}",
        "A quick run (`--quick`): too little data and training to be of use." * request["quick"],
        _shares(model) if model else "",
        "## Data",
        _list(
            f"`{source['data']}`{_how_read(source)} (SHA-256 of its contents "
            f"`{request['data_hash'][:16]}…`)",
            f"{record['n_train']} subjects to learn from, {record['n_val']} to choose on, "
            f"{record['n_test']} kept aside and never used",
            _how_split(source, request["seed"]),
            f"{catalog.n_times} visit slots{_slots(record)}",
            f"free context: {', '.join(catalog.context) or 'none'}",
        ),
        "## Costs",
        _costs(catalog),
        "## On validation",
        _validation(saved),
        "Intervals of the AP are 95 %, by bootstrap over subjects. These subjects "
        "also decided when training stopped and which static schedule is best, so the numbers "
        "are somewhat optimistic; `nocta evaluate` measures on the subjects kept aside.",
        "## Intended use and limits",
        _list(
            "For subjects like those it was fitted on, seen at the same visits, at these prices. "
            "It does not know which acquisitions may do harm, nor anything outside its data.",
            "To support decisions that a person makes. It is not a medical device.",
            "Probabilities are calibrated on validation as a whole, not for each kind of subject: "
            "check those you care about.",
            "If a feature was recorded mostly for some subjects, such as those already ill, the "
            "model learns past habits of care as if they were biology.",
            _privacy(model) if model else _METHOD_PRIVACY,
        ),
        "## Made with",
        f"Seed {request['seed']}; versions and hashes in `manifest.json`, the course of training "
        f"in `log.json`.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _what(saved: SavedMethod) -> str:
    """What it is, in one sentence."""
    estimator = estimator_of(type(saved.method))
    if estimator is not None:
        return _WHAT.get(estimator, f"NOCTA with the installed estimator `{estimator}`.")
    return (inspect.getdoc(saved.method) or "").split("\n\n")[0].replace("\n", " ")


def _shares(model: NOCTA) -> str:
    """How plans are judged if there are few subjects; otherwise empty."""
    if getattr(model.planner_, "population", None) is None:
        return ""
    own = model.planner_.individual_share  # type: ignore[attr-defined]
    said = "There are few subjects: when plans are compared, what is known of the subject counts "
    said += f"{own:.0%} and the mean over all training subjects {1 - own:.0%}."
    return said if own else said + " So all subjects with the same acquisitions get the same plan."


def _privacy(model: NOCTA) -> str:
    counted = getattr(model.planner_, "population", None) is not None
    if model.estimator not in _WHAT:
        return "Privacy: the package of the estimator decides what the folder holds of subjects."
    if model.estimator == "amortized" and not counted:
        return "Privacy: the folder holds network weights and scales, no subject's data."
    why = "plans are averaged over" if counted else "retrieval needs"
    return (
        f"Privacy: {why} the training subjects, so the folder holds their values, labels and "
        f"context, without their names. Guard it like the data."
    )


def _how_read(source: dict[str, Any]) -> str:
    options = source.get("data_options", {})
    return "".join(f", `{name}={value}`" for name, value in options.items())


def _how_split(source: dict[str, Any], seed: int) -> str:
    if source["split_column"] is not None:
        return f"split by the column `{source['split_column']}`"
    sizes = source["fractions"]
    shares = "" if sizes is None else f" into {', '.join(f'{size:g}' for size in sizes)}"
    return f"split by subject{shares} with seed {seed}"


def _slots(record: dict[str, Any]) -> str:
    times = record["slot_times"]
    if not times:
        return ""
    return f", at {', '.join(f'{time:g}' for time in times)} ({record['time_unit']})"


def _costs(catalog: Catalog) -> str:
    rows = []
    for m, feature in enumerate(catalog.features):
        prices = catalog.costs[catalog.open_slots[:, m], m]
        low, high = prices.min(), prices.max()
        price = money(low, catalog.currency)
        if high > low:
            price += f" to {money(high, catalog.currency)}"
        visits = "all" if feature.at is None else ", ".join(str(t) for t in feature.at)
        rows.append((feature.name, ", ".join(feature.columns), price, feature.group or "", visits))
    table = _table(("feature", "columns", "cost", "group", "visits"), rows)
    fees = [f"{g}: {money(fee, catalog.currency)}" for g, fee in catalog.group_fees.items()]
    if catalog.visit_fee:
        fees.append(f"every visit: {money(catalog.visit_fee, catalog.currency)}")
    return table + (f"\n\nFees per visit: {'; '.join(fees)}." if fees else "")


def _validation(saved: SavedMethod) -> str:
    record, currency, default = saved.record_, saved.catalog_.currency, saved.default_point
    knob = "cost weight" if saved.method.has_cost_weight else "setting"
    head = (knob, "mean cost", "accuracy", "AP", "ROC AUC", "cross-entropy")
    # An asterisk alone would start a list in Markdown.
    rows = [
        (f"**{name[2:]}** (default)" if name.startswith("* ") else name, *rest)
        for name, *rest in point_table(record, currency, default.setting)
    ]
    said = default_sentence(default.setting, default.reason, record, currency)
    return f"{_table(head, rows)}\n\n{said}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(*lines: str) -> str:
    return "\n".join(f"- {line}" for line in lines)
