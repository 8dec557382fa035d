"""Random requests to train networks on, and random plans for the sample search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.bool_]


def random_requests(n: int, open_slots: Slots, rng: np.random.Generator) -> Slots:
    """Random sets of slots of every density, `(n, L, M)`, for training under random masks.

    Three kinds in about equal shares: slots at one rate per subject; random features at random
    visits; and the same features at random visits. One in twenty requests everything.
    """
    length, width = open_slots.shape
    rate = rng.uniform(size=(n, 1, 1))
    slots = rng.uniform(size=(n, length, width)) < rate
    visit_rate, feature_rate = rng.uniform(size=(2, n, 1, 1))
    visits = rng.uniform(size=(n, length, 1)) < np.sqrt(visit_rate)
    sparse = visits & (rng.uniform(size=(n, length, width)) < np.sqrt(feature_rate))
    favored = visits & (rng.uniform(size=(n, 1, width)) < np.sqrt(feature_rate))
    kind = rng.integers(20, size=(n, 1, 1))
    out = np.where(kind < 8, slots, np.where(kind < 15, sparse, favored))
    out = np.where(kind == 19, True, out)
    # Some histories end early: nothing is requested after a random slot.
    last = rng.integers(0, 2 * length, size=(n, 1, 1))
    out = out & (np.arange(length)[None, :, None] <= last)
    return np.asarray(out & open_slots)


def uniform_plans(n_plans: int, open_slots: Slots, rng: np.random.Generator) -> Slots:
    """Distinct plans over the open slots, `(p, L, M)`; the empty plan is always the first.

    The size of each plan is uniform, then its slots are a uniform subset of that size. If there
    are at most `n_plans` subsets, all of them are returned.
    """
    slots = np.flatnonzero(open_slots)
    if slots.size <= 20 and 2**slots.size <= n_plans:
        codes = np.arange(2**slots.size)[:, None]
        return _spread((codes >> np.arange(slots.size)) & 1 == 1, open_slots)
    sizes = rng.integers(1, slots.size + 1, size=n_plans - 1)
    return _smallest_first(rng.uniform(size=(n_plans - 1, slots.size)), sizes, open_slots)


def guided_plans(
    n_plans: int, open_slots: Slots, importance: NDArray[np.float64], rng: np.random.Generator
) -> Slots:
    """Plans that favor slots of high `importance`, `(L, M)` on any non-negative scale.

    The empty plan is always the first. If there are at most `n_plans` subsets, all of them are
    returned.
    """
    slots = np.flatnonzero(open_slots)
    if slots.size <= 20 and 2**slots.size <= n_plans:
        return uniform_plans(n_plans, open_slots, rng)
    worth = np.maximum(importance.reshape(-1)[slots], 0) + 1e-12
    sizes = rng.integers(1, slots.size + 1, size=n_plans - 1)
    # Gumbel top-k: a draw without replacement with probability proportional to worth.
    noise = np.log(worth) + rng.gumbel(size=(n_plans - 1, slots.size))
    return _smallest_first(-noise, sizes, open_slots)


def _smallest_first(
    keys: NDArray[np.float64], sizes: NDArray[np.int64], open_slots: Slots
) -> Slots:
    """The empty plan, then the distinct plans of the `sizes` slots with the smallest keys."""
    ranks = keys.argsort(axis=1).argsort(axis=1)
    flat = np.concatenate([np.zeros((1, keys.shape[1]), bool), ranks < sizes[:, None]])
    _, first = np.unique(flat, axis=0, return_index=True)
    return _spread(flat[np.sort(first)], open_slots)


def _spread(flat: Slots, open_slots: Slots) -> Slots:
    plans = np.zeros((len(flat), open_slots.size), dtype=bool)
    plans[:, np.flatnonzero(open_slots)] = flat
    return plans.reshape(-1, *open_slots.shape)
