"""Section 3 of the paper: from a partial observation to the next acquisition.

Read the modules in this order:

1. `objective`: loss-to-go and NOCT, loss plus weighted cost (section 3.2, equations 1 and 3).
2. `space`: the subsets of features offered at each slot, and what they cost.
3. `search`: the best plans under an estimator, by beam search or from a sample (`u-hat`).
4. `estimators`: expected loss-to-go of a plan.
   - `targets`: losses of training subjects under any plan (equation 3).
   - NOCT-Contrastive (section 3.4): `future_distribution` and `embedding` (equations 4 and 5),
     `bank` and `retrieval` (the nearest training subjects), `contrastive` (equation 6),
     `remembered_votes` with `slot_shares` (the same votes for other predictors).
   - NOCT-Amortized (section 3.5): `amortized` (equations 7 to 9), `amortized_mlp` (as published,
     with the joint training of equation 10), `on_policy` (refresh on own plans).
   - Few subjects, and means of several estimators: `committee`, `population_plug_in`.
   - `sequential` and `network` are the bases they share.
5. `algorithm`: Algorithm 1, execute the earliest part of the best plan, then replan.
6. `scoring`: the next acquisition of many subjects in numbers; `explain`: one subject in words.

`limits` bounds memory and changes no decision.
"""
