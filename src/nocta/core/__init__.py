"""Data types and contracts that everything else builds on. Imports nothing else of `nocta`.

`cohort`, `catalog`, `history`, `split`: what was recorded, what it costs, what has been acquired.
`policy`, `predictor`, `estimator`: the contracts that methods implement.
`environment`, `rollout`, `metrics`, `operating_points`: run a policy on a cohort and measure it.
"""
