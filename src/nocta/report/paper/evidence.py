"""Results of a recipe: from comparisons that are run or continued, or read from a folder."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.errors import ConfigError, DataFileMissing
from nocta.exact.curve import ExactCurve
from nocta.exact.yardstick import Yardstick
from nocta.report.paper.recipes import Arm, Recipe
from nocta.report.published import PaperRow
from nocta.report.tables import data_arguments
from nocta.runs.compare import Comparison, compare
from nocta.runs.method_options import typed
from nocta.runs.optimum import known_yardstick
from nocta.runs.record import Job
from nocta.runs.results import read_results
from nocta.runs.setup import DataSource, Setup
from nocta.runs.store import JobStore
from nocta.runs.summary import side_by_side

if TYPE_CHECKING:
    import pandas as pd

#: Runs per method, as in the paper and in a quick run.
SEEDS, QUICK_SEEDS = 5, 2
#: Audited subjects in a quick run; an audit rolls each of them out many times.
QUICK_AUDITED = 4


@dataclass(frozen=True)
class Request:
    """What a user requests besides the name of a recipe.

    Args:
        out: Output folder; comparisons are kept in `runs/` inside it and continued.
        sources: Data to use instead of the recipe's own.
        folders: Folders of finished comparisons to read instead of running anything.
        preset: Preset to use instead of the recipe's own.
        n_seeds: Five by default, as in the paper.
        rules: `availability`, `results` and other fields of `Setup`.
    """

    out: Path
    sources: tuple[DataSource, ...] = ()
    folders: tuple[Path, ...] = ()
    preset: str | None = None
    n_seeds: int | None = None
    quick: bool = False
    rules: Mapping[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None
    dask: str | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        unused = [*self.options, *(["--quick"] if self.quick else [])]
        if self.folders and unused:
            have, these = "has" if len(unused) == 1 else "have", ", ".join(unused)
            raise ConfigError(
                f"--from only reads finished results, so {these} {have} no effect. "
                f"Remove {these} or --from."
            )

    @property
    def options(self) -> list[str]:
        """The given options that change what is run."""
        given = {
            "--data": self.sources,
            "--preset": self.preset,
            "--seeds": self.n_seeds,
            "--dask": self.dask,
        }
        return [*(option for option, value in given.items() if value), *self._changed_rules]

    @property
    def _changed_rules(self) -> dict[str, str]:
        usual = {f.name: f.default for f in fields(Setup)}
        return {f"--{n}": str(value) for n, value in self.rules.items() if value != usual[n]}

    @property
    def seeds(self) -> range:
        return range(self.n_seeds or (QUICK_SEEDS if self.quick else SEEDS))

    def command(self, recipe: Recipe) -> str:
        parts = ["nocta", "reproduce", recipe.name]
        for source in self.sources:
            parts += ["--data", source.data, *data_arguments(source)]
        for folder in self.folders:
            parts += ["--from", str(folder)]
        parts += ["--preset", self.preset] if self.preset else []
        for option, value in self._changed_rules.items():
            parts += [option, value]
        parts += ["--seeds", str(self.n_seeds)] if self.n_seeds else []
        parts += ["--quick"] if self.quick else []
        return shlex.join([*parts, "--out", str(self.out)])


@dataclass(frozen=True)
class Evidence:
    """Results of a recipe on one data set: rows of results.csv, and finished jobs if available."""

    setup: Setup
    arms: tuple[Arm, ...]
    results: pd.DataFrame
    comparison: Comparison | None = None

    @property
    def dataset(self) -> str:
        return str(self.results["dataset"].iloc[0])

    @property
    def present(self) -> list[Arm]:
        found = set(self.results["method"])
        return [arm for arm in self.arms if arm.label in found]

    @property
    def metrics(self) -> tuple[str, ...]:
        """As the paper reports: accuracy on the synthetic task, AP and ROC AUC on other data."""
        first = self.setup.source.headline
        return (first,) if first == "accuracy" else (first, "roc_auc")

    @property
    def shown(self) -> tuple[str, ...]:
        """What our own tables show: the paper's metrics and those that we show side by side."""
        return tuple(dict.fromkeys((*self.metrics, *side_by_side(self.metrics[0]))))

    def printed(self, recipe: Recipe) -> list[PaperRow]:
        """The recipe's rows of the paper on these data; none if the data are not as published."""
        source = self.setup.source
        return [row for row in recipe.rows if source.is_as_published and row.dataset == source.data]

    @cached_property
    def yardstick(self) -> Yardstick | None:
        return known_yardstick(self.setup.source)

    @property
    def optimum(self) -> ExactCurve | None:
        return None if self.yardstick is None else self.yardstick.optimum


def gather(recipe: Recipe, request: Request) -> list[Evidence]:
    """Results of a recipe, one entry per data set that is on this machine."""
    if request.folders:
        return _together([_read(folder, recipe) for folder in request.folders])
    sources = request.sources or tuple(DataSource(name) for name in recipe.data)
    found, missing = [], []
    for source in sources:
        try:
            source.load(0)
        except DataFileMissing as error:
            missing.append(error)
        else:
            found.append(_run(source, recipe, request))
    if missing and (request.sources or not found):
        raise missing[0]
    return found


