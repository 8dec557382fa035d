"""Speed and scale in one table: `make bench`.

    python benchmarks/bench.py                    every part, full size
    python benchmarks/bench.py --quick            every part, in minutes
    python benchmarks/bench.py reference growth   some parts

    python benchmarks/bench.py --table            nothing is measured, table and page made again

Each part leaves `<part>.json` in `results/bench/` and is not run again while that is there in the
same size, unless `--again` is given; the page says which parts were measured with other code than
the newest. The table of ratios, the figure and the page `docs/explanation/scaling.md` are made
from these files (and from `large.csv`, which `benchmarks/large.py` writes). The quick version
writes to `build/bench/quick/` and leaves the page alone, unless `--out` and `--page` say otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from measure import about, source_hash, timed
from nocta.model.files import write_atomically
from scenes import FULL, QUICK, TINY, Sizes

#: Name of a part -> its module; in this order.
PARTS = {
    "reference": "part_reference",
    "default": "part_default",
    "decide": "part_decide",
    "rate": "part_rate",
    "threads": "part_threads",
    "growth": "part_growth",
    "bank": "part_bank",
    "methods": "part_methods",
}
#: Version of the files; a part with another version is measured again.
FORMAT = 2


def run_part(name: str, sizes: Sizes, out: Path, models: Path, again: bool = False) -> None:
    """Measure one part and write its file, unless that is there already."""
    file = out / f"{name}.json"
    found = _read(file)
    if found is not None and found["sizes"] == sizes.name and not again:
        other = found["about"]["source"] != source_hash()
        print(f"{name}: kept {file}{', measured with other code' if other else ''}")
        return
    print(f"{name}: measuring", flush=True)
    found, took = timed(lambda: import_module(PARTS[name]).measure(sizes, models))
    whole = {"part": name, "format": FORMAT, "sizes": sizes.name, "about": about()}
    whole |= {"took": took.to_dict(), **found}
    write_atomically(file, json.dumps(whole, indent=1) + "\n")


def _read(file: Path) -> dict[str, Any] | None:
    """What a part left, unless there is nothing, or something of another format."""
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found if found.get("format") == FORMAT else None


def read_results(out: Path) -> dict[str, dict[str, Any]]:
    """What has been measured so far, by part."""
    found = {name: _read(out / f"{name}.json") for name in PARTS}
    return {name: part for name, part in found.items() if part is not None}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(PARTS)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="sizes", action="store_const", const=QUICK, default=FULL)
    size.add_argument("--tiny", dest="sizes", action="store_const", const=TINY, help="for tests")
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, help="where the files of the parts go")
    parser.add_argument("--models", type=Path, default=Path("build/bench"), help="kept models")
    parser.add_argument("--page", type=Path, help="the page to write")
    found = parser.parse_args(arguments)
    unknown = [name for name in found.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}'; the parts are {', '.join(PARTS)}")
    full = found.sizes is FULL
    found.out = found.out or (Path("results/bench") if full else found.models / found.sizes.name)
    found.page = found.page or (Path("docs/explanation/scaling.md") if full else None)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run parts, print the table, write figure and page."""
    from growth_figure import growth_figure
    from nocta.report.plots.style import save_figure
    from page import write_page
    from tables import print_table, read_large

    given = parse(arguments)
    torch.set_num_threads(1)
    source_hash()  # of what is loaded now, whatever is edited while this runs
    for name in () if given.table else given.parts or PARTS:
        run_part(name, given.sizes, given.out, given.models, given.again)
    results, large = read_results(given.out), read_large(given.out / "large.csv")
    print_table(results, large, sys.stdout)
    print("Large cohorts are measured apart, in hours: `make bench-large` (benchmarks/large.py).")
    if "growth" in results:
        figure = growth_figure(results["growth"]["curves"])
        for ending in ("png", "svg"):
            save_figure(figure, given.out / f"growth.{ending}")
    if given.page is not None:
        write_page(results, large, given.page)


if __name__ == "__main__":
    main()
