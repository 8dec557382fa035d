"""Figures: matplotlib, ready for print, readable in grey and when small."""
