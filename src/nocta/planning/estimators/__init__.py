"""Estimators of the expected loss-to-go of a plan; `nocta.planning` has the reading order."""
