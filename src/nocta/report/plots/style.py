"""One style for every figure: fonts, axes, and a fixed color, marker and line per method.

The colors are those of Okabe and Ito, which color-blind readers can distinguish. Marker and line
style distinguish methods without color.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nocta.model.files import save_atomically

#: Width in inches of one and of two text columns.
COLUMN, PAGE = 3.5, 7.0
GRAY = "#6e6e6e"
INK = "#222222"


@dataclass(frozen=True)
class MethodStyle:
    """How one method is drawn."""

    label: str
    color: str
    marker: str
    line: Any = "-"


#: In the order of the legend: ours, the paper's baselines, the reference policies.
METHOD_STYLES: dict[str, MethodStyle] = {
    "nocta-auto": MethodStyle("NOCTA", "#5B0F8B", "H", (0, (4, 1))),
    "nocta-direct": MethodStyle("NOCT-Direct", "#B00020", "p", (0, (12, 1))),
    "nocta-ensemble": MethodStyle("NOCTA ensemble", "#000000", "*", "-"),
    "nocta-contrastive": MethodStyle("NOCT-Contrastive", "#D55E00", "o", (0, (9, 1.5))),
    "nocta-amortized": MethodStyle("NOCT-Amortized", "#0072B2", "s", "-"),
    "asac": MethodStyle("ASAC", "#009E73", "^", (0, (5, 1.5))),
    "ras": MethodStyle("RAS", "#CC79A7", "v", (0, (5, 1.5, 1, 1.5))),
    "as": MethodStyle("AS", "#882255", "<", (0, (2, 1))),
    "dime": MethodStyle("DIME", "#56B4E9", "D", (0, (3, 1.2))),
    "difa": MethodStyle("DiFA", "#E69F00", "P", (0, (7, 1.5, 1, 1.5, 1, 1.5))),
    "static": MethodStyle("static subset", "#4d4d4d", "X", (0, (3, 1, 1, 1))),
    "periodic": MethodStyle("periodic", "#7f7f7f", "h", (0, (3, 1, 1, 1, 1, 1))),
    "random": MethodStyle("random", "#8a8a8a", ">", (0, (1, 1.2))),
    "first-visit": MethodStyle("first visit", "#7f7f7f", "d", (0, (1, 2.4))),
    "nothing": MethodStyle("nothing", "#333333", "x", "none"),
    "everything": MethodStyle("everything", "#333333", "+", "none"),
}
_SPARE_COLORS = ("#882255", "#117733", "#332288", "#AA4499", "#999933", "#44AA99", "#661100")
_SPARE_MARKERS = ("p", "H", "8", "1", "2", "^", "D")
_SPARE_LINES: tuple[Any, ...] = ("-.", (0, (2, 1)), (0, (6, 1.5)))

_RC: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "nocta",
    # Names and currencies may hold dollar signs; no text of ours is a formula.
    "text.parse_math": False,
}


def method_style(name: str, position: int = 0) -> MethodStyle:
    """The style of a method; an unknown method gets a spare style by its position."""
    if name in METHOD_STYLES:
        return METHOD_STYLES[name]
    method, _, options = name.partition(" ")
    known = METHOD_STYLES.get(method)
    label = f"{known.label} {options}" if known else name
    i = position % len(_SPARE_COLORS)
    return MethodStyle(
        label, _SPARE_COLORS[i], _SPARE_MARKERS[i], _SPARE_LINES[position % len(_SPARE_LINES)]
    )


def legend_order(names: list[str]) -> list[str]:
    """Known methods in their fixed order, then the others in the given order."""
    known = [name for name in METHOD_STYLES if name in names]
    return known + [name for name in names if name not in METHOD_STYLES]


@contextmanager
def house_style() -> Iterator[None]:
    """Use the style inside this context only."""
    import matplotlib as mpl

    with mpl.rc_context(_RC):
        yield


def save_figure(figure: Any, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure in the format of its suffix (.png, .svg, .pdf)."""
    path = Path(path)
    # No date, so the same data give the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {})
    kind = path.suffix.removeprefix(".") or None
    with house_style():
        save_atomically(
            path,
            lambda part: figure.savefig(
                part, format=kind, dpi=dpi, bbox_inches="tight", metadata=metadata
            ),
        )
    return path
