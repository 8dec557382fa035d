"""The scaling page of the docs: the tables, and what there is to say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from large import Kind, growth
from make_large import draw_cohort
from nocta.predictors.training import TrainingConfig
from tables import (
    Lines,
    bank_lines,
    compared,
    decision_lines,
    growth_lines,
    large_lines,
    method_lines,
    reference_lines,
    target_lines,
    thread_lines,
)
from targets import Results, Table, choices, same_choices

#: Bytes per subject in the process that hands out parts: hashes of the identifiers as read, a
#: sorted copy of them, and which of them are equal.
_SURVEY_BYTES = 8 + 8 + 1


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
    """A title, a paragraph, a table, paragraphs; nothing if the table is empty."""
    if not table:
        return []
    blocks = [[f"## {title}"], before, table, after]
    return [line for block in blocks if block for line in (*block, "")]


def _made(results: Results) -> str:
    """What the parts were measured with; which parts, if they differ."""
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
    "vote, later 24: that first decision is by far its most expensive. It is the same for "
    "everybody of whom the same is known, so a service can keep it.",
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
        "this benchmark; beside ours it says how near, and is not a ratio of one run."
    ]


def _reference(results: Results) -> Lines:
    points = [point for _, point in compared(results)]
    if not points:
        return []
    alike = choices(points)
    same = "makes the same choices" if all(map(same_choices, points)) else "does not always agree"
    return [
        "The reference (`benchmarks/reference.py`) is Algorithm 1 as it reads, batched over "
        "training subjects and plans. With the same networks, candidates and seeds the library "
        f"{same} ({alike}); the lower ratio decides. It is quicker because it shares: equal "
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
        "operating point. All methods and the predictor take the shorter schedule of a quick run: "
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
