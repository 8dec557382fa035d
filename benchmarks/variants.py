"""Is the `default` preset tuned to one task? Other tasks of the same kind, against their optimum.

    .venv/bin/python benchmarks/variants.py --out results/variants

Draws each variant from its finite task, fits NOCT-Amortized with the settings of the `default`
preset, and divides its test accuracy by the exact optimum at the same cost. One row per variant,
seed and operating point goes to `variants.csv` as it is measured, a summary to `variants.md`.
Run it again to continue.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from nocta import NOCTA, Catalog, Cohort, Feature
from nocta.exact import accuracy_at, optimal_frontier, synthetic_task
from nocta.exact.task import FiniteTask
from nocta.runs.versions import versions

COLUMNS = ("variant", "seed", "cost_weight", "cost", "accuracy", "optimum", "ratio", "fit_seconds")
FACTORS = (1.1, 0.95, 0.8, 0.65, 0.5, 0.4)


@dataclass(frozen=True)
class Variant:
    """A task and what is different about it."""

    name: str
    task: FiniteTask


def variants() -> list[Variant]:
    """Other digits, countdowns, horizons, costs, and features that tell nothing."""
    return [
        Variant("four digits", synthetic_task(n_digits=4, horizon=7)),
        Variant("two digits, four starts", synthetic_task(n_digits=2, n_starts=4, horizon=8)),
        Variant("six times", synthetic_task(horizon=6)),
        Variant("cheap counter", synthetic_task(horizon=8, costs=(1.0, 0.3))),
        Variant("a useless feature", synthetic_task(horizon=7, n_useless=1)),
    ]


def draw(task: FiniteTask, n_subjects: int, seed: int) -> Cohort:
    """A cohort drawn from the task."""
    values, labels = task.sample(n_subjects, np.random.default_rng(seed))
    prices = task.cost_table()
    features = tuple(
        Feature(name, (name,), tuple(prices[:, m])) for m, name in enumerate(task.feature_names)
    )
    return Cohort(
        values=values.astype(np.float32),
        labels=labels,
        visits=np.ones(labels.shape, dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=Catalog(features, task.horizon),
        classes=tuple(map(str, range(task.n_classes))),
    )


def measure(variant: Variant, seed: int, n_subjects: int) -> list[dict[str, object]]:
    """Fit once, roll out at every cost weight, divide by the optimum."""
    frontier = optimal_frontier(variant.task)
    train, val, test = draw(variant.task, n_subjects, seed).split((0.7, 0.15, 0.15), seed=seed)
    started = time.perf_counter()
    model = NOCTA("amortized", seed=seed).fit(train, val)
    seconds = time.perf_counter() - started
    rows = []
    for factor in FACTORS:
        weight = factor * model.planner_.cost_scale
        done = model.rollout(test, weight)
        accuracy = float((done.probabilities.argmax(-1) == test.labels).mean())
        best = float(accuracy_at(frontier, done.cost))
        found = (variant.name, seed, weight, done.cost, accuracy, best, accuracy / best, seconds)
        rows.append(dict(zip(COLUMNS, found, strict=True)))
    return rows


def summarize(table: Path, out: Path, n_subjects: int) -> None:
    """One line per variant."""
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [
        "# Other tasks, against their exact optimum",
        "",
        f"NOCT-Amortized, `default` preset, {n_subjects} subjects drawn per variant (70/15/15), "
        "test split. Ratio = accuracy / optimum at the same cost, over the operating points "
        "that acquire anything. Written by `benchmarks/variants.py`.",
        "",
        "| variant | seeds | points | costs | mean ratio | lowest ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(r["variant"] for r in rows):
        own = [r for r in rows if r["variant"] == name and float(r["cost"]) > 0]
        ratio = np.array([float(r["ratio"]) for r in own])
        cost = np.array([float(r["cost"]) for r in own])
        seeds = len({r["seed"] for r in own})
        lines.append(
            f"| {name} | {seeds} | {len(own)} | {cost.min():.1f} to {cost.max():.1f} "
            f"| {ratio.mean():.3f} | {ratio.min():.3f} |"
        )
    lines += ["", f"Versions: {versions()}"]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/variants"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--subjects", type=int, default=6000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / "variants.csv"
    done = set()
    if table.is_file():
        with table.open(encoding="utf-8") as file:
            done = {(r["variant"], int(r["seed"])) for r in csv.DictReader(file)}
    for seed in range(options.seeds):
        for variant in variants():
            if (variant.name, seed) in done:
                continue
            rows = measure(variant, seed, options.subjects)
            new = not table.is_file()
            with table.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerows(rows)
            ratios = [float(str(r["ratio"])) for r in rows]
            print(f"{variant.name}, seed {seed}: mean ratio {np.mean(ratios):.4f}", flush=True)
    summarize(table, options.out / "variants.md", options.subjects)


if __name__ == "__main__":
    main()
