"""Reference methods: fixed schedules and random acquisition."""

from nocta.methods.reference.method import Everything, FirstVisit, Nothing, Random, Static
from nocta.methods.reference.periodic import Periodic

__all__ = ["Everything", "FirstVisit", "Nothing", "Periodic", "Random", "Static"]
