"""Draws who imports whom in `nocta`, from the code, into docs/architecture.md.

    python docs/draw_imports.py            # rewrites the picture
    python docs/draw_imports.py --check    # fails if it is out of date

An arrow points from a package to one it imports, eagerly or lazily. Arrows that follow from others
are left out: if a imports b and b imports c, the picture has no arrow from a to c.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grimp

PAGE = Path(__file__).parent / "architecture.md"
BEGIN = "<!-- imports: drawn by docs/draw_imports.py -->"
END = "<!-- end of imports -->"


def imports() -> dict[str, set[str]]:
    """For each package of `nocta`, the packages it imports."""
    graph = grimp.build_graph("nocta", cache_dir=None)
    packages = sorted(child.removeprefix("nocta.") for child in graph.find_children("nocta"))
    found: dict[str, set[str]] = {name: set() for name in packages}
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = [name.split(".")[1] for name in (module, other) if name.count(".")]
            if len(pair) == 2 and pair[0] != pair[1]:
                found[pair[0]].add(pair[1])
    return found


def reduced(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the arrows that follow from others."""

    def reach(name: str) -> set[str]:
        return found[name].union(*(reach(other) for other in found[name]))

    return {
        name: {b for b in below if not any(b in reach(other) for other in below - {b})}
        for name, below in found.items()
    }


def picture() -> str:
    """A Mermaid flowchart; GitHub draws it, and its source reads as a list of imports."""
    arrows = reduced(imports())
    lines = [f"  {name} --> {' & '.join(sorted(below))}" for name, below in arrows.items() if below]
    return "\n".join([BEGIN, "```mermaid", "flowchart TD", *lines, "```", END])


def redrawn(page: str) -> str:
    """The page with the picture between its markers replaced."""
    head, _, rest = page.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE} has no markers '{BEGIN}' and '{END}'.")
    return head + picture() + tail


def main() -> None:
    page = PAGE.read_text("utf-8")
    new = redrawn(page)
    if new == page:
        return
    if "--check" in sys.argv:
        raise SystemExit(f"The picture in {PAGE} is out of date; run `python {__file__}`.")
    PAGE.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
