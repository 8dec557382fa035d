"""Make the page of a recipe: one function per kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from nocta.core.errors import ConfigError, NoctaError
from nocta.report.paper.beside import points_sheet, sheets
from nocta.report.paper.complexity import complexity_page
from nocta.report.paper.evidence import Evidence, Request, gather
from nocta.report.paper.page import Page, Sheet
from nocta.report.paper.recipes import Kind, Recipe
from nocta.report.paper.theory import theory_sheets
from nocta.report.plots.dynamics import dynamics_figure
from nocta.report.plots.frontier import Panel, frontier_panels
from nocta.report.published import published_for, published_points
from nocta.report.view import ReportView
from nocta.runs.setup import DataSource
from nocta.runs.versions import versions


def reproduce(recipe: Recipe, request: Request) -> Page:
    """Make a table or figure. Finished jobs are kept; `page.write(directory)` writes the rest."""
    page = Page(recipe.name, recipe.entry, recipe.title, request.command(recipe))
    _MAKERS[recipe.kind](recipe, request, page)
    if not request.folders:
        used = ", ".join(f"{name} {version}" for name, version in versions().items())
        page.notes.append(f"Made with {used}.")
    return page


def _gather(recipe: Recipe, request: Request, page: Page) -> list[Evidence]:
    """The results of a recipe, with notes on how they were made and what is absent."""
    found = gather(recipe, request)
    _add_evidence(page, found, request)
    there = {evidence.dataset for evidence in found}
    for name in () if request.sources or request.folders else recipe.data:
        if name not in there:
            page.notes.append(
                f"{name} is left out because it is not on this machine; `nocta datasets {name}` "
                f"says how to get it."
            )
    return found


def _add_evidence(page: Page, found: Sequence[Evidence], request: Request) -> None:
    """Note how the results were made and what failed; add the comparisons that were run."""
    for evidence in found:
        setup, seeds = evidence.setup, evidence.results["seed"].nunique()
        page.notes.append(
            f"{evidence.dataset}: preset `{setup.preset}`, availability `{setup.availability}`, "
            f"{seeds} seed(s), {evidence.results['n_subjects'].max()} test subjects."
        )
        absent = [arm.label for arm in evidence.arms if arm not in evidence.present]
        if absent:
            page.notes.append(f"Not among the results: {', '.join(absent)}.")
        if setup.quick:
            _mark_quick(page)
        if evidence.comparison is not None and not request.folders:
            page.failures += [str(failure) for failure in evidence.comparison.failures]
            end = evidence.dataset if len(found) > 1 else ""
            page.comparisons[end] = evidence.comparison


def _mark_quick(page: Page) -> None:
    note = (
        "**Quick run**: few subjects, short training. The numbers only show that everything runs."
    )
    if note not in page.notes:
        page.notes.insert(0, note)


def _table(recipe: Recipe, request: Request, page: Page) -> None:
    found = _gather(recipe, request, page)
    for evidence in found:
        page.sheets[evidence.dataset if len(found) > 1 else ""] = sheets(recipe, evidence)


def _frontiers(recipe: Recipe, request: Request, page: Page) -> None:
    found = {evidence.dataset: evidence for evidence in gather(recipe, request)}
    _add_evidence(page, list(found.values()), request)
    asked = request.sources or request.folders
    # Data sets that could not be run are drawn as published.
    names = list(found) if asked else list(dict.fromkeys([*recipe.data, *found]))
    panels = []
    for name in names:
        evidence = found.get(name)
        source = evidence.setup.source if evidence else DataSource(name)
        metric = recipe.metric or source.headline
        paper = published_points(published_for(source), metric)
        if evidence is None:
            panels.append(Panel(None, metric, paper=paper, title=f"{name} (as published)"))
            page.notes.append(
                f"{name} is not on this machine, so only the published points are drawn; "
                f"`nocta datasets {name}` says how to get it."
            )
            continue
        optimum = evidence.optimum if metric == "accuracy" else None
        best = optimum.points if optimum else None
        currency = _currency(evidence)
        panels.append(Panel(evidence.results, metric, best, paper, name, currency))
        page.sheets[name if len(found) > 1 else ""] = [points_sheet(evidence)]
    page.figures[""] = frontier_panels(panels)
    page.notes.append(
        "A curve is the mean over seeds at equal cost, with a band of one standard error (only for "
        "NOCTA if there are many methods). The table has the means of the operating points. If the "
        "optimum is known, quality is also drawn as a share of it."
    )


def _currency(evidence: Evidence) -> str:
    """Unit of costs: from the jobs, or from the data if they are on this machine."""
    if evidence.comparison is not None:
        return ReportView(evidence.comparison).currency
    try:
        return evidence.setup.source.load(0).catalog.currency
    except NoctaError:
        return ""


def _dynamics(recipe: Recipe, request: Request, page: Page) -> None:
    found = _gather(recipe, request, page)
    for evidence in found:
        if evidence.comparison is None:
            raise ConfigError(
                "The dynamics need the finished jobs (`jobs/` beside results.csv), and this folder "
                "has none. Leave out --from to run them."
            )
        printed = [row.cost for row in evidence.printed(recipe)]
        view = ReportView(evidence.comparison, mean(printed) if printed else None)
        end = evidence.dataset if len(found) > 1 else ""
        page.figures[end] = dynamics_figure(view.dynamics(), view.axis, bottom="graph")
        page.sheets[end] = _dynamics_sheets(view)
        page.notes.append(
            f"Each method at its operating point nearest to cost {view.reference_cost:.2f}. Top: "
            "mean cost over all subjects at each time, including those who have left. Middle: "
            "share of subjects whose last request was at that time, available or not. Bottom: the "
            "size of a dot is the share of subjects who acquire the feature at that time; an arrow "
            "leads to what the same subjects acquire later, and is stronger for more subjects."
        )


def _dynamics_sheets(view: ReportView) -> list[Sheet]:
    entries, labels = view.dynamics(), view.axis.labels
    times = [
        {"method": d.method, "time": time, "cost": cost, "share_last_request": stop}
        for d in entries
        for time, cost, stop in zip(
            ["never", *labels], [0.0, *d.cost_per_time], d.stop_share, strict=True
        )
    ]
    pairs = [
        {
            "method": d.method,
            "feature": d.features[m],
            "time": labels[t],
            "later_feature": d.features[other],
            "later_time": labels[later],
            "share": share,
        }
        for d in entries
        for t, m, later, other, share in d.together[:10]
    ]
    title = f"Cost per time ({view.axis.unit}) and time of the last request"
    together = Sheet("together", "Acquired together most often", pairs)
    return [Sheet("", title, times), *([together] if pairs else [])]


def _own_tasks(recipe: Recipe, request: Request, page: Page) -> None:
    """A recipe that makes its own tasks; options on data, seeds or rules are refused."""
    unused = [*request.options, *(["--from"] if request.folders else [])]
    if unused:
        raise ConfigError(
            f"'{recipe.name}' makes its own tasks, always the same; leave out {', '.join(unused)}."
        )
    if recipe.kind == "complexity":
        complexity_page(recipe, request, page)
    else:
        page.sheets[""] = theory_sheets(quick=request.quick, progress=request.progress)
    if request.quick:
        _mark_quick(page)


_MAKERS: dict[Kind, Callable[[Recipe, Request, Page], None]] = {
    "table": _table,
    "frontiers": _frontiers,
    "dynamics": _dynamics,
    "complexity": _own_tasks,
    "theory": _own_tasks,
}
