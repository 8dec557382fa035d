"""Progress bars; where no terminal shows them, a line now and then.

A bar is redrawn several times a second. A file or a pipe keeps every drawing, so there a bar says
how far it is once a minute, and where it ended, in lines of their own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm
from tqdm.std import tqdm as text_bar

#: Seconds between two lines of one bar.
SECONDS_BETWEEN_LINES = 60.0


def progress_bar(
    items: Iterable[Any] | None = None, *, show: bool = True, **options: Any
) -> tqdm[Any]:
    """A bar over `items`, or one that is moved by hand.

    Args:
        items: What is gone through.
        show: Whether anything is shown at all.
        options: As of `tqdm`: `total`, `desc`, `unit` and so on.

    Example:
        >>> sum(progress_bar([1, 2, 3], show=False))
        6
    """
    stream = options.get("file") or sys.stderr
    if not show or stream is None:  # a process without a console has no stream
        return tqdm(items, disable=True, **options)
    # A notebook is no terminal either, but draws bars as widgets.
    widgets = tqdm.status_printer is not text_bar.status_printer
    terminal = hasattr(stream, "isatty") and stream.isatty()
    return (tqdm if widgets or terminal else _Lines)(items, **options)


class _Lines(text_bar):  # type: ignore[misc]  # tqdm has no types
    """A bar in whole lines."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._due = time.monotonic() + SECONDS_BETWEEN_LINES
        self._said: float | None = None  # how far it was in the last line
        # What tqdm calls a GUI: nothing is drawn but by `display`.
        super().__init__(*args, gui=True, **options)

    def display(self, *_: Any, **__: Any) -> None:
        """Say how far it is, if it is time to."""
        if time.monotonic() >= self._due:
            self._say()

    def close(self) -> None:
        """Say where it ended."""
        # A bar that nobody closed may outlive the stream.
        if not self.disable and not getattr(self.fp, "closed", False) and self._said != self.n:
            self._say()
        super().close()

    def clear(self, *_: Any, **__: Any) -> None:
        """Lines stay."""

    def _say(self) -> None:
        self._due, self._said = time.monotonic() + SECONDS_BETWEEN_LINES, self.n
        self.fp.write(f"{self}\n")
        self.fp.flush()
