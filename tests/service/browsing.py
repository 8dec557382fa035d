"""A real browser on the page, for tests and for the screenshots of the docs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Quiet: a browser under test asks nobody but the service.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
WHY_NOT = (
    "the page is not tested: there is no chromium. Install Debian's package 'chromium', or name "
    "one with CHROMIUM=/path"
)


def find_chromium() -> str | None:
    """The browser of this machine, if it has one."""
    named = os.environ.get("CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser() -> Iterator[Any]:
    """A chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(ARGUMENTS), headless=True
        )
        yield opened
        opened.close()
