"""One fit from the data to a model folder, in stages that survive a kill.

Stages: the predictor, the estimator, the operating points. Each finished one is kept in the
folder's `.partial`; the whole model takes its place at the end. Test subjects are split off
first and never touched.
"""

from __future__ import annotations

import json
import shutil
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.metrics import summarize
from nocta.core.operating_points import cost_of_everything
from nocta.core.options import read_options
from nocta.methods.nocta import quick_options
from nocta.methods.registry import method_class
from nocta.model import persistence
from nocta.model.nocta import NOCTA, check_parts
from nocta.model.presets.base import EstimatorName
from nocta.model.presets.options import DefaultOptions, PaperOptions
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted
from nocta.predictors.fitting import Preset, fit_predictor
from nocta.predictors.registry import check_predictor_name, check_savable
from nocta.runs.absent_classes import class_warnings
from nocta.runs.files import write_atomically
from nocta.runs.fit_stages import Stages
from nocta.runs.model_card import model_card
from nocta.runs.results import plain
from nocta.runs.setup import DataSource, data_fingerprint, flat_request
from nocta.runs.shared import unfitted_predictor
from nocta.runs.versions import versions

#: At most so many training and validation subjects in a rehearsal.
QUICK_SIZES = (200, 60)
_MEASURES = ("cost", "accuracy", "ap", "roc_auc", "cross_entropy")

#: With fewer subjects to choose or test on, the user is told what that means.
_FEW_TO_JUDGE_ON = 30


@dataclass(frozen=True)
class FitRequest:
    """What is to be fitted; a fit is continued only under the same request.

    Args:
        source: The data and the split.
        method: One of the `nocta-…` methods.
        preset: `"default"` or `"paper"`.
        seed: Decides the split and the training (and the draw of data that is drawn).
        n_points: Cost weights to find on validation and keep with the model.
        quick: A rehearsal: few subjects, short training, few cost weights.
        preset_options: Options of the preset, where they are not its own.
        predictor: `"learned"`, `"bayes"`, or the name of a plug-in.
    """

    source: DataSource
    method: str = "nocta-amortized"
    preset: Preset = "default"
    seed: int = 0
    n_points: int = 10
    quick: bool = False
    preset_options: Mapping[str, Any] = field(default_factory=dict)
    predictor: str = "learned"

    def __post_init__(self) -> None:
        check_predictor_name(self.predictor)
        if not hasattr(method_class(self.method), "estimator"):
            raise ConfigError(
                f"'{self.method}' cannot be saved as a model; use nocta-amortized, "
                f"nocta-contrastive or nocta-ensemble. `nocta compare` runs every method."
            )

    @property
    def estimator(self) -> EstimatorName:
        """Which estimator the method plans with."""
        name: EstimatorName = getattr(method_class(self.method), "estimator")  # noqa: B009
        return name

    @property
    def options(self) -> dict[str, Any] | None:
        """Options of the preset."""
        quick = quick_options(self.preset) if self.quick else {}
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
) -> NOCTA:
    """Fit, and leave a model folder with its card and its log.

    Args:
        request: What to fit.
        out: The folder.
        resume: Go on with an unfinished fit of the same request.
        force: Replace a model, or drop an unfinished fit, that is there.
        progress: Show bars.
        say: Receives one sentence per finished stage.

    Raises:
        ConfigError: The folder holds something, and neither `resume` nor `force` fits.
    """
    cohort, train, val, test = request.parts()
    check_parts(train, val)
    given = request.options or {}
    options = (
        read_options(DefaultOptions, given)
        if request.preset == "default"
        else read_options(PaperOptions, given)
    )
    given_predictor = unfitted_predictor(request.predictor, request.source.data)
    if given_predictor is not None:
        method_class(request.method)(preset=request.preset).check_predictor(given_predictor)  # type: ignore[call-arg]
        check_savable(given_predictor)
    signature = plain({**asdict(request), "data_hash": data_fingerprint(cohort)})
    done = _open(out, signature, resume=resume, force=force)
    if done is not None:
        say("This fit was finished already.")
        return done
    stages = Stages(out / persistence.PARTIAL, say)
    say(
        f"{cohort.name}: {len(train)} subjects to learn from, {len(val)} to choose on; "
        f"{len(test)} kept aside for testing" + (" (a rehearsal)." if request.quick else ".")
    )
    if min(len(val), len(test)) < _FEW_TO_JUDGE_ON and not request.source.is_drawn:
        say(
            f"Note: {len(val)} subjects to choose on and {len(test)} to test on say little; "
            f"differences of a few hundredths between operating points are luck. "
            f"`nocta compare --seeds 10` repeats the split and says how large the errors are."
        )
    if not request.source.is_drawn:  # there, rare classes are part of the task
        for warning in class_warnings([(request.seed, (train, val, test))]):
            say(f"Warning: {warning}")

    def new_predictor() -> CrossFittedPredictor:
        if request.predictor == "bayes" and given_predictor is not None:
            return as_cross_fitted(given_predictor, train, val)
        return fit_predictor(
            train,
            val,
            request.preset,
            request.seed,
            progress,
            kind=request.predictor,
            quick=request.quick,
            class_weight=options.class_weight,
        )

    predictor = stages.predictor(new_predictor)

    def new_model() -> NOCTA:
        model = NOCTA(request.estimator, request.preset, request.seed, request.options)
        return model.fit(train, val, predictor=predictor, progress=progress)

    model = stages.model(new_model)
    started = clock.perf_counter()
    points = operating_points(model, val, request.n_points, quick=request.quick)
    stages.note("operating points", clock.perf_counter() - started, f"{len(points)} found")
    seconds = stages.seconds
    model.record_ = plain(
        {
            "dataset": cohort.name,
            "request": signature,
            "n_train": len(train),
            "n_val": len(val),
            "n_test": len(test),
            "cost_of_everything": cost_of_everything(val),
            "cost_weights": [point["cost_weight"] for point in points],
            "validation": points,
            "slot_times": cohort.slot_times,
            "time_unit": cohort.time_unit,
            "fit_seconds": seconds["predictor"] + seconds["estimator"],
        }
    )
    log = json.dumps({"stages": stages.log, "versions": versions()}, indent=1) + "\n"
    extra = {persistence.CARD: model_card(model), persistence.LOG: log}
    persistence.save_model(model, out, extra=extra)
    return model


