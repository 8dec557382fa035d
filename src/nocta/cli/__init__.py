"""The command line: one file per command, imported only when it is called."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run `nocta` with these arguments (those of the process by default) and exit.

    Exit status: 0 success, 2 wrong input, 1 anything else. SIGTERM acts like Ctrl-C: finished work
    is kept, and all workers stop.
    """
    from nocta.cli.app import app

    if not sys.warnoptions and "PYTHONWARNINGS" not in os.environ:
        # What a user has to know is said in a sentence; warnings are for developers. Workers and
        # isolated processes inherit this.
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"
    signal.signal(signal.SIGTERM, _interrupt)

    app(args=None if argv is None else list(argv), prog_name="nocta")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
