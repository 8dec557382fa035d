"""A data set: its card, its loader, and the options of the loader.

Options are checked against the loader's signature before anything is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, did_you_mean
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
        fixed = self.loader.keywords if isinstance(self.loader, partial) else {}
        parameters = list(inspect.signature(self.loader).parameters.values())[1:]
        return {p.name: p.default for p in parameters if p.name not in fixed}

    @property
    def text_options(self) -> set[str]:
        """Options whose value is text, or a list of texts."""
        kinds = self._kinds()
        return {o for o in self.options if kinds.get(o) in (str, Sequence[str])}

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options with the types of the loader's signature, so that `"3"` becomes 3.

        An option without a type is not checked; a list of texts may be one text with commas.
        """
        known, kinds = self.options, self._kinds()
        for option in options:
            if option not in known:
                raise ConfigError(
                    f"'{self.name}' has no option '{option}'.{did_you_mean(option, known)} "
                    f"Its options: {', '.join(sorted(known)) or 'none'}."
                )
        return {o: self._read(o, value, kinds.get(o, Any)) for o, value in options.items()}

    def _read(self, option: str, value: Any, kind: Any) -> Any:
        from pydantic import ConfigDict, TypeAdapter, ValidationError

        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str) and kind == Sequence[str]:
            value = [item.strip() for item in value.split(",")]
        config = ConfigDict(arbitrary_types_allowed=True)
        try:
            return TypeAdapter(kind, config=config).validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"at {key!r}, " for key in first["loc"])
            said = first["msg"][:1].lower() + first["msg"][1:]
            about = self.card.options.get(option)
            raise ConfigError(
                f"{option} is {value!r}, which '{self.name}' cannot use: {place}{said}."
                + (f" {option}: {about}." if about else "")
            ) from error

    def _kinds(self) -> dict[str, Any]:
        """Types of the options; none if an annotation is only imported for type checkers."""
        loader = self.loader.func if isinstance(self.loader, partial) else self.loader
        try:
            return get_type_hints(loader)
        except NameError:
            return {}

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
