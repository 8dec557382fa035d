"""Predictors by name: those of this package, and those of installed packages.

A package publishes a predictor under the entry-point group `nocta.predictors`: a class derived
from `nocta.Predictor` that can be constructed without arguments and has `fit`. Saved models name
predictors; they are restored through this registry only, so loading never imports a path from a
saved folder.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from numpy.typing import NDArray

from nocta.core.errors import ConfigError, ModelError, did_you_mean
from nocta.core.plugins import load_plugin, plugins, unloadable
from nocta.core.predictor import Predictor, Savable, State

_GROUP: Any = "nocta.predictors"
#: What a comparison may name without any plug-in: the preset's rule, or the exact filter.
BUILT_IN = ("learned", "bayes")
#: Kind in a saved model -> where the class is. Strings, so that commands start quickly.
KINDS: dict[str, str] = {
    "recurrent": "nocta.predictors.recurrent:RecurrentPredictor",
    "lstm": "nocta.predictors.recurrent:LSTMPredictor",
    "mlp": "nocta.predictors.mlp:MLPPredictor",
    "summary": "nocta.predictors.summary:SummaryPredictor",
    "mixed": "nocta.predictors.mixed:MixedPredictor",
    "cde": "nocta.predictors.cde:CdePredictor",
    "bayes": "nocta.predictors.bayes:BayesPredictor",
    "cross-fitted": "nocta.predictors.cross_fitted:CrossFittedPredictor",
}
_PLUG_IN = "plug-in"


def predictor_names() -> list[str]:
    """What `--predictor` accepts: built-in names, then plug-ins in alphabetical order."""
    return list(dict.fromkeys([*BUILT_IN, *plugins(_GROUP)]))


def check_predictor_name(name: str) -> None:
    """Raise `ConfigError` for an unknown or ambiguous name; nothing is imported."""
    known = predictor_names()
    if name not in known:
        raise ConfigError(
            f"There is no predictor '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}."
        )
    if name in BUILT_IN and name in plugins(_GROUP):
        raise ConfigError(
            f"An installed package provides the predictor '{name}' "
            f"({plugins(_GROUP)[name].value}), but that name is built in. Rename it there, or "
            f"uninstall the package."
        )


def predictor_class(name: str) -> type[Predictor]:
    """The class that a plug-in provides under this name, which must have `fit`."""
    check_predictor_name(name)
    if name in BUILT_IN:
        raise ConfigError(f"'{name}' is a built-in rule, not a class; see `fit_predictor`.")
    found: Any = load_plugin(_GROUP, name, Predictor)
    if not isinstance(found, type) or not hasattr(found, "fit"):
        raise ConfigError(
            f"A predictor used by name must be a class with "
            f"`fit(train, val, *, seed, progress=False)`; '{name}' "
            f"({plugins(_GROUP)[name].value}) is not."
        )
    return found


def new_predictor(name: str) -> Predictor:
    """An unfitted predictor of a plug-in."""
    kind = predictor_class(name)
    try:
        return kind()
    except TypeError as error:
        raise ConfigError(
            f"Predictor '{name}' cannot be constructed without arguments: {error}. Give every "
            f"argument of {kind.__name__} a default."
        ) from error


def check_savable(predictor: Predictor) -> None:
    """Raise `ModelError` if a model with this predictor, fitted or not, cannot be saved."""
    found = predictor.out_of_fold
    for member in found.members if found else (predictor,):
        if not isinstance(member, Savable):
            raise ModelError(
                f"A model with {type(member).__name__} cannot be saved: the predictor has no "
                f"`state()` and `from_state(config, arrays)`. Add both, or use the learned "
                f"predictor."
            )
        _saved_name(type(member))


def predictor_state(predictor: Predictor) -> State:
    """Configuration and arrays that `restore_predictor` understands."""
    check_savable(predictor)
    assert isinstance(predictor, Savable)
    config, arrays = predictor.state()
    name = _saved_name(type(predictor))
    if name is not None:
        config = {"kind": _PLUG_IN, "name": name, "config": config}
    return config, arrays


def restore_predictor(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Predictor:
    """Inverse of `predictor_state`."""
    if config["kind"] != _PLUG_IN:
        return cast("Predictor", _built_in(config["kind"]).from_state(config, arrays))
    try:
        kind: Any = predictor_class(config["name"])
    except ConfigError as error:
        raise unloadable(_GROUP, config["name"], error) from error
    return cast("Predictor", kind.from_state(config["config"], arrays))


def _built_in(kind: str) -> Any:
    if kind not in KINDS:
        raise ModelError(f"The predictor has kind '{kind}'; known: {', '.join(KINDS)}.")
    module, _, attribute = KINDS[kind].partition(":")
    return getattr(import_module(module), attribute)


def _saved_name(kind: type[Predictor]) -> str | None:
    """The entry-point name of a class, or `None` for one of ours."""
    own = getattr(kind, "kind", None)
    if own in KINDS and _built_in(own) is kind:
        return None
    path = f"{kind.__module__}:{kind.__qualname__}"
    for name, point in plugins(_GROUP).items():
        if point.value == path:
            return name
    for name in plugins(_GROUP):  # the class may be re-exported, so all are loaded to compare
        with suppress(ConfigError):
            if load_plugin(_GROUP, name, Predictor) is kind:
                return name
    raise ModelError(
        f"A model with {kind.__name__} cannot be saved: it is not published under the entry-point "
        f"group '{_GROUP}', and loading imports nothing else. Add to the package's pyproject.toml: "
        f'[project.entry-points."{_GROUP}"] NAME = "{path}".'
    )
