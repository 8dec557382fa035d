"""`nocta init`: draft a `schema.toml` from a table.

`seen` computes properties of each column, `guess` decides what each column means, `draft` writes
the commented file.
"""

from nocta.tables.draft.draft import Draft, draft_schema

__all__ = ["Draft", "draft_schema"]
