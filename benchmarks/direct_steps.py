"""What each step from a fixed schedule to NOCT-Direct brings, on every cohort that was measured.

    python benchmarks/direct_steps.py physionet2012 cmapss

Reads `results.csv` of finished comparisons below `results/direct`; nothing is trained. Writes
`steps.csv`, `steps.png` and the table in `docs/explanation/direct.md`: means over costs, the paired
difference to NOCT-Direct, and its p-value with the correction for overlapping splits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from nocta.report.paired import paired_p_value
from nocta.report.plots.style import COLUMN, house_style, method_style
from nocta.runs.results import read_results
from nocta.runs.summary import SIDE_BY_SIDE, cost_range, quality_per_seed

STEPS = ("static", "static+adapt", "asac", "nocta-direct")
OURS = "nocta-direct"
LABELS = {"ap": "AP", "roc_auc": "ROC AUC", "cross_entropy": "cross-entropy"}
PAGE = Path("docs/explanation/direct.md")
MARKS = ("<!-- steps: written by benchmarks/direct_steps.py -->\n", "<!-- end of steps -->")
#: Test subjects per training subject, by which splits of one cohort overlap.
OVERLAP = 0.15 / 0.70
#: Share of the costs where choices matter most.
LOW = 0.1


def steps_of(name: str, folder: Path) -> pd.DataFrame:
    """One row per method and measure."""
    results = read_results(folder / "results.csv")
    methods = [m for m in STEPS if m in set(results["method"])]
    seeds = set.intersection(*(set(results[results["method"] == m]["seed"]) for m in methods))
    results = results[results["seed"].isin(seeds)]
    whole = cost_range(results, methods)
    assert whole is not None
    rows = []
    for costs in (whole, (whole[0], whole[0] + LOW * (whole[1] - whole[0]))):
        for measure in SIDE_BY_SIDE:
            found = {m: quality_per_seed(results, m, measure, costs) for m in methods}
            for method in methods:
                gaps = [found[OURS][s] - found[method][s] for s in sorted(seeds)]
                p = np.nan if method == OURS else paired_p_value(gaps, OVERLAP)
                mean = float(np.mean(list(found[method].values())))
                lead = float(np.mean(gaps))
                rows.append((name, len(seeds), *costs, method, measure, mean, lead, p))
    columns = ["data", "seeds", "cost_low", "cost_high", "method", "measure", "mean", "lead", "p"]
    return pd.DataFrame(rows, columns=columns)


def as_table(steps: pd.DataFrame) -> str:
    """Markdown: a row per cohort and method, a column per measure."""
    head = ["data", "seeds", "costs", "method", *LABELS.values()]
    lines = [head, ["---"] * len(head)]
    for (name, _, method), rows in steps.groupby(["data", "cost_high", "method"], sort=False):
        first, cells = rows.iloc[0], []
        for measure in LABELS:
            row = rows[rows["measure"] == measure].iloc[0]
            cell = f"{row['mean']:.3f}"
            if method != OURS:
                cell += f" ({row['lead']:+.3f}, p = {row['p']:.2f})"
            cells.append(cell)
        costs = f"{first['cost_low']:.1f} to {first['cost_high']:.1f}"
        lines.append(
            [str(name), str(first["seeds"]), costs, method_style(str(method), 0).label, *cells]
        )
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        "Means over costs (all, and the lowest tenth), on test subjects. In brackets: NOCT-Direct "
        "less the method, paired over seeds, with the p-value corrected for overlapping splits."
        "\n\n"
        f"{text}\n"
    )


def draw(steps: pd.DataFrame, out: Path) -> None:
    """Cross-entropy of every step, one panel per cohort."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(steps["data"]))
    widest = steps["cost_high"] == steps.groupby("data")["cost_high"].transform("max")
    shown = steps[widest & (steps["measure"] == "cross_entropy")]
    with house_style():
        figure, axes = plt.subplots(
            1, len(names), figsize=(COLUMN * len(names), 2.2), squeeze=False, layout="constrained"
        )
        for axis, name in zip(axes[0], names, strict=True):
            rows = shown[shown["data"] == name]
            styles = [method_style(method, 0) for method in rows["method"]]
            labels = [style.label for style in styles]
            for position, (value, style) in enumerate(zip(rows["mean"], styles, strict=True)):
                axis.plot(value, position, style.marker, color=style.color, markersize=8)
            axis.set_yticks(range(len(labels)), labels)
            axis.margins(x=0.15, y=0.2)
            axis.locator_params(axis="x", nbins=4)
            axis.invert_yaxis()
            axis.set_title(name)
            axis.set_xlabel("cross-entropy (nats), lower is better")
        figure.savefig(out, dpi=160)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", nargs="+", help="Folders below --results.")
    parser.add_argument("--results", type=Path, default=Path("results/direct"))
    parser.add_argument("--out", type=Path, default=Path("results/direct"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    steps = pd.concat([steps_of(name, options.results / name) for name in options.data])
    steps.to_csv(options.out / "steps.csv", index=False, lineterminator="\n", float_format="%.6g")
    draw(steps, options.out / "steps.png")
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1], maxsplit=1)[1]
    PAGE.write_text(before + MARKS[0] + as_table(steps) + MARKS[1] + after, encoding="utf-8")
    print(as_table(steps))


if __name__ == "__main__":
    main()
