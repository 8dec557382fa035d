"""From measurements to a table of ratios, a figure of growth, and the page of the docs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from measure import exponent
from nocta.plots.style import COLUMN, PAGE, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, dict[str, Any]]
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
#: A network that is hardly trained may stop at once; then there is nothing to time.
IDLE = "void: nobody is followed for more than two decisions"
LARGE_COLUMNS = ("step", "options", "jobs", "cpu_seconds", "seconds", "peak_mb", "anonymous_mb")


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool | None


def rows(results: Results) -> list[Row]:
    """Every target, and what was measured for it."""
    found: list[Row] = []
    if "reference" in results:
        found += [_ratio(name, results["reference"][name]) for name in ("contrastive", "amortized")]
    if "default" in results:
        found += [_served(name, results["default"]) for name in ("amortized", "contrastive")]
        found.append(_against_ras(results["default"]))
    if "decide" in results:
        found += _decided(results["decide"])
    if "rate" in results:
        for name, one in results["rate"]["scoring"].items():
            share = f"{one['of_product']:.1%} ({one['time_in_products']:.0%} of time in products)"
            found.append(Row(f"{name}: of the matrix-product rate", share, "", None))
    return found


def _ratio(name: str, one: dict[str, Any]) -> Row:
    if one["decisions"] <= 2 * one["subjects"]:
        return Row(f"paper {name} against the reference", IDLE, f"{one['target']:.0f}x", None)
    alike = f"{one['subjects_alike']} of {one['subjects']} subjects alike"
    if one["subjects_alike"] < one["subjects"]:
        alike += f", the others part at ties of {one['widest_tie']:.0e}"
    return Row(
        f"paper {name} against the reference",
        f"{one['ratio']:.1f}x ({alike})",
        f"{one['target']:.0f}x",
        one["ratio"] >= one["target"],
    )


def _served(name: str, part: dict[str, Any]) -> Row:
    ms, target = _followed(part[name]["points"]), part[name]["target_ms"]
    if not ms:
        return Row(f"default {name}: a trajectory", IDLE, f"{target:.0f} ms", None)
    measured = f"{min(ms):.2g} to {max(ms):.2g} ms"
    return Row(f"default {name}: a trajectory", measured, f"{target:.0f} ms", max(ms) <= target)


def _against_ras(part: dict[str, Any]) -> Row:
    what, found = (
        "default amortized against released RAS (7 to 18 ms)",
        _followed(part["amortized"]["points"]),
    )
    if not found:
        return Row(what, IDLE, "5x", None)
    low, high = (ms / max(found) for ms in part["released_ras_ms"])
    return Row(what, f"{low:.1f}x to {high:.1f}x", "5x", low >= 5)


def _followed(points: Sequence[dict[str, Any]]) -> list[float]:
    """Milliseconds where subjects were followed: stopping at once is no trajectory."""
    return [point["ms"] for point in points if point["decisions_per_subject"] > 2]


def _decided(part: dict[str, Any]) -> list[Row]:
    found = []
    for name in ("amortized", "contrastive"):
        ms = [call["median_ms"] for call in part["calls"] if call["estimator"] == name]
        target = part["target_ms"]
        measured = f"{min(ms):.2g} to {max(ms):.2g} ms"
        bound = name == "amortized"
        found.append(
            Row(
                f"default {name}: one decision of one subject",
                measured,
                f"{target:.0f} ms" if bound else "",
                max(ms) <= target if bound else None,
            )
        )
    return found


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(line)} |" for line in body]


def _verdict(met: bool | None) -> str:
    return "" if met is None else "met" if met else "missed"


def target_lines(results: Results) -> list[str]:
    """The table of targets."""
    body = [(r.what, r.measured, r.target, _verdict(r.met)) for r in rows(results)]
    return markdown(("what", "measured", "target", ""), body)


def print_table(results: Results, out: TextIO) -> None:
    """Targets, growth and methods, for the terminal."""
    sections = [target_lines(results), growth_lines(results), method_lines(results)]
    for lines in [*sections, bank_lines(results)]:
        if len(lines) > 2:
            print("\n".join(lines), end="\n\n", file=out)


def growth_lines(results: Results) -> list[str]:
    """Fitted exponents beside what they should be."""
    body = []
    for curve in results.get("growth", {}).get("curves", []):
        points = curve["points"]
        memory = f"{curve['memory_exponent']:.2f}" if "memory_exponent" in curve else "-"
        on_paper = ON_PAPER[curve["estimator"], curve["what"]]
        sizes = f"{points[0]['size']} to {points[-1]['size']}"
        name, what = curve["estimator"], curve["what"].replace("|", "\\|")
        body.append((name, what, sizes, f"{curve['time_exponent']:.2f}", memory, on_paper))
    return markdown(("estimator", "grows", "from, to", "time", "memory", "on paper"), body)


def method_lines(results: Results) -> list[str]:
    """Fit and roll-out of every method."""
    body = [
        (
            name,
            f"{one['fit_cpu_seconds']:.1f}",
            f"{one['ms_per_subject']:.2f}",
            f"{one['cost']:.1f}",
        )
        for name, one in results.get("methods", {}).get("methods", {}).items()
    ]
    return markdown(("method", "fit, s", "roll-out, ms a subject", "cost"), body)


def bank_lines(results: Results) -> list[str]:
    """Quality and time of every bank."""
    body = [
        (
            f"{one['bank']} {one['sampling']}, {one['index']}",
            f"{one['cost']:.2f}",
            f"{one['ap']:.3f}",
            f"{one['objective']:.3f}",
            f"{one['ms_per_subject']:.0f}",
        )
        for one in results.get("bank", {}).get("rows", [])
    ]
    return markdown(("bank", "cost", "AP", "loss plus weighted cost", "ms a subject"), body)


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


def write_page(results: Results, large: Path, page: Path) -> None:
    """The scaling page of the docs, from what has been measured so far."""
    some = next(iter(results.values()), None)
    made = "nothing yet" if some is None else _made(some)
    short = [name for name, part in results.items() if part.get("sizes") != "full"]
    lines = [
        "# What grows with what",
        "",
        "Written by `make bench` from the files in `results/bench/`; do not edit it. "
        f"Measured with {made}. Times are of processor time on one thread, since a shared "
        "machine's clock says little; every ratio is of two runs in the same process.",
        "",
        *_short(short),
        "## Targets",
        "",
        *target_lines(results),
        "",
        *_text("reference"),
        "## A decision",
        "",
        *growth_lines(results),
        "",
        "![Time and memory of a decision](../../results/bench/growth.svg)",
        "",
        *_text("growth"),
        "## Every method",
        "",
        *_methods_head(results),
        *method_lines(results),
        "",
        "## The bank of retrieval",
        "",
        *_bank_head(results),
        *bank_lines(results),
        "",
        *_large(large),
    ]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _short(parts: Sequence[str]) -> list[str]:
    if not parts:
        return []
    names = ", ".join(f"`{name}`" for name in parts)
    text = (
        f"Of these parts only the short version has been run so far: {names}. There networks are "
        "trained for an instant and fewer subjects are followed, so fewer share their work and "
        "ratios need not be those of a whole cohort."
    )
    return [text, ""]


def _made(part: dict[str, Any]) -> str:
    about = part["about"]
    return (
        f"torch {about['versions']['torch']} and numpy {about['versions']['numpy']} on "
        f"{about['cores']} cores ({about['machine']}, {about['vector']})"
    )


_TEXTS = {
    "reference": "The reference (`benchmarks/reference.py`) is Algorithm 1 as it reads, batched "
    "over training subjects and plans. It makes the same choices with the same networks, "
    "candidates and seeds. Where the library is quicker it shares: equal histories are planned "
    "for once, plans share their beginnings (a node of the tree of plans is scored once), equal "
    "masks share the bank's points, masks that begin alike share their beginnings, and the first "
    "layer of all plans and voters is one matrix product.",
    "growth": "`n` training subjects, `L` slots, `M` features, `|O|` candidate plans, `K` voters. "
    "The paper gives `O(n M L² |O|)` for NOCT-Contrastive; here `n` and `|O|` add up instead of "
    "multiplying, since only the bank depends on `n` and only the `K` voters are carried along "
    "the plans. The `default` preset grows plans slot by slot, so it has no `|O|`.",
}


def _text(name: str) -> list[str]:
    return [_TEXTS[name], ""]


def _methods_head(results: Results) -> list[str]:
    if "methods" not in results:
        return []
    n = results["methods"]["subjects"]
    text = (
        f"The synthetic task with {n[0]} training, {n[1]} validation and {n[2]} test subjects, "
        "one operating point; the baselines with their shorter schedule."
    )
    return [text, ""]


def _bank_head(results: Results) -> list[str]:
    if "bank" not in results:
        return []
    part = results["bank"]
    text = (
        f"NOCT-Contrastive of the `default` preset, {part['train']} training subjects of which "
        f"the bank keeps some, {part['test']} test subjects; only the bank differs."
    )
    return [text, ""]


def _large(file: Path) -> list[str]:
    """Large cohorts as measured, and on paper up to a billion visits."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    body = [
        (f"{int(r['subjects']):,}", *(r.get(name, "") for name in LARGE_COLUMNS)) for r in table
    ]
    head = (
        "subjects",
        "step",
        "options",
        "processes",
        "processor s",
        "wall s",
        "peak MiB",
        "own MiB",
    )
    return [
        "## Large cohorts",
        "",
        "Ten visits of eight features, from Parquet parts (`benchmarks/large.py`). *Own* memory "
        "is what belongs to no mapped file; the system can drop the rest at any time.",
        "",
        *markdown(head, body),
        "",
        *_extrapolated(table),
    ]


