"""Progress bars in a terminal or notebook; one line per minute in a file or a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm
from tqdm.std import tqdm as text_bar


def progress_bar(
    items: Iterable[Any] | None = None,
    *,
    show: bool = True,
    seconds_between_lines: float = 60.0,
    **options: Any,
) -> tqdm[Any]:
    """A bar over `items`, or one that is updated by hand; `options` are those of `tqdm`."""
    stream = options.get("file") or sys.stderr
    if not show or stream is None:  # a process without a console has no stream
        return tqdm(items, disable=True, **options)
    # A notebook is not a terminal, but draws bars as widgets.
    widgets = tqdm.status_printer is not text_bar.status_printer
    terminal = hasattr(stream, "isatty") and stream.isatty()
    if widgets or terminal:
        return tqdm(items, **options)
    return _Lines(items, seconds_between_lines=seconds_between_lines, **options)


class _Lines(text_bar):  # type: ignore[misc]  # tqdm has no types
    """A bar in whole lines."""

    def __init__(self, *args: Any, seconds_between_lines: float, **options: Any) -> None:
        self._seconds = seconds_between_lines
        self._due = time.monotonic() + self._seconds
        self._said: float | None = None  # position in the last line
        # In tqdm's GUI mode only `display` draws.
        super().__init__(*args, gui=True, **options)

    def display(self, *_: Any, **__: Any) -> None:
        """Write the position if a line is due."""
        if time.monotonic() >= self._due:
            self._say()

    def close(self) -> None:
        """Write the final position."""
        # A bar that was never closed may outlive the stream.
        if not self.disable and not getattr(self.fp, "closed", False) and self._said != self.n:
            self._say()
        super().close()

    def clear(self, *_: Any, **__: Any) -> None:
        """Lines stay."""

    def _say(self) -> None:
        self._due, self._said = time.monotonic() + self._seconds, self.n
        self.fp.write(f"{self}\n")
        self.fp.flush()
