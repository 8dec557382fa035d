"""Data sets by name: those of this folder, of other installed packages, and of this process."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.plugins import load_plugin, plugins
from nocta.datasets._card import Card
from nocta.datasets._dataset import Dataset
from nocta.datasets._load_log import LoadLog, LoadSummary

_GROUP: Final = "nocta.datasets"
_local: dict[str, Dataset] = {}


@cache
def _built_in() -> dict[str, Dataset]:
    """The data sets of this folder."""
    import nocta.datasets as package

    modules = [m.name for m in iter_modules(package.__path__) if not m.name.startswith("_")]
    entries = [import_module(f"{package.__name__}.{name}").DATASETS for name in modules]
    return {dataset.name: dataset for found in entries for dataset in found}


def register(dataset: Dataset) -> None:
    """Make a data set available by name in this process only.

    Worker processes do not know it, and neither does the `nocta` command. For those, declare the
    entry point `nocta.datasets` in an installed package; see `examples/extending/`.
    """
    if dataset.name in names():
        raise ConfigError(f"There is already a data set '{dataset.name}'; choose another name.")
    _local[dataset.name] = dataset


def is_local(name: str) -> bool:
    """Whether only this process knows the data set, because it was added with `register`."""
    return name in _local


def names() -> list[str]:
    """Names of all data sets: built in, from installed packages, and registered.

    Nothing of another package is imported, so a listed data set may still fail in `get`.
    """
    return sorted({*_built_in(), *plugins(_GROUP), *_local})


def get(name: str) -> Dataset:
    """The entry of a data set: card, loader, options, default split."""
    if name in plugins(_GROUP):
        return _plugin(name)
    known = _built_in() | _local
    if name not in known:
        family = [f"'{k}'" for k in names() if k.startswith(f"{name}-")]
        hint = f" Did you mean {' or '.join(family)}?" if family else did_you_mean(name, names())
        raise ConfigError(
            f"There is no data set '{name}'.{hint} Known data sets: {', '.join(names())}. "
            f"`nocta datasets` describes them. To use a table of your own, give its path."
        )
    return known[name]


def _plugin(name: str) -> Dataset:
    """A data set of another installed package."""
    point = plugins(_GROUP)[name].value
    if name in _built_in():
        raise ConfigError(
            f"An installed package provides the data set '{name}' ({point}), but this name is "
            f"built in. Rename its entry point, or uninstall the package."
        )
    dataset = load_plugin(_GROUP, name, Dataset)
    if not isinstance(dataset, Dataset) or dataset.name != name:
        found = f"a data set named '{dataset.name}'" if isinstance(dataset, Dataset) else "a class"
        raise ConfigError(
            f"The entry point '{name}' of '{_GROUP}' ({point}) holds {found}; expected a "
            f"nocta.datasets.Dataset whose card is named '{name}'."
        )
    return dataset


def card(name: str) -> Card:
    """The data card of a data set."""
    return get(name).card


def load(
    name: str, *, path: str | Path | None = None, progress: bool = False, **options: Any
) -> Cohort:
    """Load a data set by name.

    Args:
        name: One of `names()`.
        path: Folder or file with the downloaded data; by default, the folders on the card.
        progress: Show a bar while many files are read.
        options: Options of this data set, as listed on its card.

    Example:
        >>> load("synthetic", n_subjects=5, seed=1)
        Cohort('synthetic': 5 subjects, 10 times, 2 features, 21 classes)
    """
    return load_with_summary(name, path=path, progress=progress, **options)[0]


def load_with_summary(
    name: str, *, path: str | Path | None = None, progress: bool = False, **options: Any
) -> tuple[Cohort, LoadSummary]:
    """Load a data set, with a summary of what was read, what was dropped, and why."""
    dataset = get(name)
    if path is not None:
        if "path" not in dataset.options:
            raise ConfigError(f"'{name}' does not use files; remove the path '{path}'.")
        options["path"] = path
    log = LoadLog(progress=progress)
    cohort = dataset.loader(log, **dataset.check(options))
    if dataset.card.published and options.keys() <= {"n_subjects", "seed", "path"}:
        cohort = replace(cohort, published=dataset.card.published)
    return cohort, LoadSummary.of(cohort, log, dataset.card.unit)
