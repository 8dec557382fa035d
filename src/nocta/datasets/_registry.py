"""Data sets by name: found in this folder, loaded when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, did_you_mean
from nocta.datasets._card import Card
from nocta.datasets._options import check_options, option_defaults, text_options
from nocta.datasets._report import LoadLog, LoadReport


@dataclass(frozen=True)
class Dataset:
    """A card and the function that loads what it describes.

    Args:
        card: What the data set is; its name is the name to load it by.
        loader: Called with a `LoadLog` and the user's options (`path` among them where files
            have to be downloaded); returns the cohort. What a `functools.partial` fixes is not
            an option.
    """

    card: Card
    loader: Callable[..., Cohort]

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def fractions(self) -> tuple[float, ...]:
        """Train, validation and test part by default."""
        return self.card.fractions

    @property
    def options(self) -> dict[str, Any]:
        """What the loader accepts, with default values."""
        return option_defaults(self.loader)

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options as the loader takes them; nothing is read.

        Example:
            >>> get("adni").check({"min_labels": "3"})
            {'min_labels': 3}

        Raises:
            ConfigError: There is no such option, or its value is of another kind.
        """
        return check_options(self.name, self.loader, options, self.card.options)

    @property
    def text_options(self) -> set[str]:
        """Options that take text, or a list of texts.

        Example:
            >>> get("oai-klg").text_options
            {'visits'}
        """
        return text_options(self.loader)

    def check_split_column(self, column: str) -> None:
        """Refuse a split column that is not the data set's own.

        Raises:
            ConfigError: It has no split of its own, or calls it by another name.
        """
        own = self.card.split_column
        if not own:
            raise ConfigError(
                f"'{self.name}' has no split of its own; leave out --split-column, and the "
                f"subjects are divided by the seed."
            )
        if column != own:
            raise ConfigError(
                f"'{self.name}' has no split column '{column}'.{did_you_mean(column, [own])} Its "
                f"own split is by '{own}'; without --split-column the seed divides the subjects."
            )


_registered: dict[str, Dataset] = {}


def _discover() -> dict[str, Dataset]:
    """Every data set: those of this folder in alphabetical order, then registered ones."""
    import nocta.datasets as package

    found: dict[str, Dataset] = {}
    for module in iter_modules(package.__path__):
        if not module.name.startswith("_"):
            entries = import_module(f"{package.__name__}.{module.name}").DATASETS
            found |= {dataset.name: dataset for dataset in entries}
    return found | _registered


def register(dataset: Dataset) -> None:
    """Make a data set of your own available by name, in Python and to every command.

    Args:
        dataset: Its name must not be taken.
    """
    if dataset.name in _discover():
        raise ConfigError(f"There is already a data set '{dataset.name}'; choose another name.")
    _registered[dataset.name] = dataset


def is_local(name: str) -> bool:
    """Whether only this process knows the data set, because it was added with `register`."""
    return name in _registered


def names() -> list[str]:
    """Names of the built-in data sets.

    Example:
        >>> "synthetic" in names()
        True
    """
    return sorted(_discover())


def get(name: str) -> Dataset:
    """The entry of a data set: card, loader, options, default split."""
    known = _discover()
    if name not in known:
        family = [f"'{k}'" for k in known if k.startswith(f"{name}-")]
        hint = f" Did you mean {' or '.join(family)}?" if family else did_you_mean(name, known)
        raise ConfigError(
            f"There is no data set '{name}'.{hint} "
            f"Known are: {', '.join(sorted(known))}. `nocta datasets` describes them; a table of "
            f"your own is given by its path."
        )
    return known[name]


def card(name: str) -> Card:
    """The data card of a data set.

    Example:
        >>> card("pbc-event").currency
        '$'
    """
    return get(name).card


def load(
    name: str, *, path: str | Path | None = None, progress: bool = False, **options: Any
) -> Cohort:
    """Load a data set by name.

    Args:
        name: One of `names()`.
        path: Folder or file with the downloaded data; by default the folders named on the card
            are searched.
        progress: Show a bar while many files are read.
        options: Options of this data set; its card lists them.

    Example:
        >>> load("synthetic", n_subjects=5, seed=1)
        Cohort('synthetic': 5 subjects, 10 times, 2 features, 21 classes)
    """
    return load_with_report(name, path=path, progress=progress, **options)[0]


def load_with_report(
    name: str, *, path: str | Path | None = None, progress: bool = False, **options: Any
) -> tuple[Cohort, LoadReport]:
    """Load a data set and say what was read, what was dropped, and why."""
    dataset = get(name)
    if path is not None:
        if "path" not in dataset.options:
            raise ConfigError(f"'{name}' needs no files of yours; leave out the path '{path}'.")
        options["path"] = path
    log = LoadLog(progress=progress)
    cohort = dataset.loader(log, **dataset.check(options))
    return cohort, LoadReport.of(cohort, log)
