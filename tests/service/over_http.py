"""Names that the tests of the service share."""

from __future__ import annotations

from collections.abc import Callable

from fastapi.testclient import TestClient

KEY = "the key of this start"
#: A cost weight at which something is recommended, and not everything.
WEIGHT = 0.004
Connect = Callable[..., TestClient]