def _extrapolated(table: Sequence[dict[str, str]]) -> list[str]:
    lines = []
    per_subject: dict[str, float] = {}
    for step in ("fit", "score"):
        own = {int(r["subjects"]): r for r in table if r["step"] == step}
        if not own:
            continue
        sizes = sorted(own)
        per_subject[step] = float(own[sizes[-1]]["cpu_seconds"]) / sizes[-1]
        if len(sizes) > 1:
            seconds = [float(own[n]["cpu_seconds"]) for n in sizes]
            memory = [float(own[n]["anonymous_mb"]) for n in sizes]
            lines.append(
                f"- `nocta {step}`, {sizes[0]:,} to {sizes[-1]:,} subjects: time ~ "
                f"n^{exponent(sizes, seconds):.2f}, own memory ~ n^{exponent(sizes, memory):.2f}."
            )
    if "score" not in per_subject:
        return [*lines, ""]
    hours = 1e8 * per_subject["score"] / 3600
    return [
        *lines,
        "",
        "### On paper: a billion visits",
        "",
        "A hundred million subjects of ten visits. Decisions of different subjects have nothing "
        f"to do with each other, so scoring takes {1e3 * per_subject['score']:.2g} ms of one core "
        f"each, {hours:,.0f} hours of one core in all: {hours / 64:,.1f} hours on 64 cores, "
        f"{hours / 1024:,.1f} on 1024, with `--dask`. Memory stays that of one part per process. "
        "A fit looks at 50,000 subjects per epoch however many there are; what still grows is "
        "reading them once (about 420 bytes of scratch file per subject, 42 GB here), which is "
        "better spared by fitting on a sample of the parts.",
        "",
    ]
