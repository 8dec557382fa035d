"""The habits of scikit-learn's estimators, without importing it: that takes over a second."""

from __future__ import annotations

import inspect
from typing import Any, Self

from nocta.core.errors import ConfigError, did_you_mean


class Parameters:
    """Arguments of the constructor by name, as `sklearn.base.clone` and grid searches use them.

    A class that derives from it only stores its arguments in `__init__`, under their names.
    """

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(set(inspect.signature(cls).parameters))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments this object was made with."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change some arguments; call `fit` afterwards."""
        for name, value in params.items():
            if name not in self._names():
                hint = did_you_mean(name, self._names())
                raise ConfigError(f"{type(self).__name__} has no parameter '{name}'.{hint}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = inspect.signature(type(self)).parameters
        changed = {k: v for k, v in self.get_params().items() if v is not given[k].default}
        text = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({text})"
