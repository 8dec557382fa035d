"""The knobs of the presets: all have defaults, and are checked before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from nocta.core.errors import ConfigError
from nocta.core.options import require_whole_number
from nocta.planning.estimators.bank import Index, Sampling
from nocta.planning.estimators.future_distribution import Weighting
from nocta.planning.estimators.retrieval import Kernel, Metric
from nocta.planning.objective import LossReduction, PlanningLoss
from nocta.predictors.neural import ClassWeight

SearchKind = Literal["beam", "uniform", "guided"]

_CHOICES: dict[str, tuple[Any, ...]] = {
    "loss": ("cross-entropy", "error"),
    "metric": ("embedding", "predictor", "values"),
    "kernel": ("uniform", "gaussian"),
    "bank_sampling": ("even", "stratified"),
    "neighbor_index": ("torch", "faiss"),
    "search": ("beam", "uniform", "guided"),
    "weighting": ("softmax", "count"),
    "loss_reduction": ("sum", "mean"),
    "class_weight": (None, "balanced"),
}
_AT_LEAST_ONE = (
    "hidden",
    "n_neighbors",
    "bank_size",
    "width",
    "voting_width",
    "n_candidates",
    "n_top_plans",
    "embedding_epochs",
    "n_rehearsed",
)


@dataclass(frozen=True)
class DefaultOptions:
    """The knobs of the `default` preset.

    Args:
        loss: What plans are scored by: cross-entropy as in the paper, or the error rate.
        class_weight: `"balanced"` counters rare classes; losses are then the realised ones.
        hidden: Units of the amortized estimator.
        n_rounds: Rounds of training on the planner's own plans, where subjects are many.
        individual_share: Weight of a subject's own estimate against the population's, where
            subjects are few; chosen on validation where it is `None`.
        n_rehearsed: Training subjects on which the planner rehearses each round.
        n_neighbors: Subjects who vote in retrieval (`K`).
        metric: What retrieval measures distance in.
        kernel: Equal votes, or votes that fade with distance.
        radius: Only those within this distance vote, where given.
        bank_size: Training subjects kept for retrieval, at most.
        bank_sampling: Take them evenly, or as many of every class with votes weighted back.
        neighbor_index: Find neighbours with torch, or with faiss (an extra); both are exact.
        search: Beam over time, or the best of a sample drawn uniformly or by worth; a sample
            holds every plan where there are no more than `n_candidates`.
        width: Beam width of the amortized search.
        voting_width: Beam width where every step asks the neighbours.
        n_candidates: Plans of a sample search (`|O|`).
        amortized_share: Weight of the amortized estimator in the ensemble; chosen on
            validation where it is `None`.
    """

    loss: PlanningLoss = "cross-entropy"
    class_weight: ClassWeight = None
    hidden: int = 64
    n_rounds: int = 3
    n_rehearsed: int = 6000
    individual_share: float | None = None
    n_neighbors: int = 24
    metric: Metric = "embedding"
    kernel: Kernel = "gaussian"
    radius: float | None = None
    bank_size: int = 3000
    bank_sampling: Sampling = "even"
    neighbor_index: Index = "torch"
    search: SearchKind = "beam"
    width: int = 16
    voting_width: int = 6
    n_candidates: int = 1000
    amortized_share: float | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class PaperOptions:
    """The knobs of the `paper` preset, at the published values.

    Args:
        n_candidates: Random plans per decision (`|O|`).
        guided: Draw plans by how much each slot is worth instead of uniformly.
        class_weight: `"balanced"` counters rare classes.
        n_neighbors: Subjects who vote (`K`).
        metric: What retrieval measures distance in.
        kernel: Equal votes, or votes that fade with distance.
        radius: Only those within this distance vote, where given.
        n_top_plans: Plans that form the future-candidate distribution (`kappa`).
        weighting: `"softmax"` of appendix A.6, or the normalized `"count"` of section 3.4.
        similarity_scale: How sharply divergence lowers similarity (`beta`).
        margin: Of the contrastive loss (`gamma`).
        fine_tune: Train the predictor along with the amortized estimator (equation 10).
        joint_weight: Weight of the regression in joint fine-tuning (`lambda`).
        pin_stopping: Score the empty plan as exactly no gain.
        loss_reduction: Sum of the loss over later times (equation 1), or their mean.
        embedding_weights: Cost weights the embedding is trained for, as multiples of the one at
            which acquiring everything breaks even.
        embedding_epochs: Length of each of these trainings.
    """

    n_candidates: int = 1000
    guided: bool = False
    class_weight: ClassWeight = None
    n_neighbors: int = 5
    metric: Metric = "embedding"
    kernel: Kernel = "uniform"
    radius: float | None = None
    n_top_plans: int = 5
    weighting: Weighting = "softmax"
    similarity_scale: float = 1.0
    margin: float = 1.0
    fine_tune: bool = True
    joint_weight: float = 1.0
    pin_stopping: bool = False
    loss_reduction: LossReduction = "sum"
    embedding_weights: tuple[float, ...] = (0.3, 0.6, 1.0)
    embedding_epochs: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "embedding_weights", tuple(self.embedding_weights))
        _check(self)


def options_class(preset: str) -> type[DefaultOptions] | type[PaperOptions]:
    """The knobs that a preset has."""
    return PaperOptions if preset == "paper" else DefaultOptions


def check_estimator(name: str) -> None:
    """Raise unless the name is that of an estimator."""
    if name not in ("amortized", "contrastive", "ensemble"):
        raise ConfigError(f"estimator is '{name}'; use 'amortized', 'contrastive' or 'ensemble'.")


def _check(options: DefaultOptions | PaperOptions) -> None:
    for name, value in vars(options).items():
        if name in _CHOICES and value not in _CHOICES[name]:
            allowed = ", ".join(repr(c) for c in _CHOICES[name])
            raise ConfigError(f"{name} is {value!r}; use one of {allowed}.")
        if name in _AT_LEAST_ONE:
            require_whole_number(name, value)
    for name in ("amortized_share", "individual_share"):
        share = getattr(options, name, None)
        if share is not None and not 0 <= share <= 1:
            raise ConfigError(f"{name} is {share}; use a number from 0 to 1.")
    if options.radius is not None and options.radius < 0:
        raise ConfigError(f"radius is {options.radius}; use a number of at least 0.")
