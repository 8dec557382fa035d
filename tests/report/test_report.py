"""The report is one file that needs nothing else and says what happened."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from nocta.report.build import render
from nocta.report.headline import ranking, unranked
from nocta.report.settings import settings_table
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.record import JobRecord


class Page(HTMLParser):
    """Collects addresses, identifiers, open tags and the text of a page."""

    VOID = frozenset({"meta", "img", "source", "br", "link", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.stack: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.addresses += [found[k] or "" for k in ("src", "srcset", "href") if k in found]
        self.ids += [found["id"] or ""] if "id" in found else []
        if tag == "img":
            self.images.append(found)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.words.append(data)


@pytest.fixture(scope="session")
def text(comparison: Comparison) -> str:
    return render(comparison)


@pytest.fixture(scope="session")
def page(text: str) -> Page:
    return Page(text)


def test_nothing_is_fetched_from_anywhere(page: Page, text: str) -> None:
    assert page.addresses
    assert all(a.startswith(("data:image/svg+xml;base64,", "#")) for a in page.addresses)
    assert not {"script", "link", "iframe", "object", "embed"} & set(page.tags)
    assert not re.search(r"@import|url\(", text)


def test_links_inside_the_page_lead_somewhere(page: Page) -> None:
    targets = [a[1:] for a in page.addresses if a.startswith("#")]
    assert len(targets) == 10
    assert set(targets) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_every_tag_is_closed(page: Page) -> None:
    assert page.stack == []


def test_it_fits_a_phone_and_figures_have_a_text(page: Page, text: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert '<source media="(max-width: 34rem)"' in text
    assert len(page.images) >= 4
    assert all(image.get("alt") for image in page.images)


def test_every_section_is_there(page: Page) -> None:
    words = " ".join(page.words)
    for section in (
        "Trade-off",
        "What is acquired",
        "Sensitivity and specificity",
        "Promise kept?",
        "Paired differences in accuracy",
        "Every operating point",
        "Over time",
        "Calibration",
        "Acquisition dynamics",
        "Cost ledger",
        "Audit",
        "Settings",
        "Versions",
        "share of the optimum",
        "Table 8, appendix C.2",
        "over 2 seeds",
    ):
        assert section in words, section


def test_the_command_repeats_the_comparison(text: str, comparison: Comparison) -> None:
    assert (
        "nocta compare synthetic --methods static,random,nothing --seeds 2 --points 3 "
        f"--predictor bayes --out {comparison.directory}" in text
    )


def test_options_of_methods_are_told_and_repeated(comparison: Comparison) -> None:
    options = {"n": [1, 2], "kind": "wide"}
    records = [
        replace(r, job=replace(r.job, options=options)) if r.job.method == "static" else r
        for r in comparison.records
    ]
    shown = dict(settings_table(ReportView(replace(comparison, records=records))))
    assert shown["options"] == "static subset: n = [1, 2], kind = wide"
    assert "-o 'static.n=[1, 2]' -o static.kind=wide" in shown["command"]


def test_numbers_are_those_of_the_results(text: str, comparison: Comparison) -> None:
    rows = comparison.results.query("method == 'nothing'")
    mean, error = rows["accuracy"].mean(), rows["accuracy"].sem()
    assert f"<td>{mean:.3f} ± {error:.3f}</td>" in text


def test_failures_are_listed_and_escaped(text: str) -> None:
    assert "difa, seed 1: RuntimeError: a &lt; b &amp; c" in text


def relabel(record: JobRecord, label: str) -> JobRecord:
    rows = [replace(row, method=label) for row in record.rows]
    return replace(record, job=replace(record.job, label=label), rows=rows)


def test_names_cannot_inject_markup(comparison: Comparison) -> None:
    evil = "<script>alert(1)</script>"
    records = []
    for record in comparison.records:
        named = relabel(record, evil) if record.job.label == "random" else record
        classes = ['"><img src=x onerror=alert(1)>']
        records.append(replace(named, cohort=replace(record.cohort, classes=classes)))
    text = render(Comparison(comparison.directory, comparison.setup, records, []))
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_same_comparison_gives_the_same_report(text: str, comparison: Comparison) -> None:
    assert render(comparison) == text


def test_a_single_seed_is_called_one(comparison: Comparison) -> None:
    one = [record for record in comparison.records if record.job.seed == 0]
    words = " ".join(Page(render(replace(comparison, records=one))).words)
    assert "One seed only" in words
    assert "95 % bootstrap intervals over test subjects" in words


def test_the_paper_rule_of_availability_is_pointed_out(comparison: Comparison) -> None:
    known = replace(comparison, setup=replace(comparison.setup, availability="known"))
    assert "knew beforehand which values exist" in render(known)
    assert "knew beforehand" not in render(comparison)


def test_results_seen_within_a_visit_are_pointed_out(comparison: Comparison) -> None:
    records = [
        replace(r, job=replace(r.job, method="dime")) if r.job.label == "random" else r
        for r in comparison.records
    ]
    setup = replace(comparison.setup, results="at-once")
    text = render(replace(comparison, records=records, setup=setup))
    assert "random saw each result before requesting the next" in text
    assert "so does the optimum: it does not bound random." in text
    assert "--results at-once" in text
    assert "saw each result" not in render(replace(comparison, setup=setup))
    assert "saw each result" not in render(replace(comparison, records=records))


def test_methods_without_common_costs_still_give_a_report(comparison: Comparison) -> None:
    only = [record for record in comparison.records if record.job.label == "nothing"]
    both = [*only, *(relabel(record, "nothing else") for record in only)]
    assert "no common range of costs" in render(replace(comparison, records=both))


def test_one_method_alone_is_compared_with_nothing(comparison: Comparison) -> None:
    only = [record for record in comparison.records if record.job.label == "static"]
    words = " ".join(Page(render(replace(comparison, records=only))).words)
    assert "Every operating point" in words
    assert "common range" not in words
    assert "Paired" not in words


def test_the_headline_says_who_could_not_be_ranked(comparison: Comparison) -> None:
    assert "ranked" not in ranking(ReportView(comparison))
    assert unranked(ReportView(comparison), {"random"}) == "static subset"  # not `nothing`


def test_tables_too_wide_for_paper_are_set_small(comparison: Comparison, text: str) -> None:
    assert "table.wide" in text
    assert '<table class="wide' not in text
    records = [
        relabel(record, f"{record.job.label} {i}")
        for record in comparison.records
        for i in range(3)
    ]
    assert '<table class="wide' in render(replace(comparison, records=records))


def test_settings_say_how_points_were_chosen(text: str) -> None:
    assert "up to 3 per method, chosen on validation" in text


def test_the_headline_names_the_best_method(comparison: Comparison) -> None:
    view = ReportView(comparison)
    summary = comparison.summary.query("quality == 'accuracy' and versus == ''")
    best = summary.sort_values("mean")["method"].iloc[-1]
    assert {"static": "static subset", "random": "random"}[best] in ranking(view).split(":")[0]
