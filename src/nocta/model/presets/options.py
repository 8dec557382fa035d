"""The options of the presets: all have defaults, and are checked before anything is fitted."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from nocta.core.options import Count, NonNegative, Options, Positive, Share
from nocta.planning.direct.training import DirectConfig
from nocta.planning.estimators.bank import Index, Sampling
from nocta.planning.estimators.future_distribution import Weighting
from nocta.planning.estimators.retrieval import Kernel, Metric
from nocta.planning.objective import LossReduction, PlanningLoss
from nocta.predictors.neural import ClassWeight

SearchKind = Literal["beam", "uniform", "guided"]
Form = Literal["closed-loop", "open-loop"]


class DefaultOptions(Options):
    """Options of the `default` preset."""

    loss: PlanningLoss = "cross-entropy"
    """Score plans by cross-entropy, as in the paper, or by the error rate."""
    class_weight: ClassWeight = None
    """`"balanced"` counters rare classes; losses are then the realized ones."""
    hidden: Count = 64
    """Units of the amortized estimator."""
    n_rounds: int = Field(default=3, ge=0)
    """Refreshes on own plans: rounds of training on the planner's plans, if subjects are many."""
    n_refreshed: Count = Field(
        default=6000, validation_alias=AliasChoices("n_refreshed", "n_rehearsed")
    )
    """Training subjects the planner plans for in each refresh on own plans."""
    individual_share: Share | None = None
    """Weight of a subject's own estimate against the population's, if subjects are few; chosen on
    validation by default."""
    n_neighbors: Count = 24
    """Subjects who vote in retrieval (`K`)."""
    metric: Metric = "embedding"
    """The space in which retrieval measures distance."""
    kernel: Kernel = "gaussian"
    """Equal votes, or votes that fade with distance."""
    radius: NonNegative | None = None
    """Only subjects within this distance vote; no limit by default."""
    bank_size: Count = 3000
    """Maximum number of training subjects kept for retrieval."""
    bank_sampling: Sampling = "even"
    """Keep them evenly, or equally many of each class with votes weighted back."""
    neighbor_index: Index = "torch"
    """Find neighbors with torch, or with faiss (an extra); both are exact."""
    search: SearchKind = "beam"
    """Beam over time, or the best of a sample drawn uniformly or by slot value."""
    width: Count = 16
    """Beam width of the amortized search."""
    voting_width: Count = 6
    """Beam width if every step asks the neighbors."""
    n_candidates: Count = 1000
    """Plans in a sample search (`|O|`); every plan if there are no more."""
    amortized_share: Share | None = None
    """Weight of the amortized estimator in the ensemble; chosen on validation by default."""


class DirectOptions(Options):
    """Options of the estimator `"direct"`, in both presets."""

    class_weight: ClassWeight = None
    """`"balanced"` counters rare classes when the predictor is first fitted."""
    form: Form = "closed-loop"
    """`"closed-loop"`: later gates see the results of earlier ones, so a plan counts on what will
    be learned on the way. `"open-loop"`: the whole plan is made from what is known now (NOCT), and
    made again at every visit."""
    hidden: Count | None = None
    """Units of the network; chosen by the number of subjects by default."""
    hindsight: Share = 0.9
    """Share of a label that is replaced by the prediction from everything recorded."""
    predictor_rate: NonNegative | None = None
    """Learning rate with which the predictor adapts to the plans; 0 leaves it as it is. By default
    0.004, or 0 with fewer than 500 training subjects."""
    individual_share: Share | None = None
    """Weight of the subject's own plan against the schedule for everybody; chosen on validation by
    default."""
    quick: bool = False
    """A short fit, with worse plans."""

    def config(self, adapts: bool = True) -> DirectConfig:
        """What training needs of them; `adapts` says whether the predictor adapts by default."""
        default = DirectConfig.predictor_rate if adapts else 0.0
        rate = default if self.predictor_rate is None else self.predictor_rate
        return DirectConfig(
            closed_loop=self.form == "closed-loop",
            hindsight=self.hindsight,
            predictor_rate=rate,
            quick=self.quick,
        )


class PaperOptions(Options):
    """Options of the `paper` preset, at the published values."""

    n_candidates: Count = 1000
    """Random plans per decision (`|O|`)."""
    guided: bool = False
    """Draw plans by slot value instead of uniformly."""
    class_weight: ClassWeight = None
    """`"balanced"` counters rare classes."""
    n_neighbors: Count = 5
    """Subjects who vote (`K`)."""
    metric: Metric = "embedding"
    """The space in which retrieval measures distance."""
    kernel: Kernel = "uniform"
    """Equal votes, or votes that fade with distance."""
    radius: NonNegative | None = None
    """Only subjects within this distance vote; no limit by default."""
    n_top_plans: Count = 5
    """Plans that form the future-candidate distribution (`kappa`)."""
    weighting: Weighting = "softmax"
    """`"softmax"` of appendix A.6, or the normalized `"count"` of section 3.4."""
    similarity_scale: float = 1.0
    """How sharply divergence lowers similarity (`beta`)."""
    margin: float = 1.0
    """Margin of the contrastive loss (`gamma`)."""
    fine_tune: bool = True
    """Train the predictor together with the amortized estimator (equation 10)."""
    joint_weight: float = 1.0
    """Weight of the regression in joint fine-tuning (`lambda`)."""
    pin_stopping: bool = False
    """Score the empty plan as exactly no gain."""
    amortized_epochs: Count = 400
    """Maximum length of training of the amortized estimator."""
    loss_reduction: LossReduction = "sum"
    """Sum of the loss over later times (equation 1), or their mean."""
    embedding_weights: tuple[Positive, ...] = Field(default=(0.3, 0.6, 1.0), min_length=1)
    """Cost weights the embedding is trained for, as multiples of the weight at which acquiring
    everything breaks even."""
    embedding_epochs: Count = 10
    """Length of each of these trainings."""
