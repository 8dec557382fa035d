"""One fit from the data to a model folder, in stages that survive a kill.

Stages: the predictor, the estimator, the operating points. A checkpoint in the folder's `.partial`
keeps finished ones; the whole model takes its place at the end. Test subjects are split off first
and never touched.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.detection import prevalence
from nocta.core.errors import ConfigError
from nocta.core.operating_points import cost_of_everything
from nocta.core.options import Count, Preset, Seed, check_arguments
from nocta.methods.contract import Method
from nocta.methods.nocta import estimator_of, model_of, quick_options
from nocta.methods.registry import method_class
from nocta.methods.saving import SavedMethod, check_savable, load_saved, save_method
from nocta.model import archive, persistence
from nocta.model.choice.default import KEY
from nocta.model.folders import PARTIAL, REPLACEABLE_BY_MODEL, Folder, recognize
from nocta.model.nocta import NOCTA, check_parts
from nocta.predictors import registry as predictors
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted
from nocta.predictors.fitting import fit_predictor
from nocta.runs.absent_classes import class_warnings
from nocta.runs.checkpoint import Checkpoint, differences
from nocta.runs.fit_points import points_to_keep
from nocta.runs.fit_stages import Stages
from nocta.runs.method_options import make_method
from nocta.runs.model_card import model_card
from nocta.runs.predictors import unfitted_predictor
from nocta.runs.results import plain
from nocta.runs.setup import DataSource, hash_data, request_defaults
from nocta.runs.subgroups import context_bands, describe_subgroups
from nocta.runs.training_summary import summarize_training
from nocta.runs.versions import versions

#: Training and validation subjects in a quick run, at most.
QUICK_SIZES = (200, 60)
#: Stages whose time counts as that of the fit.
_FITS = ("predictor", "estimator", "method")
#: With fewer subjects to choose or test on, the user is told what that means.
_FEW_TO_JUDGE_ON = 30


@dataclass(frozen=True)
class FitRequest:
    """What is to be fitted; a fit is continued only under the same request.

    Args:
        source: The data and the split.
        method: Any method that can be saved.
        preset: `"default"` or `"paper"`.
        seed: Decides the split and the training (and the draw of data that is drawn).
        n_points: Operating points to find on validation and keep with the model.
        quick: A quick run: few subjects, short training, few cost weights.
        preset_options: Options of the preset, if they are not its own.
        predictor: `"learned"`, `"bayes"`, or the name of a plug-in.
    """

    source: DataSource
    method: str = "nocta-auto"
    preset: Preset = "default"
    seed: Seed = 0
    n_points: Count = 10
    quick: bool = False
    preset_options: Mapping[str, Any] = field(default_factory=dict)
    predictor: str = "learned"

    def __post_init__(self) -> None:
        check_arguments(self)
        predictors.check_predictor_name(self.predictor)
        check_savable(self.method)

    @property
    def estimator(self) -> str | None:
        """The estimator the method plans with; none if it is not a NOCTA model."""
        return estimator_of(method_class(self.method))

    @property
    def options(self) -> dict[str, Any] | None:
        """Options of the preset."""
        quick = quick_options(self.preset, self.estimator or "") if self.quick else {}
        return {**(quick or {}), **self.preset_options} or None

    def parts(self) -> tuple[Cohort, Cohort, Cohort, Cohort]:
        """The whole cohort, and its train, validation and test subjects."""
        cohort = self.source.load(self.seed)
        train, val, test = self.source.split(cohort, self.seed)
        if self.quick:
            rng = np.random.default_rng(self.seed)
            train, val = (
                part.subset(np.sort(rng.permutation(len(part))[:size]))
                for part, size in zip((train, val), QUICK_SIZES, strict=True)
            )
        return cohort, train, val, test


def fit_to_folder(
    request: FitRequest,
    out: Path,
    *,
    resume: bool = False,
    force: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> NOCTA | SavedMethod:
    """Fit, and leave a folder with its card and its log.

    `resume` continues an unfinished fit of the same request; `force` replaces a model or an
    unfinished fit. `say` receives one sentence per finished stage.
    """
    cohort, train, val, test = request.parts()
    check_parts(train, val)
    method = make_method(  # reports impossible options before anything is fitted
        request.method, request.preset_options, preset=request.preset, quick=request.quick
    )
    given = unfitted_predictor(request.predictor, request.source)
    if given is not None:
        method.check_predictor(given)
        predictors.check_savable(given)
    asked = plain({**asdict(request), "data_hash": hash_data(cohort)})
    finished = _open(out, asked, resume=resume, force=force)
    if finished is None:
        say("This fit was finished already.")
        return load_saved(out) if request.estimator is None else persistence.load(out)
    stages = Stages(finished, say)
    say(
        f"{cohort.name}: {len(train)} subjects to learn from, {len(val)} to choose on; "
        f"{len(test)} kept aside for testing" + (" (a quick run)." if request.quick else ".")
    )
    if min(len(val), len(test)) < _FEW_TO_JUDGE_ON and not request.source.is_drawn:
        say(
            f"Note: Validation has {len(val)} subjects and test has {len(test)}, which is few: "
            f"differences of a few hundredths between operating points may be chance. "
            f"`nocta compare --seeds 10` repeats the split and says how large the errors are."
        )
    if not request.source.is_drawn:  # there, rare classes are part of the task
        for warning in class_warnings([(request.seed, (train, val, test))]):
            say(f"Warning: {warning}")

    how = partial(
        fit_predictor,
        train,
        val,
        request.preset,
        request.seed,
        progress,
        kind=request.predictor,
        quick=request.quick,
        class_weight=(request.options or {}).get("class_weight"),
    )
    if given is not None and request.predictor == "bayes":
        how = partial(as_cross_fitted, given, train, val)
    predictor = stages.predictor(how) if method.shares_predictor else None
    saved = _fit(request, method, stages, train, val, predictor, progress)
    started = clock.perf_counter()
    n_points = min(request.n_points, 4) if request.quick else request.n_points
    kept = points_to_keep(saved, val, n_points, quick=request.quick)
    found = f"{len(kept['validation'])} found"
    stages.note("operating points", clock.perf_counter() - started, found)
    record = {
        "dataset": cohort.name,
        "request": asked,
        "n_train": len(train),
        "n_val": len(val),
        "n_test": len(test),
        "cost_of_everything": cost_of_everything(val),
        **kept,
        "threshold": prevalence(train.labels, train.n_classes),
        "slot_times": cohort.slot_times,
        "time_unit": cohort.time_unit,
        "training": summarize_training(train).to_dict(),
        "subgroups": _subgroups(saved, kept[KEY]["setting"], train, val, request),
        "fit_seconds": sum(stages.seconds[s] for s in _FITS if s in stages.seconds),
    }
    saved = replace(saved, record_=plain(record))
    log = json.dumps({"stages": stages.log, "versions": versions()}, indent=1) + "\n"
    save_method(saved, out, extra={archive.CARD: model_card(saved), archive.LOG: log})
    model = model_of(saved.method)
    return saved if model is None else model


def _fit(
    request: FitRequest,
    method: Method,
    stages: Stages,
    train: Cohort,
    val: Cohort,
    predictor: CrossFittedPredictor | None,
    progress: bool,
) -> SavedMethod:
    """The fitted method; a NOCTA model survives a kill."""
    if request.estimator is not None:
        new = NOCTA(request.estimator, request.preset, request.seed, request.options)
        fit = partial(new.fit, train, val, predictor=predictor, progress=progress)
        return SavedMethod.of_model(stages.model(fit))
    started = clock.perf_counter()
    method.fit(train, val, seed=request.seed, predictor=predictor, progress=progress)
    stages.note("method", clock.perf_counter() - started, "fitted")
    return SavedMethod.of(method, train, request.seed)


def _subgroups(
    saved: SavedMethod,
    setting: Mapping[str, Any],
    train: Cohort,
    val: Cohort,
    request: FitRequest,
) -> dict[str, Any]:
    """Validation subjects by context at the default operating point; empty without context."""
    if not val.catalog.context:
        return {}
    outcome = saved.rollout(val, setting)
    found = describe_subgroups(
        outcome,
        val,
        metric=request.source.headline,
        seed=request.seed,
        bands=context_bands(train),
    )
    return {
        "metric": request.source.headline,
        "n_classes": val.n_classes,
        "cost": outcome.cost,
        "groups": found,
    }


def _open(out: Path, asked: dict[str, Any], *, resume: bool, force: bool) -> Checkpoint | None:
    """The checkpoint of the fit; `None` if a finished model of the same request is there."""
    there = recognize(out)
    if there is Folder.FILE:
        raise ConfigError(f"'{out}' is a file; --out names a folder.")
    if there not in REPLACEABLE_BY_MODEL:
        raise ConfigError(f"'{out}' is not empty and holds no model; choose another folder.")
    if there is Folder.UNFINISHED_FIT and not (resume or force):
        raise ConfigError(
            f"'{out}' holds an unfinished fit; continue it with --resume, or start over with "
            f"--force."
        )
    if there is Folder.MODEL and not (resume or force):
        raise ConfigError(
            f"'{out}' holds a model already; replace it with --force, or choose another name."
        )
    defaults = request_defaults(FitRequest)
    remedy = "Use the same options, start over with --force, or choose another folder."
    if there is Folder.MODEL and resume and not force:
        made = archive.read_manifest(out, None)["record"].get("request", {})
        differing = differences(made, asked, defaults)
        if differing:
            raise ConfigError(
                f"'{out}' was fitted with other settings: {'; '.join(differing)}. {remedy}"
            )
        return None
    finished = Checkpoint(out / PARTIAL, asked, defaults=defaults)
    if resume:
        finished.open(discard=force, remedy=remedy)
    else:
        finished.clear()
    finished.begin()
    return finished
