"""DIME: dynamic feature selection by conditional mutual information."""

from nocta.methods.dime.method import Dime

__all__ = ["Dime"]
