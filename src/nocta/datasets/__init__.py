"""Built-in data sets: load one by name, list them, read their cards.

Each file of this folder without a leading underscore is a data set: a `Card`, a loader and a
`DATASETS` tuple. A data set of your own belongs in your own package: declare a `Dataset` under the
entry point `nocta.datasets`, and every command and worker process finds it by name. For a quick
try in one process, call `register`.
"""

from nocta.datasets._card import Card, Measurement
from nocta.datasets._dataset import Dataset
from nocta.datasets._load_log import LoadLog, LoadSummary
from nocta.datasets._registry import card, get, is_local, load, load_with_summary, names, register

__all__ = [
    "Card",
    "Dataset",
    "LoadLog",
    "LoadSummary",
    "Measurement",
    "card",
    "get",
    "is_local",
    "load",
    "load_with_summary",
    "names",
    "register",
]
