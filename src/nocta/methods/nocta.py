"""NOCTA as methods of a comparison: one fit per seed, the cost weight as the knob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from nocta.core.cohort import Cohort
from nocta.core.options import Options, Preset, given_values
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor, require_network
from nocta.methods.contract import Method, Trial, require_fitted, suggest
from nocta.model.nocta import NOCTA, model_options
from nocta.model.presets.plugin import BUILT_IN

_LOSSES = ["cross-entropy", "error"]
#: Estimators with a network that is refreshed on its own plans.
_REFRESHED = ("amortized", "ensemble")
#: What is worth tuning, by preset and estimator.
_SPACES: dict[tuple[Preset, str], dict[str, list[Any] | tuple[Any, Any]]] = {
    ("default", "amortized"): {"hidden": [32, 64, 128], "loss": _LOSSES},
    ("default", "direct"): {"hidden": [None, 32, 64, 128], "hindsight": [0.5, 0.9, 1.0]},
    ("default", "contrastive"): {
        "n_neighbors": (6, 96),
        "kernel": ["gaussian", "uniform"],
        "metric": ["embedding", "predictor", "values"],
        "loss": _LOSSES,
    },
    ("paper", "amortized"): {
        "joint_weight": (0.1, 10.0),
        "pin_stopping": [False, True],
        "guided": [False, True],
    },
    ("paper", "contrastive"): {
        "n_neighbors": (3, 30),
        "n_top_plans": (1, 20),
        "similarity_scale": (0.1, 10.0),
        "margin": (0.3, 3.0),
    },
}


@dataclass(eq=False)
class NoctaMethod(Method):
    """What the methods share; subclasses name the estimator.

    Args:
        preset: See `NOCTA`.
        options: Options of the preset.
        quick: A quick run: estimators learn from random plans only.
    """

    estimator: ClassVar[str]
    shares_predictor = True
    has_cost_weight = True

    preset: Preset = "default"
    options: Options | Mapping[str, Any] | None = None
    quick: bool = False

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Options of the preset that matter to the estimators in use."""
        both = ("amortized", "contrastive")
        out: dict[str, Any] = {}
        for part in both if self.estimator == "ensemble" else (self.estimator,):
            out |= suggest(trial, _SPACES.get((self.preset, part), {}))
        if self.preset == "default" and self.estimator in _REFRESHED and not self.quick:
            out["n_rounds"] = trial.suggest_int("n_rounds", 1, 5)
        return out

    @classmethod
    def option_bundle(cls, preset: str) -> type[Options]:
        return model_options(preset, cls.estimator)

    def check_predictor(self, predictor: Predictor) -> None:
        if self.estimator not in BUILT_IN:
            return
        if self.estimator == "auto":
            return  # NOCT-Direct is no candidate without a network
        if self.estimator == "direct":
            require_network(predictor, f"Method '{self.name}'", "trains the predictor further")
            return
        metric = given_values(self.options).get("metric")
        if self.preset == "paper":
            user = f"Method '{self.name}' with the 'paper' preset"
            require_network(predictor, user, "trains the predictor further")
        elif self.estimator != "amortized" and metric == "predictor":
            user = f"Method '{self.name}' with metric='predictor'"
            require_network(predictor, user, "reads the predictor's last layer")

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        short = quick_options(self.preset, self.estimator) if self.quick else {}
        options = {**short, **given_values(self.options)} or None
        self.model_ = NOCTA(self.estimator, self.preset, seed, options)
        self.model_.fit(train, val, predictor=predictor, progress=progress)
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "model_")
        weights = self.model_.suggest_cost_weights(val, n_points, availability=self.availability)
        return [{"cost_weight": weight} for weight in weights]

    def policy(self, setting: dict[str, Any]) -> Policy:
        require_fitted(self, "model_")
        return self.model_.policy(setting.get("cost_weight"))


def estimator_of(cls: type[Method]) -> str | None:
    """The estimator of a NOCTA method; `None` for other methods, also those derived from one."""
    estimator = getattr(cls, "estimator", None)
    named = issubclass(cls, NoctaMethod) and cls.name == f"nocta-{estimator}"
    return estimator if named else None


def model_of(method: Method) -> NOCTA | None:
    """The fitted model of a NOCTA method; `None` for other methods."""
    if isinstance(method, NoctaMethod) and estimator_of(type(method)) is not None:
        return method.model_
    return None


def quick_options(preset: Preset, estimator: str = "amortized") -> dict[str, Any]:
    """Options of a preset for a quick run."""
    if estimator not in BUILT_IN:
        return {}
    if estimator in ("auto", "direct"):
        return {"quick": True}
    return {"n_rounds": 0} if preset == "default" else {"embedding_epochs": 2}


class NoctaAuto(NoctaMethod):
    """The recommended form of NOCTA: several are fitted, and validation chooses."""

    name = "nocta-auto"
    estimator = "auto"
    adapts_predictor = True


class NoctaDirect(NoctaMethod):
    """NOCT-Direct: a network names the plan itself, and the predictor learns from its plans."""

    name = "nocta-direct"
    estimator = "direct"
    adapts_predictor = True


class NoctaAmortized(NoctaMethod):
    """NOCT-Amortized: a network predicts what a plan will save."""

    name = "nocta-amortized"
    estimator = "amortized"


class NoctaContrastive(NoctaMethod):
    """NOCT-Contrastive: similar training subjects vote on a plan."""

    name = "nocta-contrastive"
    estimator = "contrastive"


class NoctaEnsemble(NoctaMethod):
    """Both estimators, mixed on validation."""

    name = "nocta-ensemble"
    estimator = "ensemble"
