"""Functions that `core` calls and a higher layer implements; `nocta/__init__.py` sets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Reads a long table with its schema into a `Cohort`; implemented by `nocta.tables`.
read_table: Callable[[Any, Any], Any]
