"""From what is known to the next acquisition: the contracts, and every method by name."""

from nocta.policies.base import Decision, Observation, Policy
from nocta.policies.method import Method
from nocta.policies.registry import METHODS, method_class, parse_methods

__all__ = [
    "METHODS",
    "Decision",
    "Method",
    "Observation",
    "Policy",
    "method_class",
    "parse_methods",
]
