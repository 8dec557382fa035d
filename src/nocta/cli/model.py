"""What `DIR` means on the command line: the folder of a saved model, and its cost weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from nocta.core.errors import ConfigError

if TYPE_CHECKING:
    from nocta.model.nocta import NOCTA

ModelArgument = Annotated[
    Path, Argument(metavar="DIR", help="Folder of a model that `nocta fit` wrote.")
]


def choose_cost_weight(model: NOCTA, given: float | None) -> tuple[float, str]:
    """The cost weight to use, and where it comes from."""
    if given is not None:
        return given, "as given"
    kept = getattr(model, "record_", {}).get("cost_weights", [])
    if not kept:
        raise ConfigError("This model has no saved cost weights; give one with --cost-weight.")
    # Cheapest first: from an even number, the cheaper of the two in the middle.
    return kept[(len(kept) - 1) // 2], f"the middle one of the {len(kept)} saved with the model"
