"""ASAC: active sensing with an actor and a critic."""

from nocta.methods.asac.method import Asac

__all__ = ["Asac"]
