"""Built-in data sets: load one by name, list them, read their cards.

Every file of this folder without a leading underscore is a data set. To add one, write such a
file with a `Card`, a loader and a `DATASETS` tuple; it is found by itself. For a data set
outside the package, call `register`.
"""

from nocta.datasets._card import Card, Measurement
from nocta.datasets._registry import (
    Dataset,
    card,
    get,
    is_local,
    load,
    load_with_report,
    names,
    register,
)
from nocta.datasets._report import LoadLog, LoadReport

__all__ = [
    "Card",
    "Dataset",
    "LoadLog",
    "LoadReport",
    "Measurement",
    "card",
    "get",
    "is_local",
    "load",
    "load_with_report",
    "names",
    "register",
]
