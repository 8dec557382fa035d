"""Functions that `core` offers and a higher layer provides; `nocta/__init__.py` connects them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Reads a long table with its schema into a `Cohort`; provided by `nocta.tables`.
read_table: Callable[[Any, Any], Any]
