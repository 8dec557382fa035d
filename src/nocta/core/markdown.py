"""Names in Markdown: as text, as code, and in tables, so that they cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Characters with a meaning inside a line; an underscore has one only at the edge of a word.
_SPECIAL = re.compile(r"[\\`*\[\]|]|(?<!\w)_|_(?!\w)")
_ENTITY = re.compile(r"&(?=#?\w+;)")


def escaped(text: object) -> str:
    """Text that Markdown shows as it is: no HTML, no link, no new column, line or paragraph.

    Example:
        >>> print(escaped("<b>a|b</b>"), escaped("drinks_per_week"), escaped("*x*"))
        &lt;b>a\\|b&lt;/b> drinks_per_week \\*x\\*
    """
    line = " ".join(str(text).split())
    line = _SPECIAL.sub(r"\\\g<0>", _ENTITY.sub("&amp;", line).replace("<", "&lt;"))
    # What would begin a quotation, a title, a rule or a list.
    return re.sub(r"^(\d*)(>|[#+=-]+(?=\s|$)|(?<=\d)[.)](?=\s))", r"\1\\\2", line)


def code(text: object) -> str:
    """Text in a code span, whatever backticks it has; for places outside tables.

    Example:
        >>> print(code("a`b"))
        `` a`b ``
    """
    line = " ".join(str(text).split())
    runs = re.findall("`+", line)
    fence = "`" * (max(map(len, runs), default=0) + 1)
    return f"{fence} {line} {fence}" if runs else f"`{line}`"


def table(
    head: Sequence[object], rows: Sequence[Sequence[object]], *, aligned: bool = False
) -> str:
    """A table of plain text; `aligned` pads its cells, for people who read the source."""
    cells = [[escaped(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) if aligned else 0 for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "|".join("-" * (w + 2) for w in widths) if aligned else " | ".join("---" for _ in head)
    return "\n".join([lines[0], f"|{rule}|" if aligned else f"| {rule} |", *lines[1:]])
