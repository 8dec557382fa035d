"""Greedy forward selection of slots on validation: one growing plan for everybody.

At each step the block of slots with the largest drop of the loss per cost is added. Gains usually
shrink as more is known, so old gains serve as a ranking: only the best few, and a few drawn at
random, are computed again (lazy and stochastic greedy).

Under constraints the plan begins with what is always acquired, and a block is added only while the
whole plan keeps to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.options import Count, Options, Share
from nocta.core.predictor import Predictor
from nocta.core.progress import progress_bar
from nocta.core.rules import Rules


class GreedyOptions(Options):
    """Limits on the work of forward selection."""

    max_subjects: Count = 512
    """Maximum number of subjects that judge a plan, drawn at random."""
    exact_below: int = Field(default=32, ge=0)
    """With at most this many blocks, every block is tried at every step."""
    n_fresh: Count = 8
    """Otherwise this many of the highest ranked blocks are tried at a step."""
    n_random: int = Field(default=4, ge=0)
    """The number of other blocks that are tried with them."""
    share_per_step: Share = 0.05
    """If not every block is tried, this share of the blocks added so far is added at once."""
    patience: int = Field(default=24, ge=0)
    """After this many additions without a lower loss, the rest is added as it ranks."""
    max_evaluations: Count = 4000
    """The rest is also added as it ranks after this many plans were tried."""


@dataclass(frozen=True)
class GreedyPath:
    """Plans that grow from nothing to everything, each with its mean cost and loss."""

    #: (k, L, M); the first is empty or what is always acquired, each holds the one before
    plans: NDArray[np.bool_]
    costs: NDArray[np.float64]  # (k,) on all validation subjects
    losses: NDArray[np.float64]  # (k,) cross-entropy on those that were looked at

    @property
    def priority(self) -> NDArray[np.float64]:
        """`(L, M)` the step at which each slot was added; never added comes last."""
        return np.asarray(len(self.plans) - self.plans.sum(axis=0), dtype=float)


class PlanJudge:
    """Mean loss and cost of plans that are the same for everybody, on some subjects."""

    def __init__(self, predictor: Predictor, cohort: Cohort, max_rows: int = 4096) -> None:
        self.predictor = predictor
        self.cohort = cohort
        self._plans_at_once = max(1, max_rows // max(len(cohort), 1))

    def losses(self, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mean cross-entropy over labeled pairs, `(p, L, M)` to `(p,)`."""
        pieces = range(0, len(plans), self._plans_at_once)
        parts = [self._losses(plans[i : i + self._plans_at_once]) for i in pieces]
        return np.concatenate(parts) if parts else np.zeros(0)

    def costs(self, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mean charge per subject, `(p, L, M)` to `(p,)`; what is missing is not charged."""
        catalog, recorded = self.cohort.catalog, self.cohort.recorded
        return np.array([catalog.cost_of(plan & recorded).mean() for plan in plans])

    def _losses(self, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        labeled = self.cohort.labeled
        if not labeled.any():
            return np.zeros(len(plans))
        histories = [History.of(self.cohort, plan) for plan in plans]
        predicted = self.predictor.predict_proba(_stack(histories))
        predicted = predicted.reshape(len(plans), *labeled.shape, -1)[:, labeled]
        truth = np.broadcast_to(self.cohort.labels[labeled], predicted.shape[:2])
        return np.asarray(pair_losses(truth, predicted).mean(axis=1))


def _stack(histories: list[History]) -> History:
    """All rows of some histories below each other."""
    parts = [vars(history).values() for history in histories]
    return History(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def allowed_blocks(
    blocks: NDArray[np.bool_], rules: Rules | None, *, divide: bool = True
) -> NDArray[np.bool_]:
    """Blocks as constraints allow them: with partners, and without what is closed.

    A block that is too much by itself is divided into slots, or with `divide=False` thinned out.
    """
    if rules is None:
        return blocks
    alone = replace(rules, required=np.zeros_like(rules.required), prior=np.zeros_like(rules.prior))
    out: dict[bytes, NDArray[np.bool_]] = {}
    for block in blocks:
        asked = rules.with_partners(block)
        kept = alone.repaired(asked, ~rules.closed, np.zeros_like(asked))
        parts = [kept]
        if divide and (kept != asked).any():
            parts = [rules.with_partners(_only(block, t, m)) for t, m in np.argwhere(block)]
        for part in (part & ~rules.required for part in parts):
            if part.any() and not (part & rules.closed).any():
                out[part.tobytes()] = part
    return np.stack(list(out.values())) if out else blocks[:0]


def _only(block: NDArray[np.bool_], time: int, feature: int) -> NDArray[np.bool_]:
    single = np.zeros_like(block)
    single[time, feature] = True
    return single


def slot_blocks(open_slots: NDArray[np.bool_], max_blocks: int = 400) -> NDArray[np.bool_]:
    """What can be added at a step, `(b, L, M)`: single slots, or stretches if there are many.

    With more than `max_blocks` open slots, a block is one feature over consecutive visits, as
    few as keep the number of blocks within the limit.
    """
    length, width = open_slots.shape
    stretch = 1
    while stretch < length and width * -(-length // stretch) > max_blocks:
        stretch += 1
    if open_slots.sum() <= max_blocks:
        stretch = 1
    starts = range(0, length, stretch)
    blocks = np.zeros((len(starts) * width, length, width), dtype=bool)
    for i, start in enumerate(starts):
        for m in range(width):
            blocks[i * width + m, start : start + stretch, m] = True
    blocks &= open_slots
    return blocks[blocks.any(axis=(1, 2))]


def greedy_path(
    predictor: Predictor,
    cohort: Cohort,
    blocks: NDArray[np.bool_],
    *,
    seed: int,
    options: GreedyOptions | None = None,
    progress: bool = False,
    divide: bool = True,
) -> GreedyPath:
    """Add block after block, each time the one with the largest drop of the loss per cost.

    `blocks` `(b, L, M)` are disjoint sets of slots. The seed decides which subjects are looked at
    and which blocks are tried at random. The constraints are those of the cohort's catalog; see
    `allowed_blocks`.
    """
    options = options or GreedyOptions()
    rules = cohort.catalog.rules
    blocks = allowed_blocks(blocks, rules, divide=divide)
    rng = np.random.default_rng(seed)
    sample = cohort
    if len(cohort) > options.max_subjects:
        chosen = rng.choice(len(cohort), size=options.max_subjects, replace=False)
        sample = cohort.subset(np.sort(chosen))
    search = _Search(PlanJudge(predictor, sample), blocks, options, rng, rules)
    with progress_bar(total=len(blocks), desc="greedy slots", show=progress) as bar:
        while search.can_grow():
            search.add_next()
            bar.update(len(search.path) - bar.n)
    plans = np.stack([search.start, *search.path])
    return GreedyPath(plans, PlanJudge(predictor, cohort).costs(plans), search.judge.losses(plans))


@dataclass(eq=False)
class _Search:
    """State of one forward selection."""

    judge: PlanJudge
    blocks: NDArray[np.bool_]
    options: GreedyOptions
    rng: np.random.Generator
    rules: Rules | None = None

    def __post_init__(self) -> None:
        self.left = np.ones(len(self.blocks), dtype=bool)
        self.worth = np.full(len(self.blocks), np.inf)  # as of when it was last computed
        shape = self.blocks.shape[1:]
        self.start = np.zeros(shape, dtype=bool) if self.rules is None else self.rules.required
        self.plan = self.start
        self.path: list[NDArray[np.bool_]] = []
        self.loss = float(self.judge.losses(self.plan[None])[0])
        self.lowest, self.stale_steps, self.n_evaluations = self.loss, 0, 0

    def can_grow(self) -> bool:
        """Whether any block can be added."""
        return bool(self._allowed().any())

    def _allowed(self) -> NDArray[np.bool_]:
        """Blocks that are not added yet and can be, `(b,)`."""
        if self.rules is None or not self.left.any():
            return self.left
        return np.asarray(self.left & self.rules.allow(self.plan | self.blocks))

    def add_next(self) -> None:
        """Add the best block, or several at once if many have been added already."""
        tired = self.stale_steps >= self.options.patience
        spent = self.n_evaluations >= self.options.max_evaluations
        for block in self._ranked().tolist() if tired or spent else self._best():
            if self.rules is not None and not self.rules.allow(self.plan | self.blocks[block]):
                continue
            self.left[block] = False
            self.plan = self.plan | self.blocks[block]
            self.path.append(self.plan)

    def _ranked(self) -> NDArray[np.int64]:
        """Blocks that can be added, the most promising first."""
        left = np.flatnonzero(self._allowed())
        return left[np.argsort(-self.worth[left], kind="stable")]

    def _best(self) -> list[int]:
        """The best blocks, computing as few again as seems right."""
        losses: dict[int, float] = {}
        waiting = self._ranked().tolist()
        n_fresh = self.options.n_fresh
        if len(self.blocks) <= self.options.exact_below or np.isinf(self.worth[waiting]).any():
            n_fresh = len(waiting)
        rest = waiting[n_fresh:]
        if rest:
            extra = self.rng.choice(rest, size=min(self.options.n_random, len(rest)), replace=False)
            losses |= self._refresh(extra.tolist())
            waiting = [b for b in waiting if b not in losses]
        while waiting:
            losses |= self._refresh(waiting[:n_fresh])
            waiting = waiting[n_fresh:]
            if not waiting or max(self.worth[b] for b in losses) >= self.worth[waiting[0]]:
                break
        fresh = sorted(losses, key=lambda b: -float(self.worth[b]))
        n_added = int(self.options.share_per_step * len(self.path))
        chosen = fresh[: max(1, min(n_added, len(fresh) // 2))] if rest else fresh[:1]
        self._moved(losses[chosen[0]] if len(chosen) == 1 else None, chosen)
        return chosen

    def _moved(self, loss: float | None, chosen: list[int]) -> None:
        """Note the loss of the plan that comes next."""
        plan = self.plan | self.blocks[chosen].any(axis=0)
        self.loss = float(self.judge.losses(plan[None])[0]) if loss is None else loss
        self.stale_steps = 0 if self.loss < self.lowest else self.stale_steps + len(chosen)
        self.lowest = min(self.lowest, self.loss)

    def _refresh(self, chosen: list[int]) -> dict[int, float]:
        """Compute the worth of some blocks given the present plan."""
        plans = self.plan | self.blocks[chosen]
        losses = self.judge.losses(plans)
        extra = self.judge.costs(plans) - self.judge.costs(self.plan[None])[0]
        drop = self.loss - losses
        # A block that does not help is ranked by its harm, whatever it costs.
        self.worth[chosen] = np.where(drop > 0, drop / np.maximum(extra, 1e-9), drop)
        self.n_evaluations += len(chosen)
        return dict(zip(chosen, losses.tolist(), strict=True))
