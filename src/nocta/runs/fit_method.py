"""`nocta fit` for methods that are not NOCTA models: fit, operating points, card, folder."""

from __future__ import annotations

import json
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.cohort import Cohort
from nocta.core.currency import money
from nocta.core.metrics import summarize
from nocta.core.operating_points import cost_of_everything
from nocta.methods.contract import Method
from nocta.methods.saving import SavedMethod, save_method
from nocta.model.archive import CARD, LOG
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.fitting import fit_predictor
from nocta.runs.fit_stages import Stages
from nocta.runs.method_options import make_method
from nocta.runs.results import plain
from nocta.runs.versions import versions

if TYPE_CHECKING:
    from nocta.runs.fit_run import FitRequest

_MEASURES = ("cost", "accuracy", "ap", "roc_auc", "cross_entropy")


def method_of(request: FitRequest) -> Method:
    """The method of a request, not fitted.

    Raises:
        ConfigError: One of its options cannot work.
    """
    return make_method(
        request.method, request.preset_options, preset=request.preset, quick=request.quick
    )


def fit_method(
    request: FitRequest,
    out: Path,
    stages: Stages,
    parts: tuple[Cohort, Cohort, Cohort, Cohort],
    asked: dict[str, Any],
    progress: bool,
) -> SavedMethod:
    """Fit a method and save it; the shared predictor, if it uses one, survives a kill.

    Args:
        request: What to fit.
        out: The folder.
        stages: The finished stages of this fit.
        parts: The whole cohort, and its train, validation and test subjects.
        asked: The request as plain data, with the hash of the data.
        progress: Show bars.
    """
    cohort, train, val, test = parts
    method, predictor = method_of(request), None
    if method.shares_predictor:
        predictor = stages.predictor(lambda: _new_predictor(request, train, val, progress))
    started = clock.perf_counter()
    method.fit(train, val, seed=request.seed, predictor=predictor, progress=progress)
    stages.note("method", clock.perf_counter() - started, "fitted")
    started = clock.perf_counter()
    n_points = min(request.n_points, 4) if request.quick else request.n_points
    settings = method.settings(val, n_points)
    saved = SavedMethod.of(method, train, request.seed)
    points = [{"setting": s, **_measure(saved, val, s)} for s in settings]
    stages.note("operating points", clock.perf_counter() - started, f"{len(points)} found")
    record = {
        "dataset": cohort.name,
        "request": asked,
        "n_train": len(train),
        "n_val": len(val),
        "n_test": len(test),
        "cost_of_everything": cost_of_everything(val),
        "settings": settings,
        "validation": points,
        "slot_times": cohort.slot_times,
        "time_unit": cohort.time_unit,
        "fit_seconds": stages.seconds.get("predictor", 0.0) + stages.seconds["method"],
    }
    saved = SavedMethod.of(method, train, request.seed, plain(record))
    log = json.dumps({"stages": stages.log, "versions": versions()}, indent=1) + "\n"
    save_method(saved, out, extra={CARD: method_card(saved), LOG: log})
    return saved


def method_card(saved: SavedMethod) -> str:
    """Markdown: what the method is, what it was fitted on, and how it did on validation."""
    record, currency = saved.record_, saved.catalog_.currency
    what = (type(saved.method).__doc__ or "").split("\n\n")[0].replace("\n    ", " ")
    names = ("accuracy", "ap", "roc_auc", "cross_entropy")
    rows = [
        [
            json.dumps(point["setting"]),
            money(point["cost"], currency),
            *("" if point[name] is None else f"{point[name]:.3f}" for name in names),
        ]
        for point in record["validation"]
    ]
    head = ["setting", "mean cost", "accuracy", "AP", "ROC AUC", "cross-entropy"]
    table = "\n".join(f"| {' | '.join(r)} |" for r in [head, ["---"] * len(head), *rows])
    quick = "A quick run (`--quick`): too little data and training to be of use.\n\n"
    return (
        f"# `{saved.name}` for {record['dataset']}\n\n{what}\n\n"
        f"{quick if record['request']['quick'] else ''}"
        f"{record['n_train']} subjects to learn from, {record['n_val']} to choose on, "
        f"{record['n_test']} kept aside and never used. Acquiring everything that was recorded "
        f"costs {money(record['cost_of_everything'], currency)} per subject.\n\n"
        f"## On validation\n\n{table}\n\nThese subjects also decided when training stopped, so the "
        f"numbers are somewhat optimistic; `nocta evaluate` measures on the subjects kept aside.\n"
    )


def _new_predictor(
    request: FitRequest, train: Cohort, val: Cohort, progress: bool
) -> CrossFittedPredictor:
    return fit_predictor(train, val, request.preset, request.seed, progress, quick=request.quick)


def _measure(saved: SavedMethod, val: Cohort, setting: dict[str, Any]) -> dict[str, Any]:
    found = summarize(saved.rollout(val, setting), per_time=False)
    return {name: found[name] for name in _MEASURES}
