"""Make the pictures of reports in `docs/images` from `examples/clinic.csv`.

    python docs/draw_report.py [--work FOLDER]

It needs chromium (or Google Chrome) on the path. With `--work`, finished jobs and the model are
kept there and used again.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
DATA = ROOT / "examples" / "clinic.csv"
IMAGES = ROOT / "docs" / "images"
METHODS = "nocta-amortized,static,everything,nothing"
#: Name of the picture: page, width of the window, top and height of what is shown, in pixels.
PICTURES = {
    "report": ("compare/report.html", 1280, 0, 1240),
    "report-phone": ("compare/report.html", 500, 0, 1120),
    "evaluation": ("evaluate.html", 1280, 0, 2150),
}
#: Width of a picture of a wide window.
WIDTH = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args().work
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    if browser is None:
        raise SystemExit("No chromium found; install it and put it on the path.")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(given or folder).resolve()
        work.mkdir(parents=True, exist_ok=True)
        make_pages(work)
        IMAGES.mkdir(exist_ok=True)
        for name, (page, width, top, height) in PICTURES.items():
            draw(browser, work / page, IMAGES / f"{name}.png", width, top, height)


def make_pages(work: Path) -> None:
    """Both reports; what is there already is not computed again."""
    out = work / "compare"
    nocta("compare", DATA, "--methods", METHODS, "--seeds", 2, "--quick", "--jobs", 1, "--out", out)
    if not (work / "model" / "card.md").is_file():
        nocta("fit", DATA, "--quick", "--out", work / "model", "--force")
    out, page = work / "evaluate.csv", work / "evaluate.html"
    nocta("evaluate", work / "model", DATA, "--out", out, "--report", page)


def nocta(*arguments: object) -> None:
    command = Path(sys.executable).with_name("nocta")
    subprocess.run([str(command), *map(str, arguments), "--quiet"], check=True)


def draw(browser: str, page: Path, out: Path, width: int, top: int, height: int) -> None:
    """Part of a page as a small PNG."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    size = f"--window-size={width},{top + height}"
    shot = f"--screenshot={out}"
    subprocess.run(
        [browser, *flags, "--hide-scrollbars", size, shot, page.as_uri()],
        check=True,
        capture_output=True,
    )
    with Image.open(out) as picture:
        part = picture.convert("RGB").crop((0, top, width, top + height))
    if width > WIDTH:
        part = part.resize((WIDTH, round(height * WIDTH / width)), Image.Resampling.LANCZOS)
    part.quantize(64).save(out, optimize=True)
    print(f"{out.relative_to(ROOT)}: {out.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
