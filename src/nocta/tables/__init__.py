"""From a user's long table (one row per subject and visit) to a `Cohort`.

Read in this order: `schema` (what `schema.toml` can say), `schema_file` (reading it), `source`
(opening a table), `columns`, `grid` and `rows` (cells to numbers, times to slots), `validate`
(checks), `assemble` (rows to arrays), `table` (all of it together). Every problem is collected in
`problems.Issues`, so that the user sees all of them at once. `history_table` reads what has been
acquired so far, `summary` describes a cohort, `draft` drafts a schema, `parts` reads cohorts
larger than memory.
"""
