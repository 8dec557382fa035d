"""NOCTA as methods of a comparison: one fit per seed, the cost weight as the knob."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from nocta.cohort.cohort import Cohort
from nocta.model import NOCTA
from nocta.policies.base import Policy
from nocta.policies.method import Method, require_fitted
from nocta.predictors.base import Predictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.fitting import Preset
from nocta.presets.base import EstimatorName
from nocta.presets.options import options_class


class _NoctaMethod(Method):
    """What the three share; subclasses name the estimator.

    Args:
        preset: See `NOCTA`.
        options: Of the preset.
        quick: A rehearsal: plans are learned from random ones only.
    """

    estimator: ClassVar[EstimatorName]
    shares_predictor = True
    has_cost_weight = True

    def __init__(
        self,
        preset: Preset = "default",
        options: dict[str, Any] | None = None,
        quick: bool = False,
    ) -> None:
        self.preset: Preset = preset
        self.options = options
        self.quick = quick

    @classmethod
    def option_bundle(cls, preset: str) -> type[Any] | None:
        """The options of the preset."""
        return options_class(preset)

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        short = quick_options(self.preset) if self.quick else {}
        options = {**short, **(self.options or {})} or None
        self.model_ = NOCTA(self.estimator, self.preset, seed, options)
        shared = predictor if isinstance(predictor, CrossFittedPredictor) else None
        self.model_.fit(train, val, predictor=shared, progress=progress)
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "model_")
        weights = self.model_.suggest_cost_weights(val, n_points, availability=self.availability)
        return [{"cost_weight": weight} for weight in weights]

    def policy(self, setting: dict[str, Any]) -> Policy:
        require_fitted(self, "model_")
        return self.model_.policy(setting.get("cost_weight", 0.0))


def quick_options(preset: Preset) -> dict[str, Any]:
    """Options of a preset for a rehearsal."""
    return {"n_rounds": 0} if preset == "default" else {}


class NoctaAmortized(_NoctaMethod):
    """NOCT-Amortized: a network predicts what a plan will save."""

    name = "nocta-amortized"
    estimator = "amortized"


class NoctaContrastive(_NoctaMethod):
    """NOCT-Contrastive: similar training subjects vote on a plan."""

    name = "nocta-contrastive"
    estimator = "contrastive"


class NoctaEnsemble(_NoctaMethod):
    """Both estimators, mixed on validation."""

    name = "nocta-ensemble"
    estimator = "ensemble"
