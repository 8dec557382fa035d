"""RAS and AS: active sensing with adaptive or fixed intervals."""

from nocta.methods.ras.method import As, Ras

__all__ = ["As", "Ras"]
