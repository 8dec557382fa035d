"""Figures: matplotlib, ready for print, readable in gray and when small."""
