"""What `DIR` means on the command line: the folder of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder of a model, as `nocta fit` writes it.", show_default=False
    ),
]
