"""What the benchmarks run on: sizes, cohorts and fitted models, kept so that a run goes on.

Speed does not depend on how well a network is trained, so the quick version trains for an instant
and the full version as the presets do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import nocta
from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.options import read_options
from nocta.model.persistence import save_model
from nocta.model.presets.base import EstimatorName
from nocta.model.presets.options import DefaultOptions, PaperOptions
from nocta.planning.estimators import amortized, amortized_mlp, embedding
from nocta.predictors import neural, training
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.fitting import Preset, fit_predictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig, TrainingLog
from nocta.runs.versions import versions

Parts = tuple[Cohort, Cohort, Cohort]
#: In the folder of a kept model: what it was fitted with.
RECIPE = "bench-recipe.json"


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Args:
        name: Of the version; models of different versions are kept apart.
        subjects: Of the synthetic task, split 70/15/15.
        compared: Test subjects who meet the reference, at one cost weight and at a lower one.
        n_candidates: Plans per decision of the `paper` preset (`|O|`).
        served: Test subjects of the default preset with retrieval.
        method_subjects: Of the small cohort on which every method is timed.
        doublings: How often each size is doubled where growth is measured.
        trained: Train as the presets do, or for an instant.
        methods: Timed in fit and roll-out.
    """

    name: str = "full"
    subjects: int = 8000
    compared: tuple[int, int] = (1200, 300)
    n_candidates: int = 1000
    served: int = 300
    method_subjects: int = 600
    doublings: int = 4
    trained: bool = True
    methods: tuple[str, ...] = (
        "random",
        "static",
        "nocta-amortized",
        "nocta-contrastive",
        "asac",
        "ras",
        "as",
        "dime",
        "difa",
    )


FULL = Sizes()
QUICK = replace(
    FULL,
    name="quick",
    compared=(40, 20),
    served=60,
    method_subjects=200,
    doublings=3,
    trained=False,
    methods=("random", "static", "nocta-amortized", "nocta-contrastive"),
)
TINY = replace(
    QUICK,
    name="tiny",
    subjects=120,
    compared=(4, 4),
    n_candidates=40,
    served=4,
    method_subjects=60,
    doublings=1,
    methods=("random",),
)


@contextmanager
def training_of(sizes: Sizes) -> Iterator[None]:
    """Train as the presets do, or every network for an instant."""
    with ExitStack() as stack:
        for module in () if sizes.trained else (amortized, amortized_mlp, embedding, neural):
            stack.enter_context(patch.object(module, "train", _train_for_an_instant))
        yield


def _train_for_an_instant(
    module: nn.Module,
    n_train: int,
    batch_loss: Callable[[NDArray[np.int64]], Tensor],
    validation_loss: Callable[[], float],
    config: TrainingConfig,
    rng: np.random.Generator,
    **options: Any,
) -> TrainingLog:
    short = replace(config, epochs=3, most_per_epoch=16 * config.batch_size, check_every=3)
    return training.train(module, n_train, batch_loss, validation_loss, short, rng, **options)


def synthetic_parts(sizes: Sizes) -> Parts:
    """Train, validation and test subjects of the synthetic task, as in a comparison at seed 0."""
    cohort = nocta.datasets.load("synthetic", seed=0, n_subjects=sizes.subjects)
    train, val, test = cohort.split((0.70, 0.15, 0.15), seed=0)
    return train, val, test


def fitted(preset: Preset, estimator: EstimatorName, sizes: Sizes, folder: Path) -> nocta.NOCTA:
    """A model of the synthetic task; fitted if the folder does not hold one of this recipe."""
    kept = folder / f"{sizes.name}-{preset}-{estimator}"
    model = unfitted(preset, estimator, sizes)
    wanted = recipe(model, sizes)
    if not (kept / RECIPE).exists() or (kept / RECIPE).read_text("utf-8") != wanted:
        train, val, _ = synthetic_parts(sizes)
        predictor = shared_predictor(preset, train, val, sizes)
        with training_of(sizes):
            model.fit(train, val, predictor=predictor)
        save_model(model, kept, extra={RECIPE: wanted})
    return nocta.load(kept)


def recipe(model: nocta.NOCTA, sizes: Sizes) -> str:
    """What decides how a model comes out: every option of its preset, subjects, versions."""
    bundle: type[Any] = PaperOptions if model.preset == "paper" else DefaultOptions
    options = read_options(bundle, model.options or {})
    whole = {
        "options": options.model_dump(),
        "seed": model.seed,
        "subjects": sizes.subjects,
        "trained": sizes.trained,
        "versions": versions(),
    }
    return json.dumps(whole, indent=1)


def shared_predictor(
    preset: Preset, train: Cohort, val: Cohort, sizes: Sizes, *, quick: bool = False
) -> CrossFittedPredictor:
    """The predictor of a preset (of its quick run, if `quick`), or one trained for an instant."""
    if sizes.trained:
        return fit_predictor(train, val, preset, quick=quick)
    network = MLPPredictor() if preset == "paper" else RecurrentPredictor()
    with training_of(sizes):
        network.fit(train, val)
    return CrossFittedPredictor.single(network, train, preset != "paper")


def unfitted(preset: Preset, estimator: EstimatorName, sizes: Sizes) -> nocta.NOCTA:
    """The preset with its own options, or with those that shorten training."""
    options: dict[str, object] = {}
    if preset == "paper":
        options["n_candidates"] = sizes.n_candidates
    if not sizes.trained:
        options |= {"embedding_weights": (0.6,)} if preset == "paper" else {"n_rounds": 0}
    return nocta.NOCTA(estimator, preset, seed=0, options=options)


def random_masks(n: int, catalog: Catalog, now: int, seed: int = 0) -> NDArray[np.bool_]:
    """What may have been asked for up to slot `now`, `(n, L, M)`: each at even odds."""
    rng = np.random.default_rng(seed)
    asked = rng.uniform(size=(n, catalog.n_times, catalog.n_features)) < 0.5
    return asked & (np.arange(catalog.n_times) <= now)[:, None]


def random_cohort(n: int, n_times: int, n_features: int, seed: int = 0) -> Cohort:
    """Subjects with a hidden course that every feature sees through noise; three classes."""
    rng = np.random.default_rng(seed)
    course = rng.normal(size=(n, n_times)).cumsum(axis=1) / np.sqrt(np.arange(1, n_times + 1))
    values = course[..., None] + rng.normal(size=(n, n_times, n_features))
    names = tuple(f"f{m}" for m in range(n_features))
    return Cohort(
        values=values.astype(np.float32),
        labels=np.digitize(course, (-0.5, 0.5)),
        visits=np.ones((n, n_times), dtype=bool),
        context=np.zeros((n, 0), dtype=np.float32),
        subjects=np.arange(n),
        catalog=Catalog(tuple(Feature(name, (name,), 1.0) for name in names), n_times),
        classes=("low", "middle", "high"),
        name="random",
    )
