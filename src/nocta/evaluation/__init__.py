"""What happened, how good it was, and proof that nobody peeked."""

from nocta.core.environment import Environment
from nocta.core.metrics import summarize
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import Bands, bootstrap_bands
from nocta.evaluation.frontier import (
    Frontier,
    PairedDifference,
    area,
    common_range,
    compare_areas,
    mean_quality,
    paired_difference,
    upper_envelope,
)

__all__ = [
    "Bands",
    "Environment",
    "Frontier",
    "PairedDifference",
    "Rollout",
    "area",
    "bootstrap_bands",
    "common_range",
    "compare_areas",
    "mean_quality",
    "paired_difference",
    "summarize",
    "upper_envelope",
]
