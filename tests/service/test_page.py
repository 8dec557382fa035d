"""The page in a real browser, as people use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("playwright", reason="the page is not tested: playwright is not installed")

from browsing import WHY_NOT, browser, find_chromium
from over_http import KEY
from playwright.sync_api import Page, expect
from running_service import listening

from nocta.service.app import Settings, create_app
from nocta.service.planner import ServedModel
from nocta.service.store import Store

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason=WHY_NOT),
    # Playwright leaves closing of its pipes to the end of the process.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(served: ServedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = Store(tmp_path_factory.mktemp("page") / "cases.db")
    with listening(create_app(served, store, Settings(key=KEY, per_second=1000))) as where:
        yield where
    store.close()


class Visitor:
    """A page that is signed in, and everything it asked for and complained about."""

    def __init__(self, chromium: Any, address: str, **options: Any) -> None:
        self.context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.context.set_default_timeout(15_000)
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.address = address
        self.page = self.new_tab()
        self.page.goto(f"{address}/open?key={KEY.replace(' ', '%20')}")
        expect(self.page.get_by_role("heading", name="Cases")).to_be_visible()

    def new_tab(self) -> Page:
        page: Page = self.context.new_page()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda m: m.type == "error" and self.wrong.append(m.text))
        return page

    def open_demo(self) -> Page:
        self.page.get_by_role("button", name="Try the demo case").click()
        expect(headline(self.page)).to_be_visible()
        return self.page


@pytest.fixture
def visitor(chromium: Any, address: str) -> Iterator[Visitor]:
    found = Visitor(chromium, address)
    yield found
    outside = [url for url in found.asked if urlsplit(url).hostname not in ("127.0.0.1", None)]
    found.context.close()
    assert outside == []
    assert found.wrong == []


def headline(page: Page) -> Any:
    return page.locator(".headline")


def test_a_case_from_start_to_finish(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("button", name="New case").click()
    page.get_by_label("Name or number").fill("<b>N001</b>")
    start = date.today() - timedelta(days=182)
    page.get_by_label("First visit").fill(start.isoformat())
    page.get_by_label("age").fill("64")
    page.get_by_label("sex").select_option("F")
    page.get_by_role("button", name="Open the case").click()
    expect(page.get_by_role("heading", name="<b>N001</b>")).to_be_visible()
    expect(headline(page)).to_contain_text("Visit 1")
    page.get_by_role("button", name="Enter a visit").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Recommended at this visit")).to_be_visible()
    dialog.get_by_label("Date it takes place").fill(start.isoformat())
    dialog.get_by_role("group", name="bilirubin").get_by_label("value").fill("1,6")
    dialog.get_by_role("button", name="Save the visit").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Write decimals with a point")
    dialog.get_by_role("group", name="bilirubin").get_by_label("value").fill("1.6")
    dialog.get_by_role("group", name="elastography").get_by_label("not available").check()
    dialog.get_by_role("button", name="Save the visit").click()
    expect(page.get_by_role("button", name=re.compile("bilirubin, visit 1: 1.6"))).to_be_visible()
    unavailable = page.get_by_role("button", name=re.compile("elastography, visit 1: not avail"))
    expect(unavailable).to_be_visible()
    expect(page.locator(".ledger .all")).to_contain_text("$22.00")
    expect(headline(page)).not_to_contain_text("Visit 1")
    page.get_by_text("History").click()
    expect(page.locator(".history li")).to_have_count(3)
    page.get_by_role("button", name="Close the case").click()
    page.get_by_role("dialog").get_by_role("button", name="Close the case").click()
    expect(page.get_by_text("This case is closed.")).to_be_visible()
    expect(page.get_by_role("button", name="Enter a visit")).to_have_count(0)
    page.get_by_role("link", name="Cases").click()
    expect(page.get_by_role("link", name=re.compile("N001.*closed"))).to_be_visible()


def test_slider_and_budget_replan_at_once_and_a_link_reopens_them(visitor: Visitor) -> None:
    page = visitor.open_demo()
    before = headline(page).inner_text()
    slider = page.get_by_label("How thorough")
    slider.focus()
    page.keyboard.press("End")
    expect(page.get_by_text("Only tried, not saved.")).to_be_visible()
    expect(headline(page)).not_to_have_text(before)
    thorough = headline(page).inner_text()
    assert "weight=" in page.url
    again = visitor.new_tab()
    again.goto(page.url)
    expect(headline(again)).to_have_text(thorough)
    page.get_by_label("Budget for the whole case").fill("36")
    expect(headline(page)).to_contain_text("nothing is affordable")
    page.get_by_label("Budget for the whole case").fill("lots")
    expect(page.get_by_text("A number of at least 0.")).to_be_visible()
    page.get_by_role("button", name="Back to the case's own").click()
    expect(headline(page)).to_have_text(before)
    page.get_by_label("Budget for the whole case").fill("500")
    page.get_by_role("button", name="Keep for this case").click()
    expect(page.get_by_text("Only tried, not saved.")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Budget for the whole case")).to_have_value("500")


def test_a_correction_replans_and_stays_in_the_history(visitor: Visitor) -> None:
    page = visitor.open_demo()
    page.get_by_role("button", name=re.compile("bilirubin, visit 1")).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("value").fill("9.5")
    dialog.get_by_label("Reason").fill("typed wrongly")
    dialog.get_by_role("button", name="Correct").click()
    expect(page.get_by_role("button", name=re.compile("visit 1: 9.5, corrected"))).to_be_visible()
    page.get_by_text("History").click()
    expect(page.locator(".history")).to_contain_text("typed wrongly")


def test_two_tabs_on_one_case(visitor: Visitor) -> None:
    first = visitor.open_demo()
    second = visitor.new_tab()
    second.goto(first.url)
    expect(headline(second)).to_be_visible()
    second.get_by_role("button", name="Enter a visit").click()
    expect(second.get_by_role("dialog")).to_contain_text("at this visit")
    first.get_by_role("button", name=re.compile("bilirubin, visit 1")).click()
    first.get_by_role("dialog").get_by_label("value").fill("3.3")
    first.get_by_role("button", name="Correct").click()
    expect(first.get_by_role("button", name=re.compile("visit 1: 3.3, corrected"))).to_be_visible()
    second.get_by_role("button", name="Save the visit").click()
    expect(second.get_by_role("alert")).to_contain_text("changed elsewhere")
    second.get_by_role("button", name="Cancel").click()
    expect(second.get_by_role("button", name=re.compile("visit 1: 3.3"))).to_be_visible()
    visitor.wrong.clear()  # the browser reports the refused request


def test_the_keyboard_is_enough(visitor: Visitor) -> None:
    page = visitor.page

    def press_until(name: str, key: str = "Tab") -> None:
        for _ in range(40):
            page.keyboard.press(key)
            focused = "document.activeElement.textContent || document.activeElement.id"
            if page.evaluate(focused).strip() == name:
                return
        raise AssertionError(f"{name} cannot be reached with {key}")

    press_until("Try the demo case")
    page.keyboard.press("Enter")
    expect(headline(page)).to_be_visible()
    press_until("Enter a visit")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("at this visit")
    press_until("value-fatigue-fatigue")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("fatigue, visit 2: 5"))).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    press_until("Enter a visit")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_small_screen_never_scrolls_sideways(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address)
    page = visitor.open_demo()
    for width in (360, 768, 1024):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate(
            "[...document.querySelectorAll('button:not(.link), .button, input, select')]"
            ".filter(e => e.offsetParent && e.type !== 'checkbox')"
            ".filter(e => e.getBoundingClientRect().height < 24).map(e => e.outerHTML)"
        )
        assert small == []
    visitor.context.close()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_no_barrier_is_found(chromium: Any, address: str, look: str) -> None:
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    visitor = Visitor(chromium, address, color_scheme=look, bypass_csp=True)
    page = visitor.page

    def barriers() -> list[str]:
        found = axe.run(page)["violations"]
        return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]

    assert barriers() == []
    visitor.open_demo()
    assert barriers() == []
    page.get_by_role("button", name="Enter a visit").click()
    expect(page.get_by_role("dialog")).to_contain_text("at this visit")
    assert barriers() == []
    page.keyboard.press("Escape")
    page.get_by_role("link", name="About the model").click()
    expect(page.get_by_role("heading", name="Intended use and limits")).to_be_visible()
    assert barriers() == []
    visitor.context.close()


def test_without_a_session_the_page_asks_for_a_token(chromium: Any, address: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(address)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("The token is not known")
    page.get_by_label("Token").fill(KEY)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Cases")).to_be_visible()
    context.close()
