"""The report of a comparison: one HTML file that needs nothing else."""

from nocta.report.build import write_comparison, write_report

__all__ = ["write_comparison", "write_report"]
