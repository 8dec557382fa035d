"""A data set: its card, its loader, and the options of the loader.

Options are checked against the loader's signature before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.options import call_options
from nocta.datasets._card import Card


@dataclass(frozen=True)
class Dataset:
    """A card and the function that loads what it describes.

    Args:
        card: Describes the data set; its name is the name to load it by.
        loader: Called with a `LoadLog` and the user's options (with `path` if the user has to
            download files); returns the cohort. What a `functools.partial` fixes is not an option.

    Example:
        >>> from nocta import datasets
        >>> datasets.get("adni").check({"min_labels": "3"})
        {'min_labels': 3}
    """

    card: Card
    loader: Callable[..., Cohort]

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def fractions(self) -> tuple[float, ...]:
        """Sizes of the train, validation and test split by default."""
        return self.card.fractions

    @property
    def options(self) -> dict[str, Any]:
        """Options of the loader, with default values."""
        return {name: f.default for name, f in call_options(self.loader).model_fields.items()}

    @property
    def text_options(self) -> set[str]:
        """Options whose value is text, or a list of texts."""
        fields = call_options(self.loader).model_fields
        return {name for name, f in fields.items() if f.annotation in (str, Sequence[str])}

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options with the types of the loader's signature, so that `"3"` becomes 3.

        An option without a type is not checked; a list of texts may be one text with commas.
        """
        bundle, given = call_options(self.loader), dict(options)
        for name, value in options.items():
            field = bundle.model_fields.get(name)
            if isinstance(value, np.generic):
                given[name] = value.item()
            elif isinstance(value, str) and field and field.annotation == Sequence[str]:
                given[name] = [item.strip() for item in value.split(",")]
        try:
            checked = bundle(**given)
        except ConfigError as error:
            raise ConfigError(f"Data set '{self.name}': {error}") from None
        return {name: getattr(checked, name) for name in given}

    def check_split_column(self, column: str) -> None:
        """Raise `ConfigError` if the data set has no split of this name."""
        own = self.card.split_column
        if not own:
            raise ConfigError(
                f"'{self.name}' has no split of its own. Leave out --split-column; the seed then "
                f"splits the subjects."
            )
        if column != own:
            raise ConfigError(
                f"'{self.name}' has no split column '{column}'.{did_you_mean(column, [own])} Its "
                f"own split is by '{own}'; without --split-column the seed splits the subjects."
            )
