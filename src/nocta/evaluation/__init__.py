"""Frontiers, their uncertainty, and the audit that finds leaks."""

from nocta.core.environment import Environment
from nocta.core.metrics import summarize
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import Bands, bootstrap_bands
from nocta.evaluation.frontier import (
    Frontier,
    PairedDifference,
    area,
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
    "paired_difference",
    "summarize",
    "upper_envelope",
]
