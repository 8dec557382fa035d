"""Fitted objects as plain configuration and arrays: parts, networks, predictors and cohorts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.predictors.encoding import arrays_under

Arrays = dict[str, NDArray[Any]]
State = tuple[dict[str, Any], Arrays]
N = TypeVar("N", bound=nn.Module)
_COHORT_ARRAYS = ("values", "labels", "visits", "context")


def nest(config: dict[str, Any], arrays: Mapping[str, NDArray[Any]], **parts: State) -> State:
    """A state with the configuration and arrays of its parts under their names."""
    out = dict(arrays)
    for name, (_, own) in parts.items():
        out |= {f"{name}.{key}": array for key, array in own.items()}
    return {**config, **{name: part[0] for name, part in parts.items()}}, out


def take_part(config: dict[str, Any], arrays: Arrays, name: str) -> State:
    """One part of what `nest` made."""
    return config[name], arrays_under(arrays, f"{name}.")


def net_arrays(net: nn.Module) -> Arrays:
    """The weights of a network."""
    return {name: weight.numpy() for name, weight in net.state_dict().items()}


def load_net(net: N, arrays: Arrays) -> N:
    """The network with these weights, ready to be used."""
    net.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in arrays.items()})
    net.eval()
    return net


def cohort_state(cohort: Cohort) -> State:
    """What is needed to learn from or retrieve these subjects again, without their identifiers.

    Groups and assigned parts are left out too. The values are kept: this state holds data of
    subjects.
    """
    catalog, classes = cohort.catalog.to_dict(), list(cohort.classes)
    config = {"name": cohort.name, "catalog": catalog, "classes": classes}
    return config, {name: getattr(cohort, name) for name in _COHORT_ARRAYS}


def restore_cohort(config: dict[str, Any], arrays: Arrays) -> Cohort:
    """Inverse of `cohort_state`; subjects are numbered from 0."""
    return Cohort(
        values=arrays["values"],
        labels=arrays["labels"],
        visits=arrays["visits"],
        context=arrays["context"],
        subjects=np.arange(len(arrays["values"])),
        catalog=Catalog.from_dict(config["catalog"]),
        classes=tuple(config["classes"]),
        name=config["name"],
    )
