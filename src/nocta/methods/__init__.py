"""From what is known to the next acquisition: the contracts, and every method by name."""

from nocta.core.policy import Decision, Observation, Policy
from nocta.methods.contract import Method
from nocta.methods.registry import METHODS, method_class, parse_methods

__all__ = [
    "METHODS",
    "Decision",
    "Method",
    "Observation",
    "Policy",
    "method_class",
    "parse_methods",
]
