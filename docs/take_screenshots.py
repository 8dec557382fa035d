"""Take the pictures of the page: a quick fit of the example, the demo case, light and dark."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests" / "service"), str(ROOT / "tests")]

from browsing import browser  # noqa: E402
from running_service import listening  # noqa: E402

from nocta.service.app import Settings, create_app  # noqa: E402
from nocta.service.planner import ServedModel  # noqa: E402
from nocta.service.store import Store  # noqa: E402

KEY = "key-of-the-pictures"


def main() -> None:
    """Write `docs/images/planner.png`, `planner-dark.png` and `planner-small.png`."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        table = ROOT / "examples" / "clinic.csv"
        command = ["fit", str(table), "--quick", "--quiet", "--out", str(model)]
        start = [sys.executable, "-c", "from nocta.cli import main; main()"]
        subprocess.run([*start, *command], check=True)
        served = ServedModel(model, 0.004)
        app = create_app(served, Store(":memory:"), Settings(key=KEY))
        with listening(app) as address, browser() as chromium:
            take(chromium, address)


def take(chromium: object, address: str) -> None:
    """Enter a visit of the demo case and take the pictures."""
    page = chromium.new_page(viewport={"width": 1280, "height": 1000})  # type: ignore[attr-defined]
    page.goto(f"{address}/open?key={KEY}")
    page.get_by_role("button", name="Try the demo case").click()
    page.get_by_role("button", name="Enter a visit").click()
    for name, value in (("fatigue", "6"), ("bilirubin", "2.4")):
        page.get_by_role("group", name=name).get_by_label("value").fill(value)
    page.get_by_role("group", name="albumin").get_by_label("not available").check()
    page.get_by_role("button", name="Save the visit").click()
    page.get_by_role("dialog").wait_for(state="hidden")
    page.wait_for_timeout(4500)  # the message at the bottom goes away
    page.evaluate("document.activeElement.blur()")
    images = ROOT / "docs" / "images"
    page.screenshot(path=images / "planner.png")
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=images / "planner-dark.png")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=images / "planner-small.png")


if __name__ == "__main__":
    main()
