"""The nouns and contracts that everything else is built on; imports nothing else of `nocta`.

`cohort`, `catalog`, `history`, `split`: what was recorded, what it costs, what has been acquired.
`policy`, `predictor`, `estimator`: the contracts that methods implement.
`rollout`, `metrics`, `operating_points`: a policy meets a cohort, and what that was worth.
"""
