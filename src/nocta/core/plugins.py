"""Plugins of other installed packages, found through their entry points.

A package declares, for instance in its `pyproject.toml`:

    [project.entry-points."nocta.methods"]
    coin-flip = "their_package:CoinFlip"

Worker processes and Dask workers find the same plugins if the package is installed there.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from nocta.core.errors import ConfigError, ModelError

Group = Literal["nocta.methods", "nocta.predictors", "nocta.estimators", "nocta.datasets"]


@cache
def plugins(group: Group) -> dict[str, EntryPoint]:
    """Entry points of a group by name, in alphabetical order; nothing is imported."""
    return {p.name: p for p in sorted(entry_points(group=group), key=lambda p: (p.name, p.value))}


def load_plugin(group: Group, name: str, expected: type) -> Any:
    """Import what an entry point names: a class derived from `expected`, or an instance of it."""
    point = plugins(group)[name]
    values = sorted({p.value for p in entry_points(group=group) if p.name == name})
    if len(values) > 1:
        raise ConfigError(
            f"Two installed packages provide '{name}' for '{group}': {' and '.join(values)}. "
            f"Uninstall one of them."
        )
    try:
        found = point.load()
    except Exception as error:
        raise ConfigError(
            f"'{name}' of '{group}' ({point.value}) cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    if isinstance(found, expected) or (isinstance(found, type) and issubclass(found, expected)):
        return found
    raise ConfigError(
        f"'{name}' of '{group}' ({point.value}) is {found!r}; expected a "
        f"{expected.__module__}.{expected.__name__}."
    )


def unloadable(group: Group, name: str, error: ConfigError) -> ModelError:
    """The error to raise if a saved model names a plugin that cannot be loaded."""
    why = f"cannot be loaded here: {error}" if name in plugins(group) else "is not installed here."
    return ModelError(
        f"The model was fitted with the {group.removeprefix('nocta.').removesuffix('s')} "
        f"'{name}', which {why} Install the package that provides it."
    )
