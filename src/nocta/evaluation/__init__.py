"""Frontiers, their uncertainty, and the audit that finds leaks."""