def _run(source: DataSource, recipe: Recipe, request: Request) -> Evidence:
    setup = Setup(
        source=source,
        preset=request.preset or recipe.preset,  # type: ignore[arg-type]  # checked by Setup
        n_points=recipe.n_points,
        cost_weights=recipe.cost_weights.get(source.card.name, ()) if source.card else (),
        **request.rules,
    )
    if request.quick:
        setup = replace(setup.as_quick(), audit_subjects=min(setup.audit_subjects, QUICK_AUDITED))
    arms = recipe.arms(setup.preset)
    comparison = run_arms(setup, arms, request.out / "runs" / folder_name(setup), recipe, request)
    if not comparison.records:
        reasons = "; ".join(str(failure) for failure in comparison.failures[:3])
        raise ConfigError(f"No job of '{recipe.name}' finished on '{source.data}': {reasons}")
    return Evidence(setup, tuple(arms), comparison.results, comparison)


def run_arms(
    setup: Setup, arms: Sequence[Arm], directory: Path, recipe: Recipe, request: Request
) -> Comparison:
    """Run or continue a comparison of these methods; other jobs in the folder are left out."""
    jobs = [Job(arm.method, seed, arm.options, arm.label) for arm in arms for seed in request.seeds]
    found = compare(
        setup, jobs, directory, n_jobs=request.n_jobs, progress=request.progress, dask=request.dask
    )
    names = {job.name for job in jobs}
    records = [record for record in found.records if record.job.name in names]
    return replace(found, records=records, command=request.command(recipe))


def _read(folder: Path, recipe: Recipe) -> Evidence:
    """The results of a finished comparison that belong to a recipe."""
    results = read_results(folder / "results.csv")
    setup = read_setup(folder / "setup.json")
    arms = recipe.arms(setup.preset)
    # Show the folder's other methods beside the paper's in a comparison of methods.
    if not recipe.knobs and recipe.kind != "dynamics":
        asked = {arm.label for arm in arms}
        others = [name for name in dict.fromkeys(results["method"]) if name not in asked]
        arms += [Arm(name, {}, {}, name) for name in others]
    labels = {arm.label for arm in arms}
    kept = results[results["method"].isin(labels)]
    if kept.empty:
        there = ", ".join(dict.fromkeys(results["method"]))
        raise ConfigError(
            f"'{folder}' has no results that belong to '{recipe.name}'. It has: {there}. Expected: "
            f"{', '.join(arm.label for arm in arms)}."
        )
    records = [record for record in JobStore(folder).records() if record.job.label in labels]
    comparison = Comparison(folder, setup, records, []) if records else None
    return Evidence(setup, tuple(arms), kept.reset_index(drop=True), comparison)


def _together(found: Sequence[Evidence]) -> list[Evidence]:
    """Merge folders of the same data with the same settings and different methods."""
    merged: dict[str, Evidence] = {}
    for evidence in found:
        first = merged.get(evidence.dataset)
        merged[evidence.dataset] = evidence if first is None else _merge(first, evidence)
    return list(merged.values())


def _merge(first: Evidence, second: Evidence) -> Evidence:
    import pandas as pd

    name = first.dataset
    differences = first.setup.differences(second.setup.to_dict())
    if differences:
        raise ConfigError(
            f"Two of the folders have results on '{name}' with different settings: "
            f"{'; '.join(differences)}. Read them one at a time."
        )
    twice = sorted({*first.results["method"]} & {*second.results["method"]})
    if twice:
        raise ConfigError(
            f"Two of the folders on '{name}' both have results of {', '.join(twice)}. Read them "
            f"one at a time."
        )
    arms = list({arm.label: arm for arm in (*first.arms, *second.arms)}.values())
    results = pd.concat([first.results, second.results], ignore_index=True)
    comparison = None
    if first.comparison is not None and second.comparison is not None:
        records = [*first.comparison.records, *second.comparison.records]
        comparison = replace(first.comparison, records=records)
    return Evidence(first.setup, tuple(arms), results, comparison)


def read_setup(path: Path) -> Setup:
    """The setup of a comparison from its file; unknown fields are ignored."""
    if not path.is_file():
        raise DataFileMissing(
            f"'{path}' not found. It describes how the results beside it were made; --from expects "
            f"a folder written by `nocta compare --out`."
        )
    found = json.loads(path.read_text("utf-8"))["setup"]
    source = found.pop("source")
    known = {f.name for f in fields(Setup)}
    return Setup(
        DataSource(**{k: _tupled(v) for k, v in source.items()}),
        **{k: _tupled(v) for k, v in found.items() if k in known},
    )


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def folder_name(setup: Setup) -> str:
    """Name of the folder of a setup, such as `synthetic-paper-0.5-0.25`."""
    weights = "-".join(f"{w:g}" for w in setup.cost_weights)
    stem = re.sub(r"[^\w-]+", "_", Path(setup.source.data).name.split(".")[0])
    parts = [stem, setup.preset, weights or f"{setup.n_points}-points"]
    usual = Setup(setup.source)
    for rule in ("availability", "results"):
        if getattr(setup, rule) != getattr(usual, rule):
            parts.append(getattr(setup, rule))
    options = (f"{name}={typed(value)}" for name, value in setup.source.data_options.items())
    parts += [re.sub(r"[^\w=.-]+", "_", option) for option in options]
    return "-".join([*parts, *(["quick"] if setup.quick else [])])
