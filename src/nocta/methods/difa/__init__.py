"""DiFA: differentiable feature acquisition."""

from nocta.methods.difa.method import Difa

__all__ = ["Difa"]
