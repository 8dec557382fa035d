"""`nocta init`: draft a `schema.toml` from a table.

`seen` computes properties of each column, `guess` decides what each column means, `draft` writes
the commented file.
"""
