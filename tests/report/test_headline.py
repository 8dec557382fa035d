"""The first sentences say what the money buys, in the user's own terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nocta.core.currency import brief_money
from nocta.report.headline import manager_sentences
from nocta.report.settings import settings_table
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.protocol_text import sentences_of_comparison
from nocta.runs.recommended import best_looking_index
from nocta.runs.record import JobRecord


def named(record: JobRecord, label: str, currency: str = "$") -> JobRecord:
    catalog = replace(record.cohort.catalog, currency=currency)
    return replace(
        record,
        job=replace(record.job, label=label),
        rows=[replace(row, method=label) for row in record.rows],
        cohort=replace(record.cohort, catalog=catalog, cost_of_everything=1271.6),
    )


def one_point(record: JobRecord) -> JobRecord:
    rows, details = record.rows[1:2], record.details[1:2]
    return replace(record, rows=rows, details=details, recommended=None)


@pytest.fixture
def view(comparison: Comparison) -> ReportView:
    labels = {"static": "nocta-amortized", "random": "protocol", "nothing": "nothing"}
    records = [named(record, labels[record.job.label]) for record in comparison.records]
    records = [one_point(r) if r.job.label == "protocol" else r for r in records]
    return ReportView(replace(comparison, records=records))


def test_the_first_sentence_names_price_quality_everything_and_the_protocol(
    view: ReportView,
) -> None:
    sentence, versus = manager_sentences(view)
    cost = brief_money(view.reference_cost, "$")
    assert sentence.startswith(f"NOCT-Amortized: {cost} a subject gives accuracy 0.")
    assert "; everything, $20, gives 1.000 ± 0.000; your present protocol, $" in sentence
    assert sentence.count("gives") == 3
    assert versus.startswith("Your present protocol costs $7.56 and reaches accuracy .")
    assert "; for the same money" in versus or "; no operating point" in versus
    assert [versus] == sentences_of_comparison(view.comparison)  # as `nocta compare` prints it


def test_only_the_price_of_everything_is_told_if_it_was_not_run(comparison: Comparison) -> None:
    labels = {"static": "nocta-amortized", "random": "random", "nothing": "nothing"}
    records = [one_point(named(r, labels[r.job.label])) for r in comparison.records[:1]]
    (sentence,) = manager_sentences(ReportView(replace(comparison, records=records)))
    assert sentence.endswith("; everything costs $1,272.")


def test_everything_is_told_with_its_quality_if_it_was_run(comparison: Comparison) -> None:
    labels = {"static": "static", "random": "random", "nothing": "everything"}
    records = [named(r, labels[r.job.label]) for r in comparison.records]
    (sentence,) = manager_sentences(ReportView(replace(comparison, records=records)))
    assert "; everything, $0, gives 0." in sentence


def test_protocols_by_name_are_each_told(comparison: Comparison) -> None:
    labels = {"static": "static", "random": "protocol-2024", "nothing": "protocol-old"}
    records = [named(r, labels[r.job.label]) for r in comparison.records]
    sentence = manager_sentences(ReportView(replace(comparison, records=records)))[0]
    assert "your protocol '2024', $" in sentence
    assert "your protocol 'old', $0, gives" in sentence


def test_nocta_leads_and_its_recommended_point_is_shown(view: ReportView) -> None:
    assert view.lead == "nocta-amortized"
    for record, shown in zip(view.records_of(view.lead), view.chosen[view.lead], strict=True):
        assert record.recommended is not None
        assert shown == record.details[record.recommended.index]
    costs = [entry.cost for entry in view.recommended]
    assert view.reference_cost == pytest.approx(sum(costs) / len(costs))


def test_without_a_default_the_cheapest_point_as_good_as_the_best_is_shown(
    comparison: Comparison,
) -> None:
    entry = comparison.records[0].details[0]

    def points(*pairs: tuple[float, float]) -> list:  # type: ignore[type-arg]
        band = (0.8 - 0.0196, 0.8 + 0.0196)  # one standard error is .01
        return [replace(entry, cost=c, ap=a, cross_entropy=a, band=band) for c, a in pairs]

    assert best_looking_index(points((1, 0.70), (2, 0.79), (3, 0.795), (4, 0.80)), "ap") == 1
    assert best_looking_index(points((1, 0.70), (2, 0.79), (4, 0.80)), "cross_entropy") == 0
    nan = float("nan")
    assert best_looking_index(points((1, nan), (2, 0.5)), "ap") == 1
    assert best_looking_index(points((1, nan), (2, nan)), "ap") == 1


def test_what_everything_costs_is_one_number_and_explained(view: ReportView) -> None:
    shown = dict(settings_table(view))["acquiring everything costs"]
    assert shown.startswith("$1,271.60 per test subject, mean over 2 seeds: the price of")
    assert "every slot of the price list would be $" in shown
