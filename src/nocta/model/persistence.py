"""Models and predictors as folders (`nocta.model.archive`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nocta.core.catalog import Catalog
from nocta.core.errors import ConfigError, NoctaError, NotFittedError
from nocta.core.options import given_values
from nocta.core.plugins import unloadable
from nocta.core.predictor import Predictor
from nocta.model.archive import MISFITS, damaged, read_folder, write_folder
from nocta.model.manifest import check_restored
from nocta.model.nocta import NOCTA, planner_class
from nocta.predictors.registry import predictor_state, restore_predictor
from nocta.tables.schema import Schema


def save_model(model: NOCTA, path: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
    """Write a fitted model as a folder, whole or not at all, with its `record_` and `extra` files.

    An amortized model of many subjects holds no subject's data. With retrieval (`contrastive`,
    `ensemble`), or if subjects are few and averages are counted over them, the training
    subjects' values, labels, visits and context are in the folder, without their names.
    """
    if not hasattr(model, "planner_"):
        raise NotFittedError("This model is not fitted yet; call `fit(train, val)` first.")
    config, arrays = model.planner_.state()
    body = {
        "estimator": model.estimator,
        "preset": model.preset,
        "seed": model.seed,
        "options": given_values(model.options) or None,
        "classes": list(model.classes_),
        "catalog": model.catalog_.to_dict(),
        "schema": model.schema_,
        "record": getattr(model, "record_", {}),
        "ranges": getattr(model, "ranges_", {}),
        "config": config,
    }
    write_folder(path, "nocta-model", body, arrays, extra)


def load(path: str | Path) -> NOCTA:
    """Read a model that `NOCTA.save` or `nocta fit` wrote; it decides as it did, to the bit."""
    body, arrays = read_folder(path)
    try:
        planner = planner_class(body["preset"], body["estimator"])
    except ConfigError as error:
        raise unloadable("nocta.estimators", body["estimator"], error) from error
    try:
        model = NOCTA(body["estimator"], body["preset"], body["seed"], body["options"])
        model.planner_ = planner.from_state(body["config"], arrays)
        check_restored(arrays, model.planner_.state()[1], path)
        Schema.model_validate(body["schema"])
        model.catalog_ = Catalog.from_dict(body["catalog"])
        model.classes_, model.schema_ = tuple(body["classes"]), body["schema"]
        model.record_ = body["record"]
        model.ranges_ = body.get("ranges", {})  # absent in models of older versions
    except NoctaError:
        raise
    except MISFITS as error:
        raise damaged(path, error) from error
    return model


def save_predictor(predictor: Predictor, path: str | Path) -> None:
    """Write a fitted predictor that has a `state` as a folder; replaces an older one."""
    config, arrays = predictor_state(predictor)
    write_folder(path, "nocta-predictor", {"config": config}, arrays)


def load_predictor(path: str | Path) -> Predictor:
    """Read what `save_predictor` wrote."""
    body, arrays = read_folder(path, "nocta-predictor")
    try:
        return restore_predictor(body["config"], arrays)
    except NoctaError:
        raise
    except MISFITS as error:
        raise damaged(path, error) from error
