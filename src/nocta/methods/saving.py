"""Fitted methods as folders, and `nocta.load`.

A NOCTA model is a folder of kind `nocta-model`; any other method with `state` and `from_state`
one of kind `nocta-method`. No code is imported because a folder names it: the manifest holds a
name, and the registry knows where its class lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, Results
from nocta.core.errors import ConfigError, NoctaError
from nocta.core.plugins import unloadable
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout, rollout
from nocta.methods.contract import Method
from nocta.methods.nocta import estimator_of, model_of
from nocta.methods.references import policy_at, reference_name
from nocta.methods.registry import method_class
from nocta.methods.retrained import RetrainedMethod
from nocta.model import persistence
from nocta.model.archive import MISFITS, damaged, read_folder, read_manifest, write_folder
from nocta.model.choice.default import KEY, DefaultPoint, saved_default
from nocta.model.nocta import NOCTA
from nocta.model.presets import plugin
from nocta.tables.schema import Schema
from nocta.tables.validate import check_fits


def check_savable(name: str) -> None:
    """Raise `ConfigError` if a method cannot be saved; nothing is trained."""
    cls = method_class(name)
    estimator = estimator_of(cls)
    if estimator is not None:
        if estimator not in plugin.BUILT_IN and not plugin.can_save(
            plugin.estimator_class(estimator)
        ):
            raise ConfigError(plugin.cannot_save(estimator))
        return
    needed = {"state": Method, "from_state": Method}
    if issubclass(cls, RetrainedMethod):
        needed = {"_policy_state": RetrainedMethod, "_recall_policy": RetrainedMethod}
    if not all(_overrides(cls, attribute, base) for attribute, base in needed.items()):
        raise ConfigError(
            f"Method '{name}' cannot be saved: it has no `state()` and `from_state(config, "
            f"arrays)`. `nocta compare` runs it without saving."
        )


def _overrides(cls: type[Any], attribute: str, base: type[Any]) -> bool:
    """Whether a class has its own version of what `base` leaves open."""
    home = next((c for c in cls.__mro__ if attribute in vars(c)), base)
    return home is not base


@dataclass(frozen=True)
class SavedMethod:
    """A fitted method and what it was fitted to: what `nocta evaluate` needs of a folder."""

    method: Method
    seed: int
    catalog_: Catalog
    classes_: tuple[str, ...]
    schema_: dict[str, Any]
    record_: dict[str, Any]
    preset: str = "default"

    @classmethod
    def of(
        cls, method: Method, train: Cohort, seed: int, record: Mapping[str, Any] | None = None
    ) -> Self:
        """A method that was just fitted to `train`."""
        schema = Schema.of(train).model_dump(mode="json", exclude_none=True)
        preset = getattr(method, "preset", "default")
        return cls(method, seed, train.catalog, train.classes, schema, dict(record or {}), preset)

    @classmethod
    def of_model(cls, model: NOCTA) -> Self:
        """A fitted NOCTA model, as the method of its estimator."""
        cls_of: Any = method_class(f"nocta-{model.estimator}")
        method = cls_of(model.preset, model.options)
        method.model_ = model
        known = (model.catalog_, model.classes_, model.schema_, getattr(model, "record_", {}))
        return cls(method, model.seed, *known, model.preset)

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The operating points that were found on validation, cheapest first."""
        if "settings" in self.record_:
            return [dict(setting) for setting in self.record_["settings"]]
        return [{"cost_weight": weight} for weight in self.record_.get("cost_weights", [])]

    @property
    def default_point(self) -> DefaultPoint:
        """The operating point that acts if none is given, and why it is this one."""
        model = model_of(self.method)
        if KEY in self.record_ or model is None:
            return saved_default(self.record_)
        return model.default_point

    def check_fits(self, cohort: Cohort) -> None:
        """Raise if a cohort has other slots, features, context or classes."""
        check_fits(self.catalog_, self.classes_, cohort)

    def policy(self, setting: Mapping[str, Any]) -> Policy:
        """The policy at one operating point."""
        return policy_at(self.method, setting)

    def rollout(
        self,
        cohort: Cohort,
        setting: Mapping[str, Any],
        *,
        availability: Availability = "on-arrival",
        results: Results = "after-visit",
        progress: bool = False,
    ) -> Rollout:
        """Act on a whole cohort at one operating point; its `budget`, if any, is a hard limit."""
        how: dict[str, Any] = {"availability": availability, "progress": progress}
        how["budget"] = setting.get("budget")
        model = model_of(self.method)
        if model is not None and reference_name(setting) is None:
            return model.rollout(cohort, setting.get("cost_weight"), **how)
        self.check_fits(cohort)
        return rollout(self.policy(setting), cohort, results=results, seed=self.seed, **how)


def as_saved(model: NOCTA | SavedMethod) -> SavedMethod:
    """A model with what it was fitted to."""
    return model if isinstance(model, SavedMethod) else SavedMethod.of_model(model)


def save_method(
    saved: SavedMethod, path: str | Path, *, extra: Mapping[str, str] | None = None
) -> None:
    """Write a fitted method as a folder, whole or not at all; `extra` are text files by name."""
    check_savable(saved.name)
    model = model_of(saved.method)
    if model is not None:
        model.record_ = saved.record_
        persistence.save_model(model, path, extra=extra)
        return
    config, arrays = saved.method.state()
    body = {
        "method": saved.name,
        "preset": saved.preset,
        "seed": saved.seed,
        "classes": list(saved.classes_),
        "catalog": saved.catalog_.to_dict(),
        "schema": saved.schema_,
        "record": saved.record_,
        "config": config,
    }
    write_folder(path, "nocta-method", body, arrays, extra)


def load_saved(path: str | Path) -> SavedMethod:
    """Read a model or a method with what it was fitted to."""
    if read_manifest(path, None)["kind"] != "nocta-method":
        return SavedMethod.of_model(persistence.load(path))
    body, arrays = read_folder(path, "nocta-method")
    try:
        cls = method_class(body["method"])
    except ConfigError as error:
        raise unloadable("nocta.methods", body["method"], error) from error
    try:
        return SavedMethod(
            cls.from_state(body["config"], arrays),
            body["seed"],
            Catalog.from_dict(body["catalog"]),
            tuple(body["classes"]),
            body["schema"],
            body["record"],
            body["preset"],
        )
    except NoctaError:
        raise
    except MISFITS as error:
        raise damaged(path, error) from error


def load(path: str | Path) -> Any:
    """Read a folder: a `NOCTA` model or a `Method`; it decides as it did, to the bit.

    Raises:
        ModelError: The folder is damaged, from a newer version, or holds something else.
    """
    method = load_saved(path).method
    model = model_of(method)
    return method if model is None else model
