"""Cohorts larger than memory: a folder of Parquet files, each with whole subjects.

`parts` reads them one at a time, `stored` gathers them into one cohort with its arrays on disk.
"""
