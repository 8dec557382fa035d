"""Exact answers for small tasks, to compare methods with.

`FiniteTask` describes a task, `label_posterior` is its Bayes filter, `build_graph` lists the
beliefs a policy can reach. On the graph, `optimal_frontier` gives the best accuracy (or
cross-entropy) at each cost, `noct_policies` the exact NOCT policy, and `noct_curve` what it reaches
over all cost weights. `family_member` draws tasks to compare methods on.
"""

from nocta.exact.belief import label_posterior
from nocta.exact.build import build_graph
from nocta.exact.curve import CurvePoint, ExactCurve
from nocta.exact.family import NAMED_TASKS, FamilyMember, family_member
from nocta.exact.graph import BeliefGraph, Loss
from nocta.exact.noct import noct_policies, plan_tables
from nocta.exact.noct_curve import noct_curve
from nocta.exact.optimum import accuracy_at, optimal_frontier, optimal_policy, optimal_values
from nocta.exact.policy import GraphPolicy, constant_policy
from nocta.exact.task import FiniteTask, synthetic_task
from nocta.exact.theory import (
    TheoryCheck,
    check_theory,
    lower_bound_gaps,
    planning_is_not_enough_task,
    random_task,
    replanning_gaps,
    replanning_pays_task,
)
from nocta.exact.yardstick import Yardstick, solve_yardstick, yardstick_on

__all__ = [
    "NAMED_TASKS",
    "BeliefGraph",
    "CurvePoint",
    "ExactCurve",
    "FamilyMember",
    "FiniteTask",
    "GraphPolicy",
    "Loss",
    "TheoryCheck",
    "Yardstick",
    "accuracy_at",
    "build_graph",
    "check_theory",
    "constant_policy",
    "family_member",
    "label_posterior",
    "lower_bound_gaps",
    "noct_curve",
    "noct_policies",
    "optimal_frontier",
    "optimal_policy",
    "optimal_values",
    "plan_tables",
    "planning_is_not_enough_task",
    "random_task",
    "replanning_gaps",
    "replanning_pays_task",
    "solve_yardstick",
    "synthetic_task",
    "yardstick_on",
]
