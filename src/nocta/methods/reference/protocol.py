"""The reference method `protocol`: a fixed schedule that the user follows today.

It is named in `schema.toml` (`[protocols.NAME]`), and a comparison adds it by itself: as
`protocol`, or as `protocol-NAME` if there are several.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, did_you_mean
from nocta.methods.reference.method import OnePlan
from nocta.methods.references import plan_setting
from nocta.methods.registry import SUFFIX
from nocta.model.state import Arrays, State

PROTOCOL = "protocol"


class Protocol(OnePlan):
    """A schedule of the schema, for everybody, as far as constraints and budget allow."""

    name = PROTOCOL

    plan_: NDArray[np.bool_]

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        name = self.name.removesuffix(SUFFIX)
        self.plan_ = protocol_plans(train.catalog, name)[name]
        super()._choose(train, val, seed, progress)

    def _plan(self) -> NDArray[np.bool_]:
        return self.plan_

    def _learned(self) -> State:
        return super()._learned()[0], {"plan": self.plan_}

    def _recall(self, config: dict[str, Any], arrays: Arrays) -> None:
        super()._recall(config, arrays)
        self.plan_ = arrays["plan"]


@cache
def protocol_class(name: str) -> type[Protocol]:
    """The method of one protocol."""
    if name == PROTOCOL:
        return Protocol
    named = {"name": name, "__doc__": f"The schedule [protocols.{name.partition('-')[2]}]."}
    return type("NamedProtocol", (Protocol,), named)


def protocol_plans(catalog: Catalog, asked: str = "") -> dict[str, NDArray[np.bool_]]:
    """The schedules, `(L, M)`, of a schema's protocols by the name of their method.

    Raises `ConfigError` if there is none that is called as `asked`.
    """
    names = list(catalog.protocols)
    several = len(names) > 1
    found = {
        f"{PROTOCOL}-{name}" if several else PROTOCOL: catalog.protocol_plan(name) for name in names
    }
    if asked and asked not in found:
        known = ", ".join(found) or "none; add a table [protocols.current] to the schema"
        hint = did_you_mean(asked, found)
        raise ConfigError(f"The schema has no protocol '{asked}'.{hint} It has: {known}.")
    return found


def protocol_settings(catalog: Catalog, at: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The schema's protocols as reference settings of a method; `at` is whose policy predicts."""
    plans = protocol_plans(catalog)
    return [plan_setting(name, plan, catalog, at) for name, plan in plans.items()]
