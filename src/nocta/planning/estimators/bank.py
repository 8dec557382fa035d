"""The neighbor bank: which training subjects are kept, and how the nearest are found.

The bank is seen through the query's mask, so its points differ from mask to mask, and an index
serves one mask only. An approximate index would not pay, so both ways to search are exact.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import even_rows
from nocta.core.errors import MissingExtraError

Sampling = Literal["even", "stratified"]
Index = Literal["torch", "faiss"]


def choose_bank(
    labels: NDArray[np.int64], size: int, sampling: Sampling = "even"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Positions of at most `size` subjects to keep, and the weight of each, on average 1.

    `"even"` takes them evenly from first to last. `"stratified"` takes equal shares of every class
    (the largest index a subject reaches), as far as there are enough: rare courses keep enough
    neighbors, and votes are weighted accordingly.

    Example:
        >>> labels = np.array([[0]] * 90 + [[1]] * 10)
        >>> rows, stands_for = choose_bank(labels, 20, "stratified")
        >>> (rows >= 90).sum(), stands_for[[0, -1]].round(2)
        (np.int64(10), array([1.8, 0.2], dtype=float32))
    """
    n = len(labels)
    if sampling == "even" or size >= n:
        rows = even_rows(n, size)
        return rows, np.ones(len(rows), dtype=np.float32)
    kinds, kind, counts = np.unique(labels.max(axis=1), return_inverse=True, return_counts=True)
    shares = _equal_shares(counts, size)
    picked = [
        np.flatnonzero(kind == i)[even_rows(int(counts[i]), int(shares[i]))]
        for i in range(len(kinds))
    ]
    rows = np.sort(np.concatenate(picked))
    weight = counts / np.maximum(shares, 1) * shares.sum() / n
    return rows, weight[kind[rows]].astype(np.float32)


def _equal_shares(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Number of each kind: equal shares; what small kinds leave over goes to the others."""
    shares = np.zeros(len(counts), dtype=np.int64)
    left = size
    for position, i in enumerate(np.argsort(counts, kind="stable")):
        shares[i] = min(counts[i], left // (len(counts) - position))
        left -= int(shares[i])
    return shares


def nearest_points(queries: Tensor, bank: Tensor, k: int, index: Index) -> tuple[Tensor, Tensor]:
    """Positions in the bank and distances of the `k` nearest, `(n, k)` each, nearest first.

    Both ways are exact and give the same neighbors, but may break ties differently.
    """
    if index == "torch" or bank.shape[1] == 0:
        # Pair by pair: with a matrix product small distances are mostly rounding error, and a
        # subject's neighbors would depend on the other queries of the batch.
        distance = torch.cdist(queries, bank, compute_mode="donot_use_mm_for_euclid_dist")
        found = distance.topk(k, largest=False, sorted=True)
        return found.indices, found.values
    try:
        import faiss
    except ImportError:
        raise MissingExtraError(
            "neighbor_index='faiss' needs faiss: pip install 'nocta[faiss]', or use 'torch'."
        ) from None
    flat = faiss.IndexFlatL2(bank.shape[1])
    flat.add(np.ascontiguousarray(bank.numpy()))
    squared, positions = flat.search(np.ascontiguousarray(queries.numpy()), k)
    return torch.from_numpy(positions), torch.from_numpy(np.sqrt(np.maximum(squared, 0)))
