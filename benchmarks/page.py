"""From measurements to tables, a figure of growth, and the page of the docs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from large import Kind, growth
from make_large import draw_cohort
from nocta.plots.style import COLUMN, PAGE, house_style
from nocta.predictors.training import TrainingConfig
from targets import ESTIMATORS, Results, Table, choices, digits, rows, same_choices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    ("default amortized", "M"): "1: subsets are proposed where there are many features",
}
_MARKS = {"contrastive": ("#D55E00", "o"), "amortized": ("#0072B2", "s")}
_DEFAULT_MARK = ("#009E73", "^")
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
#: Bytes per subject in the process that hands out parts: hashes of the identifiers as read, a
#: sorted copy of them, and which of them are equal.
_SURVEY_BYTES = 8 + 8 + 1


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> Lines:
    """A table as lines of Markdown; nothing where it has no body."""
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


# -- tables ------------------------------------------------------------------------------------


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
        for name, one in _compared(results)
    ]
    costs = ("paper preset", "cost weight", "subjects", "cost", "decisions a subject", "alike")
    times = ("reference, ms a subject", "library, ms a subject", "ratio")
    return markdown((*costs, *times), body)


def _compared(results: Results) -> list[tuple[str, dict[str, Any]]]:
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


# -- figure ------------------------------------------------------------------------------------


def growth_figure(curves: Sequence[dict[str, Any]]) -> Figure:
    """Time above, memory below; one column per size that grows, both axes logarithmic."""
    from matplotlib.figure import Figure

    letters = list(dict.fromkeys(curve["what"] for curve in curves))
    with house_style():
        figure = Figure(figsize=(PAGE, 1.05 * COLUMN), layout="constrained")
        grid = figure.subplots(2, len(letters), sharey="row", squeeze=False)
        for column, letter in enumerate(letters):
            for curve in (c for c in curves if c["what"] == letter):
                _draw(grid[:, column], curve)
            grid[0, column].set_title(f"${letter}$" if letter != "|O|" else r"$|\mathcal{O}|$")
        grid[0, 0].set_ylabel("ms per decision")
        grid[1, 0].set_ylabel("MiB above rest")
        handles = {line.get_label(): line for axes in grid[0] for line in axes.get_lines()}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    return figure


def _draw(axes: Any, curve: dict[str, Any]) -> None:
    color, marker = _MARKS.get(curve["estimator"], _DEFAULT_MARK)
    sizes = [point["size"] for point in curve["points"]]
    label = curve["estimator"]
    label = label if label.startswith("default") else f"paper {label}"
    times = [1e3 * point["cpu_seconds"] for point in curve["points"]]
    memory = [point["peak_mb"] or np.nan for point in curve["points"]]
    for place, values in zip(axes, (times, memory), strict=True):
        place.plot(sizes, values, color=color, marker=marker, label=label)
        place.set_xscale("log", base=2)
        place.set_yscale("log")
        place.set_xticks(sizes, [str(s) for s in sizes], rotation=45)
        place.minorticks_off()


# -- page --------------------------------------------------------------------------------------


def write_page(results: Results, large: Table, page: Path) -> None:
    """The scaling page of the docs, from what has been measured so far."""
    lines = [
        "# What grows with what",
        "",
        "Written by `make bench` from the files in `results/bench/`; do not edit it. "
        f"{_made(results)} Times are of processor time on one thread, since a shared machine's "
        "clock says little; ratios against the reference are of two runs in the same process.",
        "",
        *_short(results),
        *_other_code(results),
        *_section("Targets", target_lines(results, large), after=_ras(results)),
        *_section("Against the reference", reference_lines(results), after=_reference(results)),
        *_section("Decisions", decision_lines(results), after=[_TEXTS["decisions"]]),
        *_section("Growth of a decision", growth_lines(results), after=[_FIGURE, "", _GROWTH]),
        *_section("Threads or processes", thread_lines(results), before=[_TEXTS["threads"]]),
        *_section("Every method", method_lines(results), before=_methods_head(results)),
        *_section("The bank of retrieval", bank_lines(results), before=_bank_head(results)),
        *_section("Large cohorts", large_lines(large), [_TEXTS["large"]], _extrapolated(large)),
    ]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _section(
    title: str, table: Lines, before: Sequence[str] = (), after: Sequence[str] = ()
) -> Lines:
    """A title, a paragraph, a table, paragraphs; nothing where the table is empty."""
    if not table:
        return []
    blocks = [[f"## {title}"], before, table, after]
    return [line for block in blocks if block for line in (*block, "")]


def _made(results: Results) -> str:
    """With what the parts were measured; which, where they differ."""
    made: dict[str, list[str]] = {}
    for name, part in results.items():
        about = part["about"]
        text = (
            f"torch {about['versions']['torch']} and numpy {about['versions']['numpy']} on "
            f"{about['cores']} cores ({about['machine']}, {about['vector']})"
        )
        made.setdefault(text, []).append(name)
    if not made:
        return "Nothing has been measured yet."
    if len(made) == 1:
        return f"Measured with {next(iter(made))}."
    parts = "; ".join(f"{_named(names)} with {text}" for text, names in made.items())
    return f"Measured: {parts}."


def _named(parts: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in parts)


def _short(results: Results) -> Lines:
    parts = [name for name, part in results.items() if part["sizes"] != "full"]
    if not parts:
        return []
    text = (
        f"Of these parts only the short version has been run so far: {_named(parts)}. There "
        "networks are trained for an instant and fewer subjects are followed, so fewer share "
        "their work and ratios need not be those of a whole cohort."
    )
    return [text, ""]


def _other_code(results: Results) -> Lines:
    abouts = {name: part["about"] for name, part in results.items()}
    newest = max(abouts.values(), key=lambda about: about["measured"], default=None)
    parts = [n for n, about in abouts.items() if newest and about["source"] != newest["source"]]
    if not parts:
        return []
    return [f"Measured with an earlier state of the package than the others: {_named(parts)}.", ""]


_FIGURE = "![Time and memory of a decision](../../results/bench/growth.svg)"
_GROWTH = (
    "`n` training subjects, `L` slots, `M` features, `|O|` candidate plans, `K` voters; exponents "
    "with their standard errors, fitted to the sizes named, quickest of three runs each. "
    "The paper gives `O(n M L² |O|)` for NOCT-Contrastive; here `n` and `|O|` add up instead of "
    "multiplying, since only the bank depends on `n` and only the `K` voters are carried along "
    "the plans. The `default` preset grows plans slot by slot, so it has no `|O|`."
)
_TEXTS = {
    "decisions": "A *new* mask is one of which retrieval has seen nothing yet, as after a start; "
    "a *seen* one has been met before. The network looks nothing up, so it does not matter to it. "
    "Before the first visit hardly anything tells subjects apart, so retrieval lets 512 of them "
    "vote, later 24: that first decision is by far its dearest. It is the same for everybody of "
    "whom the same is known, so a service can keep it.",
    "threads": "One roll-out on two cores; processes share the subjects out. The clock counts "
    "whatever else the machine does, processor time does not.",
    "large": "Ten visits of eight features, from Parquet parts (`make bench-large`). The roll-out "
    "follows the 15 % kept for testing through all their visits. *Own* memory "
    "is what belongs to no mapped file; the system can drop the rest at any time.",
}


def _ras(results: Results) -> Lines:
    if "default" not in results:
        return []
    return [
        "The time of RAS is that of its authors' released code, which was run once apart from "
        "this benchmark; beside ours it says how near, and is no ratio of one run."
    ]


def _reference(results: Results) -> Lines:
    points = [point for _, point in _compared(results)]
    if not points:
        return []
    alike = choices(points)
    same = "makes the same choices" if all(map(same_choices, points)) else "does not always agree"
    return [
        "The reference (`benchmarks/reference.py`) is Algorithm 1 as it reads, batched over "
        "training subjects and plans. With the same networks, candidates and seeds the library "
        f"{same} ({alike}); the lower ratio decides. Where it is quicker it shares: equal "
        "histories are planned for once, plans share their beginnings (a node of the tree of "
        "plans is scored once), equal masks share the bank's points, masks that begin alike share "
        "their beginnings, and the first layer of all plans and voters is one matrix product."
    ]


def _methods_head(results: Results) -> Lines:
    if "methods" not in results:
        return []
    n = results["methods"]["subjects"]
    return [
        f"The synthetic task with {n[0]} training, {n[1]} validation and {n[2]} test subjects, one "
        "operating point. All methods and the predictor take the shorter schedule of a rehearsal: "
        "compare fits with each other, not with those of a comparison."
    ]


def _bank_head(results: Results) -> Lines:
    if "bank" not in results:
        return []
    part = results["bank"]
    return [
        f"NOCT-Contrastive of the `default` preset, {part['train']} training subjects of which "
        f"the bank keeps all or some, {part['test']} test subjects; only the bank differs. "
        "Differences are paired by subject, with bootstrap standard errors."
    ]


def _extrapolated(large: Table) -> Lines:
    """Exponents by kind, and on paper a billion visits."""
    lines = [
        f"- {one.where}: time ~ n^{one.exponents['cpu_seconds']:.2f}, own memory ~ "
        f"n^{one.exponents['anonymous_mb']:.2f}."
        for one in growth(large)
        if one.kind.step != "make"
    ]
    scored = [row for row in large if row["step"] == "score"]
    if not scored:
        return lines
    last = max(scored, key=lambda row: (int(row["subjects"]), -int(row["jobs"])))
    per_subject = float(last["cpu_seconds"]) / int(last["subjects"])
    hours, stored = 1e8 * per_subject / 3600, _stored_bytes()
    return [
        *([*lines, ""] if lines else []),
        "### On paper: a billion visits",
        "",
        "A hundred million subjects of ten visits. Subjects are decided for apart from each other, "
        f"so scoring takes {1e3 * per_subject:.2g} ms of one core each (as for "
        f"{int(last['subjects']):,} subjects: {Kind.of(last)}), {hours:,.0f} hours of one core in "
        f"all: {60 * hours / 64:,.0f} minutes on 64 cores, {60 * hours / 1024:,.1f} on 1024 with "
        "`--dask`, and on top of it what one process does alone. That one reads every identifier "
        "before the first part is scored, hashes every part and writes every result; more "
        f"cores do not shorten it, and it needs about {_SURVEY_BYTES} bytes per subject "
        f"({_SURVEY_BYTES / 10:.1f} GB here) to see that nobody is in two parts. The others need "
        "the memory of one part.",
        "",
        f"A fit looks at {TrainingConfig().most_per_epoch:,} subjects per epoch however many there "
        f"are; what still grows is reading them all into scratch files: {stored:.0f} bytes per "
        "subject (values, labels, visits and context as arrays), and as much again while the split "
        f"is made, {2 * stored / 10:.0f} GB here. Fitting on a sample of the parts spares that.",
    ]


def _stored_bytes() -> float:
    """What a fit keeps of one subject of the large cohorts on disk."""
    cohort = draw_cohort(20)
    arrays = (cohort.values, cohort.labels, cohort.visits, cohort.context)
    return sum(array.nbytes for array in arrays) / len(cohort)
