"""Trees distilled from a policy: they learn it, say what they do, and keep the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.rollout import rollout
from nocta.methods.distilled.inputs import Input, Question, inputs_of, values_of
from nocta.methods.distilled.policy import TreePolicy, agreement, distill
from nocta.methods.distilled.tree import Tree, learn_tree
from nocta.methods.fixed import FixedPlanPolicy, first_affordable
from nocta.testing import RunningMeanPredictor, check_policy, tiny_cohort

PREDICTOR = RunningMeanPredictor(2)


@dataclass(eq=False)
class ScanIfHigh(Policy):
    """Blood at every visit, and a scan if the last blood test was above 0."""

    predictor: RunningMeanPredictor

    def decide(self, observation: Observation) -> Decision:
        last = values_of(observation.history)[:, 1]
        plans = observation.open_slots.copy()
        plans[:, :, 1] &= (last > 0)[:, None]
        return first_affordable(observation, plans)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return tiny_cohort(300)


@pytest.fixture(scope="module")
def trees(cohort: Cohort) -> list[Tree]:
    return distill(rollout(ScanIfHigh(PREDICTOR), cohort), cohort.catalog)


def test_a_rule_is_found_again(cohort: Cohort, trees: list[Tree]) -> None:
    assert trees[0].question is None
    assert trees[0].acquire == ("blood",)
    for tree in trees[1:]:
        assert tree.question is not None
        assert tree.question.input == Input("last", "marker")
        assert abs(tree.question.most) < 0.2
        assert tree.depth == 1
    new = tiny_cohort(200, seed=1)
    done = rollout(ScanIfHigh(PREDICTOR), new)
    assert agreement(trees, done, new.catalog) > 0.97
    copied = rollout(TreePolicy(trees, PREDICTOR), new)
    assert copied.cost == pytest.approx(done.cost, rel=0.05)


def test_it_can_be_read(trees: list[Tree]) -> None:
    text = "\n".join(trees[1].lines())
    assert text.startswith("- In any case, acquire **blood**\n- If last marker is at most")
    assert text.endswith("- Otherwise: also acquire **scan**")
    assert trees[0].lines() == ["- acquire **blood**"]
    assert Tree().lines() == ["- acquire nothing"]


def test_deeper_trees_are_nested_lists() -> None:
    ask = Question(Input("context", "sex"), 0.5, if_unknown=False)
    inner = Tree(question=ask, yes=Tree(("blood",)), no=Tree())
    outer = Tree(question=Question(Input("last", "marker"), np.inf, False), yes=inner, no=Tree())
    assert outer.lines({"sex": ["F", "M"]}) == [
        "- If last marker is known:",
        "  - If sex is 'F': acquire **blood**",
        "  - Otherwise: acquire nothing",
        "- Otherwise: acquire nothing",
    ]


def test_it_survives_json(trees: list[Tree]) -> None:
    assert [Tree.from_dict(tree.to_dict()) for tree in trees] == trees


def test_it_keeps_the_policy_contract(cohort: Cohort, trees: list[Tree]) -> None:
    small = cohort.subset(np.arange(16))
    check_policy(lambda _: TreePolicy(trees, PREDICTOR), small, n_alone=2)
    constrained = small.constrained(["at most 1 scan", "always blood at 2"])
    done = rollout(TreePolicy(trees, PREDICTOR), constrained)
    assert done.history.acquired[:, :, 1].sum(axis=1).max() == 1


def test_a_fixed_plan_needs_no_question(cohort: Cohort) -> None:
    plan = np.array([[1, 0], [0, 0], [1, 1], [0, 0]], dtype=bool)
    done = rollout(FixedPlanPolicy(plan, PREDICTOR), cohort)
    found = distill(done, cohort.catalog)
    assert [tree.acquire for tree in found] == [("blood",), (), ("blood", "scan"), ()]
    assert agreement(found, done, cohort.catalog) == 1


def test_what_is_unknown_has_an_answer(cohort: Cohort) -> None:
    values = np.array([[np.nan], [0.0], [1.0], [np.nan]] * 10, dtype=np.float32)
    asked = np.array([[True], [False], [True], [True]] * 10)
    tree = learn_tree(values, asked, [Input("last", "marker")], ["blood"], depth=2, seed=0)
    found = tree.decide(values, [Input("last", "marker")], ["blood"])
    assert (found == asked).all()


def test_inputs_are_what_was_acquired_only(cohort: Cohort) -> None:
    history = rollout(FixedPlanPolicy(np.ones((4, 2), bool), PREDICTOR), cohort).history
    before = values_of(history.up_to(1))
    changed = replace(history, values=np.where(np.arange(4)[:, None] > 1, 99.0, history.values))
    np.testing.assert_array_equal(before, values_of(changed.up_to(1)))
    assert len(inputs_of(cohort.catalog)) == before.shape[1]
    assert np.isnan(values_of(history.up_to(-1))[:, 1:4]).all()