def operating_points(
    model: NOCTA, val: Cohort, n_points: int, *, quick: bool = False
) -> list[dict[str, float]]:
    """Cost weights spread over cost on validation, cheapest first, and what they give there."""
    n_subjects = 60 if quick else None
    weights = model.suggest_cost_weights(val, min(n_points, 4) if quick else n_points, n_subjects)
    out = []
    for weight in weights:
        found = summarize(model.rollout(val, weight), per_time=False)
        out.append({"cost_weight": weight, **{name: found[name] for name in _MEASURES}})
    return out


def _open(out: Path, signature: dict[str, Any], *, resume: bool, force: bool) -> NOCTA | None:
    """Make the folder ready; a finished model of the same request comes back when resuming."""
    partial = out / persistence.PARTIAL
    if out.exists() and not out.is_dir():
        raise ConfigError(f"'{out}' is a file; --out names a folder.")
    inside = {entry.name for entry in out.iterdir()} if out.is_dir() else set()
    finished, unfinished = persistence.MANIFEST in inside, partial.name in inside
    if inside and not finished and not unfinished:
        raise ConfigError(f"'{out}' is not empty and holds no model; choose another folder.")
    if inside and not (resume or force):
        raise ConfigError(
            f"'{out}' holds an unfinished fit; go on with --resume, or begin anew with --force."
            if unfinished
            else f"'{out}' holds a model already; replace it with --force, or choose another name."
        )
    if resume and unfinished:
        _check_same(json.loads((partial / "request.json").read_text("utf-8")), signature, out)
        return None
    if resume and finished and not force:
        model = persistence.load(out)
        _check_same(model.record_.get("request", {}), signature, out)
        return model
    shutil.rmtree(partial, ignore_errors=True)
    write_atomically(partial / "request.json", json.dumps(signature))
    return None


def _check_same(there: dict[str, Any], here: dict[str, Any], out: Path) -> None:
    flat_there, flat_here = flat_request(there, FitRequest), flat_request(here, FitRequest)
    differences = [
        f"{name} is {flat_there.get(name)!r} there and {flat_here[name]!r} here"
        for name in flat_here
        if name != "data_hash" and flat_there.get(name) != flat_here[name]
    ]
    if not differences and there.get("data_hash") != here["data_hash"]:
        differences = ["the data have changed"]
    if differences:
        raise ConfigError(
            f"'{out}' is the fit of something else: {'; '.join(differences)}. Use the same "
            f"options, begin anew with --force, or choose another folder."
        )
