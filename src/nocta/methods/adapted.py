"""Any method with a predictor that adapts to it: `NAME+adapt`.

The shared predictor is trained under random requests, which is nobody's policy. Some methods adapt
it on their own (NOCT-Direct, ASAC). So that nobody wins by a better predictor alone, the same rule
is offered to every method that acquires for a given predictor, `static` and `periodic` included:
fit, roll out on training subjects, train the predictor on those histories, keep it if validation
says so. Methods that learn from the predictor are then fitted again on the adapted one.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort, even_rows
from nocta.core.errors import ConfigError
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor, require_network
from nocta.core.rollout import rollout
from nocta.methods.contract import Method, require_predictor
from nocta.methods.registry import SUFFIX
from nocta.model.state import Arrays, State, nest, take_part
from nocta.predictors.adapt import Adaptation, adapt
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted

#: Operating points whose histories the predictor learns from, and most subjects at each.
_N_POINTS, _MOST = 4, 10_000


class Adapted(Method):
    """Mixed into a method (`adapted_class`): fits it, then adapts its predictor to it."""

    #: Whether the method is fitted again on the adapted predictor.
    refits: ClassVar[bool]
    #: The method that is adapted.
    _base: ClassVar[type[Method]]

    adaptation_: Adaptation | None
    adapted_: CrossFittedPredictor

    def check_predictor(self, predictor: Predictor) -> None:
        super().check_predictor(predictor)
        require_network(predictor, f"Method '{self.name}'", "trains the predictor further")

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        given = require_predictor(self, predictor)
        self.check_predictor(given)
        shared = as_cross_fitted(given, train, val, seed, progress)
        how: dict[str, Any] = {"seed": seed, "progress": progress}
        self._base.fit(self, train, val, predictor=shared, **how)
        self.adapted_ = shared
        rows = even_rows(len(train), _MOST)
        parts = [(c, self._requests(c, val, seed)) for c in (train.subset(rows), val.sample(_MOST))]
        shared = CrossFittedPredictor(shared.members, shared.fold[rows], shared.expected)
        self.adaptation_ = adapt(shared, parts[0], parts[1], seed, progress)
        if self.adaptation_.kept:
            members = self.adaptation_.predictor.members
            self.adapted_ = CrossFittedPredictor(
                members, self.adapted_.fold, self.adapted_.expected
            )
            if self.refits:
                self._base.fit(self, train, val, predictor=self.adapted_, **how)
        return self

    def _requests(self, part: Cohort, val: Cohort, seed: int) -> list[NDArray[np.bool_]]:
        """What the method requests of some subjects at some of its operating points."""
        done = []
        for setting in self.settings(val, _N_POINTS):
            policy, budget = self._base.policy(self, setting), setting.get("budget")
            how: dict[str, Any] = {"availability": self.availability, "results": self.results}
            done.append(rollout(policy, part, budget=budget, seed=seed, **how).history.requested)
        return done

    def policy(self, setting: dict[str, Any]) -> Policy:
        policy = self._base.policy(self, setting)
        policy.predictor = self.adapted_
        return policy

    def state(self) -> State:
        config, arrays = super().state()
        return nest({}, {}, method=(config, arrays), adapted=self.adapted_.state())

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        out = super().from_state(*take_part(config, arrays, "method"))
        out.adapted_ = CrossFittedPredictor.from_state(*take_part(config, arrays, "adapted"))
        out.adaptation_ = None
        return out


def adapted_class(cls: type[Method]) -> type[Method]:
    """The class of `NAME+adapt`; raises `ConfigError` if the method has no predictor to adapt."""
    if not cls.shares_predictor or cls.adapts_predictor:
        why = "adapts it already" if cls.adapts_predictor else "trains its own"
        raise ConfigError(
            f"'{cls.name}{SUFFIX}' would adapt the shared predictor to '{cls.name}', which {why}. "
            f"Use '{cls.name}'."
        )
    doc = f"{(cls.__doc__ or cls.name).strip().splitlines()[0]} The predictor adapts to it."
    named: dict[str, Any] = {"name": f"{cls.name}{SUFFIX}", "__doc__": doc}
    named |= {"refits": cls.has_cost_weight, "_base": cls}
    return type(f"{cls.__name__}Adapted", (Adapted, cls), named)
