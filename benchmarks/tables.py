"""The tables of the benchmarks as lines of Markdown, for the terminal and for the page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from targets import ESTIMATORS, Results, Table, digits, rows

Lines = list[str]
#: What an exponent should be on paper, and why, by estimator and letter.
ON_PAPER = {
    ("contrastive", "n"): "1: the bank is seen through every new mask",
    ("contrastive", "L"): "2: slots times later slots of a plan",
    ("contrastive", "M"): "1 at most",
    ("contrastive", "|O|"): "1 at most: plans share their beginnings",
    ("contrastive", "K"): "1 at most: the bank does not depend on it",
    ("amortized", "L"): "1",
    ("amortized", "M"): "1",
    ("amortized", "|O|"): "1",
    ("default amortized", "L"): "1: one step per later slot",
    ("default amortized", "M"): "1: subsets are proposed if there are many features",
}
#: Columns of large.csv, and what the page calls them.
LARGE_COLUMNS = {
    "step": "step",
    "options": "options",
    "jobs": "processes",
    "cpu_seconds": "processor s",
    "seconds": "wall s",
    "peak_mb": "peak MiB",
    "anonymous_mb": "own MiB",
}


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> Lines:
    """A table as lines of Markdown; nothing if it has no body."""
    if not body:
        return []
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(line)} |" for line in body]


def read_large(file: Path) -> list[dict[str, str]]:
    """The table of large cohorts, if there is one."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def print_table(results: Results, large: Table, out: TextIO) -> None:
    """Every table, for the terminal."""
    tables = (
        target_lines(results, large),
        reference_lines(results),
        decision_lines(results),
        growth_lines(results),
        thread_lines(results),
        method_lines(results),
        bank_lines(results),
        large_lines(large),
    )
    for lines in filter(None, tables):
        print("\n".join(lines), end="\n\n", file=out)


def target_lines(results: Results, large: Table) -> Lines:
    """The table of targets."""
    verdicts = {None: "", True: "met", False: "missed"}
    body = [(r.what, r.measured, r.target, verdicts[r.met]) for r in rows(results, large)]
    return markdown(("what", "measured", "target", ""), body)


def reference_lines(results: Results) -> Lines:
    """Every run against the reference."""
    body = [
        (
            name,
            f"{one['cost_weight']:.3g}",
            f"{one['subjects']}",
            f"{one['cost']:.2f}",
            f"{one['decisions_per_subject']:.1f}",
            f"{one['subjects_alike']}",
            f"{1e3 * one['reference']['cpu_seconds'] / one['subjects']:.3g}",
            f"{1e3 * one['fast']['cpu_seconds'] / one['subjects']:.3g}",
            f"{one['ratio']:.1f}x",
        )
        for name, one in compared(results)
    ]
    costs = ("paper preset", "cost weight", "subjects", "cost", "decisions a subject", "alike")
    times = ("reference, ms a subject", "library, ms a subject", "ratio")
    return markdown((*costs, *times), body)


def compared(results: Results) -> list[tuple[str, dict[str, Any]]]:
    part = results.get("reference", {})
    return [(name, p) for name in ESTIMATORS if name in part for p in part[name]["points"]]


def decision_lines(results: Results) -> Lines:
    """Milliseconds of a decision and decisions a second, for a cohort and for one subject."""
    body = []
    for name in ESTIMATORS if "default" in results else ():
        for one in results["default"][name]["points"]:
            use = f"cohort of {one['subjects']}, cost {one['cost']:.1f}"
            body.append((name, use, *_rate(1e3 / one["decisions_per_second"])))
    for one in results.get("decide", {}).get("calls", []):
        slot = "before the first visit" if one["now"] < 0 else f"after slot {one['now']}"
        use = f"one subject {slot}, {one['mask']} mask"
        body.append((one["estimator"], use, *_rate(one["mean_ms"])))
    return markdown(("default preset", "use", "ms a decision", "decisions a second"), body)


def _rate(ms: float) -> tuple[str, str]:
    return digits(ms), f"{1e3 / ms:,.0f}"


def growth_lines(results: Results) -> Lines:
    """Fitted exponents beside what they should be."""
    body = []
    for curve in results.get("growth", {}).get("curves", []):
        name, what = curve["estimator"], curve["what"].replace("|", "\\|")
        sizes = f"{curve['fitted_from']} to {curve['points'][-1]['size']}"
        powers = _power(curve, "time"), _power(curve, "memory")
        body.append((name, what, sizes, *powers, ON_PAPER[name, curve["what"]]))
    return markdown(("estimator", "grows", "from, to", "time", "memory", "on paper"), body)


def _power(curve: dict[str, Any], name: str) -> str:
    power, error = (curve.get(f"{name}_{field}") for field in ("exponent", "error"))
    if power is None:
        return "-"
    return f"{power:.2f}" if error is None else f"{power:.2f} ± {error:.2f}"


def thread_lines(results: Results) -> Lines:
    """Two cores as processes, or as threads."""
    body = [
        (
            one["estimator"],
            f"{one['processes']}",
            f"{one['threads']}",
            f"{one['seconds']:.2f}",
            f"{one['cpu_seconds']:.2f}",
        )
        for one in results.get("threads", {}).get("rows", [])
    ]
    return markdown(("default preset", "processes", "threads each", "wall s", "processor s"), body)


def method_lines(results: Results) -> Lines:
    """Fit and roll-out of every method."""
    if "methods" not in results:
        return []
    part = results["methods"]
    body = [("the shared predictor", f"{part['predictor_cpu_seconds']:.1f}", "", "", "")]
    for name, one in part["methods"].items():
        whose = "the shared one, not counted" if one["shares_predictor"] else "its own, counted"
        fit, act = f"{one['fit_cpu_seconds']:.1f}", f"{one['ms_per_subject']:.2f}"
        body.append((name, fit, whose, act, f"{one['cost']:.1f}"))
    return markdown(("method", "fit, s", "predictor", "roll-out, ms a subject", "cost"), body)


def bank_lines(results: Results) -> Lines:
    """Quality and time of every bank."""
    searches = {"torch": "all distances", "faiss": "faiss `IndexFlatL2` (an exact scan)"}
    body = [
        (
            f"{one['bank']} {one['sampling']}, {searches[one['index']]}",
            f"{one['cost']:.2f}",
            f"{one['ap']:.3f}",
            f"{one['objective']:.3f}",
            f"{one['added']:+.3f} ± {one['added_error']:.3f}" if i else "the yardstick",
            f"{one['ms_per_subject']:.0f}",
        )
        for i, one in enumerate(results.get("bank", {}).get("rows", []))
    ]
    quality = ("cost", "AP", "loss plus weighted cost", "more than the whole bank")
    return markdown(("bank", *quality, "ms a subject"), body)


def large_lines(large: Table) -> Lines:
    """Large cohorts as measured."""
    body = [(f"{int(r['subjects']):,}", *(r.get(n, "") for n in LARGE_COLUMNS)) for r in large]
    return markdown(("subjects", *LARGE_COLUMNS.values()), body)
