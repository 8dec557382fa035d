"""What a schedule and trees lose is measured where the model is: same subjects, same rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.rollout import rollout
from nocta.methods.distilled.policy import TreePolicy
from nocta.methods.fixed import FixedPlanPolicy
from nocta.methods.saving import SavedMethod
from nocta.model.choice.default import DefaultPoint
from nocta.model.nocta import NOCTA
from nocta.report.protocol import summary, to_markdown
from nocta.runs.protocol_run import Parts, ProtocolDocument, candidates, make_protocol
from nocta.testing import RunningMeanPredictor, tiny_cohort
from small_models import WEIGHT
from small_models import Parts as TinyParts

POINT = DefaultPoint({"cost_weight": WEIGHT}, "as given")
PROTOCOL = {"current": {"blood": True}}


@pytest.fixture(scope="module")
def parts(tiny_parts: TinyParts) -> Parts:
    with_protocol = (
        part.with_catalog(replace(part.catalog, protocols=PROTOCOL)) for part in tiny_parts
    )
    return Parts(*with_protocol, "subjects kept aside")


@pytest.fixture(scope="module")
def document(tiny_models: dict[str, NOCTA], parts: Parts) -> ProtocolDocument:
    return make_protocol(SavedMethod.of_model(tiny_models["amortized"]), parts, POINT)


def test_rows_are_what_the_policies_do(
    document: ProtocolDocument, tiny_models: dict[str, NOCTA], parts: Parts
) -> None:
    model = tiny_models["amortized"]
    policy = model.policy(WEIGHT)
    for name, own in {
        "adaptive": policy,
        "trees": TreePolicy(document.trees, policy),
        "schedule": FixedPlanPolicy(document.schedule, policy),
        "protocol": FixedPlanPolicy(np.array([[1, 0]] * 4, dtype=bool), policy),
    }.items():
        done = rollout(own, parts.test, seed=model.seed)
        found = document.candidate(name).measures
        assert found["cost"].value == pytest.approx(done.cost)
        assert found["ap"].value == pytest.approx(done.summary()["ap"])
        assert found["cost"].low <= found["cost"].value <= found["cost"].high


def test_the_schedule_costs_about_as_much(document: ProtocolDocument) -> None:
    adaptive, fixed = (document.candidate(n).measures["cost"] for n in ("adaptive", "schedule"))
    assert fixed.value == pytest.approx(adaptive.value, abs=3.5)  # the price of a slot


def test_differences_are_paired() -> None:
    cohort, predictor = tiny_cohort(80), RunningMeanPredictor(2)
    plan = np.ones((4, 2), dtype=bool)
    same = rollout(FixedPlanPolicy(plan, predictor), cohort)
    less = rollout(FixedPlanPolicy(plan & [True, False], predictor), cohort)
    rows = candidates({"adaptive": same, "again": same, "less": less})
    assert not rows[0].differences
    for name, found in rows[1].differences.items():
        assert (found.value, found.low, found.high) == (0, 0, 0), name
    cost = rows[2].differences["cost"]
    assert cost.value == pytest.approx(less.cost - same.cost)
    assert cost.low < cost.value < cost.high < 0


def test_the_document_says_what_is_lost(document: ProtocolDocument) -> None:
    text = to_markdown(document)
    said = summary(document)
    assert [line.partition(":")[0] for line in said] == [
        "Trees",
        "Fixed schedule",
        "Your present protocol",
    ]
    assert all(line in text for line in said)
    assert "| Visit 4 |" in text or "| Visit 4 (" in text
    assert text.count("### Visit") == 4


def test_it_obeys_constraints(tiny_models: dict[str, NOCTA], parts: Parts) -> None:
    given = ["at most 1 scan", "always blood at 1"]
    bound = Parts(
        *(part.constrained(given) for part in (parts.train, parts.val, parts.test)), parts.note
    )
    found = make_protocol(SavedMethod.of_model(tiny_models["amortized"]), bound, POINT)
    rules = bound.test.catalog.rules
    assert rules is not None
    assert rules.allow(found.schedule)
    assert "- 'scan' is acquired at most once." in to_markdown(found)
    assert found.to_dict()["constraints"] == {
        "always": {"blood": [1]},
        "at_most": {"scan": 1},
    }
