"""The yardsticks as policies: the optimum and the exact NOCT policy of a finite task.

They meet the same environment as everything else, so that a roll-out can be compared with them
subject by subject. Where a value is missing, a slot closed or a budget short, they do what is
left of their plan; they are optimal only where everything is open.
"""

from __future__ import annotations

import numpy as np

from nocta.core.policy import Decision, Observation, Policy
from nocta.exact import (
    BeliefGraph,
    FiniteTask,
    GraphPolicy,
    Loss,
    build_graph,
    noct_policies,
    optimal_policy,
)
from nocta.methods.fixed import first_affordable
from nocta.predictors.bayes import BayesPredictor


class ExactPolicy(Policy):
    """Follows a policy on the belief graph of a task, and predicts by the Bayes filter.

    Args:
        graph_policy: One action per reachable belief.
    """

    def __init__(self, graph_policy: GraphPolicy) -> None:
        self.graph_policy = graph_policy
        self.predictor = BayesPredictor(graph_policy.graph.task)

    def decide(self, observation: Observation) -> Decision:
        history = observation.history
        time, features = self.graph_policy.next_acquisitions(
            history.values, history.acquired, after=observation.time, impossible="ignore"
        )
        plans = np.zeros_like(history.acquired)
        going = np.flatnonzero(time < observation.catalog.n_times)
        plans[going, time[going]] = features[going]
        decision = first_affordable(observation, plans & observation.open_slots)
        # Where nothing of this step is to be had, pass through the visit and look further.
        through = time < observation.catalog.n_times
        return Decision(np.where(decision.stop & through, time, decision.time), decision.features)


class OptimalPolicy(ExactPolicy):
    """The best that any acquisition policy can do at this cost weight.

    Args:
        task: The task, or its belief graph if it has been built already.
        cost_weight: What one unit of cost is worth, in correct labels or nats (`alpha`).
        loss: `"error"` rewards correct labels, `"cross-entropy"` their log probability.

    Example:
        >>> from nocta.core.rollout import rollout
        >>> from nocta.exact.task import synthetic_task
        >>> from nocta.testing import tiny_counter_cohort
        >>> policy = OptimalPolicy(synthetic_task(horizon=4), cost_weight=0.01)
        >>> done = rollout(policy, tiny_counter_cohort())
        >>> bool((done.probabilities.argmax(axis=2) == done.labels).all()), done.cost < 8
        (True, True)
    """

    def __init__(
        self, task: FiniteTask | BeliefGraph, cost_weight: float, loss: Loss = "error"
    ) -> None:
        super().__init__(optimal_policy(_graph(task), cost_weight, loss))


class ExactNoctPolicy(ExactPolicy):
    """Algorithm 1 with the true conditional in place of an estimator.

    Args:
        task: The task, or its belief graph.
        cost_weight: What one unit of cost is worth (`alpha`).
        loss: As in `OptimalPolicy`.
        replan: Search again after each acquisition, or commit to the first plan.
    """

    def __init__(
        self,
        task: FiniteTask | BeliefGraph,
        cost_weight: float,
        loss: Loss = "cross-entropy",
        replan: bool = True,
    ) -> None:
        super().__init__(noct_policies(_graph(task), [cost_weight], loss, replan)[0])


def _graph(task: FiniteTask | BeliefGraph) -> BeliefGraph:
    return task if isinstance(task, BeliefGraph) else build_graph(task)
