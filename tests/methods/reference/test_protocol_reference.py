"""The user's protocol as a method, and as rows of comparisons and evaluations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError
from nocta.core.rollout import rollout
from nocta.methods.reference.protocol import protocol_plans, protocol_settings
from nocta.methods.references import reference_name
from nocta.methods.registry import method_class, parse_methods
from nocta.methods.saving import SavedMethod, load_saved, save_method
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.runs.compare import make_jobs, with_protocols
from nocta.runs.protocol_text import sentences_of_record, sentences_of_results
from nocta.testing import RunningMeanPredictor, tiny_cohort

NOW = {"blood": True, "scan": [0, 3]}
PLAN = np.array([[1, 1], [1, 0], [1, 0], [1, 1]], dtype=bool)


def following(cohort: Cohort, **protocols: object) -> Cohort:
    return cohort.with_catalog(replace(cohort.catalog, protocols=protocols or {"current": NOW}))


def test_it_acquires_what_the_schema_says():
    train, val, test = (following(part) for part in tiny_cohort(40).split(seed=0))
    method = method_class("protocol")().fit(train, val, seed=0, predictor=RunningMeanPredictor(2))
    done = rollout(method.policy(method.settings(val, 5)[0]), test)
    assert (done.history.requested == PLAN).all()


def test_constraints_hold_for_it():
    cohort = following(tiny_cohort(10)).constrained("at most 1 scan")
    method = method_class("protocol")().fit(
        cohort, cohort, seed=0, predictor=RunningMeanPredictor(2)
    )
    assert rollout(method.policy({}), cohort).history.acquired[:, :, 1].sum(axis=1).max() == 1


def test_several_protocols_are_named():
    catalog = following(tiny_cohort(2), old=NOW, new={"scan": "first"}).catalog
    assert list(protocol_plans(catalog)) == ["protocol-old", "protocol-new"]
    names = [reference_name(s) for s in protocol_settings(catalog, {"cost_weight": 1.0})]
    assert names == ["protocol-old", "protocol-new"]
    assert Catalog.from_dict(catalog.to_dict()) == catalog
    with pytest.raises(ConfigError, match=r"no protocol 'protocol-odl'\. Did you mean"):
        protocol_plans(catalog, "protocol-odl")
    with pytest.raises(ConfigError, match=r"It has: none; add a table \[protocols.current\]"):
        protocol_plans(tiny_cohort(2).catalog, "protocol")


def test_a_protocol_of_what_is_not_there_is_refused():
    with pytest.raises(DataError, match=r"'scna' is not a feature\. Did you mean 'scan'"):
        following(tiny_cohort(2), current={"scna": True})
    with pytest.raises(DataError, match="'scan' cannot be acquired at slot 7; it can be at 0, 1"):
        following(tiny_cohort(2), current={"scan": [7]})


def test_a_comparison_adds_it_once_per_seed():
    catalog = following(tiny_cohort(2)).catalog
    jobs = make_jobs(parse_methods("nothing,protocol"), [0]) + make_jobs(["nothing"], [1])
    found = [(job.method, job.seed) for job in with_protocols(catalog, jobs)]
    assert found == [("nothing", 0), ("protocol", 0), ("nothing", 1), ("protocol", 1)]
    assert with_protocols(tiny_cohort(2).catalog, jobs[:1]) == jobs[:1]
    with pytest.raises(ConfigError, match="has no protocol 'protocol'"):
        with_protocols(tiny_cohort(2).catalog, jobs)


@pytest.mark.parametrize("name", ["protocol", "protocol-new"])
def test_it_is_saved_and_loaded(name: str, tiny_predictor: CrossFittedPredictor, tmp_path: Path):
    several = {"old": {"blood": True}, "new": NOW} if name != "protocol" else {}
    train, val, test = (following(part, **several) for part in tiny_cohort(40).split(seed=0))
    method = method_class(name)().fit(train, val, seed=0, predictor=tiny_predictor)
    save_method(SavedMethod.of(method, train, 0), tmp_path / "m")
    again = load_saved(tmp_path / "m")
    assert again.name == name
    assert (again.rollout(test, {}).history.requested == PLAN).all()


def test_sentences_come_from_results_and_records():
    rows = [("nocta-amortized", s, c, q) for s in (0, 1) for c, q in ((1.0 + s, 0.7), (5, 0.9))]
    rows += [("protocol", s, 6.0, 0.7) for s in (0, 1)]
    frame = pd.DataFrame(rows, columns=["method", "seed", "cost", "ap"])
    said = "Your present protocol costs 6.00 and reaches AP .70; for the same money .90, or .70 for"
    assert sentences_of_results(frame, "nocta-amortized") == [f"{said} 1.50."]
    setting = protocol_settings(following(tiny_cohort(2)).catalog, {})[0]
    record = {
        "validation": [{"cost": 1.0, "ap": 0.7}, {"cost": 5.0, "ap": 0.9}],
        "references": [{"setting": setting, "cost": 6.0, "ap": 0.7}],
    }
    assert sentences_of_record(record) == [f"{said} 1.00."]
