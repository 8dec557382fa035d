"""Retrieval: the training subjects, masked like the query, that are nearest in some metric."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort, even_rows
from nocta.core.errors import ConfigError
from nocta.core.policy import Observation
from nocta.core.predictor import Network
from nocta.planning.estimators.bank import Index, nearest_points
from nocta.planning.estimators.embedding import Embedding
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.gru import combine, state_half
from nocta.predictors.mlp import MLPNet
from nocta.predictors.recurrent import RecurrentNet

Metric = Literal["embedding", "predictor", "values"]
Kernel = Literal["uniform", "gaussian"]


class Neighbors(NamedTuple):
    """The training subjects who vote, and their weights, which sum to one."""

    subjects: Tensor  # (n, K)
    weight: Tensor  # (n, K)
    distance: Tensor  # (n, K)


@dataclass(eq=False, repr=False)
class NeighborBank:
    """Finds training subjects who looked like the query at the same slot.

    Every training subject is seen through the query's mask: only what the query requested, up to
    the query's slot, counts. If the metric is a network's, the state of the bank under a mask
    continues its state under the start of the mask, so masks that start alike share most of the
    work.
    """

    train: Cohort  # the subjects to retrieve (`D`)
    #: Distance in the learned embedding, in the predictor's last hidden layer, or between the
    #: observed values themselves.
    metric: Metric
    _: KW_ONLY
    encoder: InputEncoder  # encodes inputs for the metric
    embedding: Embedding | None = None  # the learned embedding, for that metric
    predictor: Network | None = None  # the predictor's network, for that metric
    size: int | None = None  # maximum number of subjects, drawn evenly from `train`
    n_neighbors: int = 5  # number of subjects that vote (`K`)
    #: If given, only subjects within this distance vote (the nearest one always does).
    radius: float | None = None
    kernel: Kernel = "uniform"  # equal votes, or votes that decay with distance
    #: `(n_bank,)` weight of each subject's vote, if they were not drawn evenly.
    stands_for: NDArray[np.float32] | None = None
    index: Index = "torch"  # how the nearest are found, see `nocta.planning.estimators.bank`
    limits: Limits = DEFAULT_LIMITS  # how much of the bank under recent masks is kept

    def __post_init__(self) -> None:
        metric, size = self.metric, self.size
        needed = {"embedding": self.embedding, "predictor": self.predictor, "values": self.encoder}
        if metric not in needed:
            raise ConfigError(f"metric is '{metric}'; use 'embedding', 'predictor' or 'values'.")
        if needed[metric] is None:
            raise ConfigError(f"The metric '{metric}' needs the {metric} it measures in.")
        if self.n_neighbors < 1:
            raise ConfigError(f"n_neighbors is {self.n_neighbors}; at least one subject must vote.")
        self.rows = even_rows(len(self.train), len(self.train) if size is None else size)
        self.data = EncodedCohort(self.encoder, self.train.subset(self.rows), most_held=math.inf)
        self._cache: OrderedDict[bytes, Tensor] = OrderedDict()
        self._cached_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cache": OrderedDict(), "_cached_bytes": 0}  # not copied

    def nearest(self, observation: Observation) -> Neighbors:
        """The voters of every subject; all subjects are at the same slot."""
        time = int(observation.time[0])
        inputs = self.encoder.encode(observation.history)
        queries = self._points(inputs, time)
        asked = observation.history.requested
        # Before the first visit subjects hardly differ, so many of them vote.
        wanted = self.n_neighbors if time >= 0 else max(self.n_neighbors, 512)
        k = min(wanted, len(self.data))
        index = torch.zeros(len(asked), k, dtype=torch.long)
        distance = torch.zeros(len(asked), k)
        for mask, rows in rows_by_mask(asked):
            bank = self._bank(mask, time)
            index[rows], distance[rows] = nearest_points(queries[rows], bank, k, self.index)
        weight = self._weights(distance, index)
        return Neighbors(torch.from_numpy(self.rows)[index], weight, distance)

    def _bank(self, mask: NDArray[np.bool_], time: int) -> Tensor:
        """Points of the bank's subjects under one mask, `(n_bank, E)`."""
        key = b"points" + mask.tobytes() + str(time).encode()
        net = self._network()
        if net is None:
            # A copy, because a view would keep the whole array alive.
            return self._remember(key, lambda: self._points(self._masked(mask), time).clone())
        return self._remember(key, lambda: self._walked_bank(net, mask, time))

    def _masked(self, mask: NDArray[np.bool_]) -> Tensor:
        asked = np.ascontiguousarray(np.broadcast_to(mask, (len(self.data), *mask.shape)))
        return self.data.inputs(np.arange(len(self.data)), asked)

    def _network(self) -> RecurrentNet | MLPNet | None:
        """The network of the metric, if its state under a mask can be continued slot by slot."""
        source = {"embedding": self.embedding, "predictor": self.predictor}.get(self.metric)
        net = None if source is None else source.net_
        return net if isinstance(net, RecurrentNet | MLPNet) else None

    @torch.no_grad()
    def _walked_bank(
        self, net: RecurrentNet | MLPNet, mask: NDArray[np.bool_], time: int
    ) -> Tensor:
        state = self._state_after(net, mask, time)
        # Read at the next slot, where nothing is known yet, as for the query.
        if isinstance(net, MLPNet):
            frame = net.frame_at(self.data.frame[:, time + 1], time + 1)
            out = net.after_first(state.float() + frame)
        else:
            out = self._advance(net, state, np.zeros_like(mask[0]), time + 1)
        points: Tensor = net.head(out) if self.metric == "embedding" else out
        return points

    def _state_after(
        self, net: RecurrentNet | MLPNet, mask: NDArray[np.bool_], time: int
    ) -> Tensor:
        """State of the network for the bank after slot `time` under the mask, `(n_bank, h)`.

        This is the recurrent state, or the sum of the slots' parts of the first layer.
        """
        if time < 0:
            if isinstance(net, MLPNet):
                # In double precision, like the running sum of the query, to be equal to the bit.
                return torch.zeros(len(self.data), net.time.shape[1], dtype=torch.float64)
            return torch.zeros(len(self.data), net.cell.hidden_size)
        return self._remember(
            mask[: time + 1].tobytes() + str(time).encode(),
            lambda: self._advance(net, self._state_after(net, mask, time - 1), mask[time], time),
        )

    def _advance(
        self, net: RecurrentNet | MLPNet, state: Tensor, asked: NDArray[np.bool_], time: int
    ) -> Tensor:
        if isinstance(net, MLPNet) and not asked.any():
            return state
        shown = torch.from_numpy(asked).float()[self.data.owner]
        slots = self.data.slots[:, time] * shown
        if isinstance(net, MLPNet):
            return state + slots @ net.slots[time]
        inputs = torch.cat([slots, self.data.frame[:, time]], dim=1)
        return combine(net.input_half(inputs), state_half(net.cell, state), state)

    def _remember(self, key: bytes, compute: Callable[[], Tensor]) -> Tensor:
        """Compute once and keep the most recently used results."""
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        found = self._cache[key] = compute()
        self._cached_bytes += found.nbytes
        while self._cached_bytes > self.limits.bank_bytes:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return found

    @torch.no_grad()
    def _points(self, inputs: Tensor, time: int) -> Tensor:
        if self.embedding is not None and self.metric == "embedding":
            return self.embedding.embed(inputs, time)
        if self.predictor is not None and self.metric == "predictor":
            # At the next slot, where nothing is known yet, like the embedding.
            return self.predictor.hidden_states(inputs)[:, time + 1]
        return inputs[:, : time + 1, : self.encoder.n_value_columns].flatten(1)

    def _weights(self, distance: Tensor, index: Tensor) -> Tensor:
        vote = torch.ones_like(distance)
        if self.kernel == "gaussian":
            scale = 0.5 * distance[:, -1:].clamp(min=1e-6)
            vote = torch.exp(-0.5 * (distance / scale) ** 2)
        if self.radius is not None:
            inside = distance <= self.radius
            inside[:, 0] = True
            vote = vote * inside
        if self.stands_for is not None:
            vote = vote * torch.from_numpy(self.stands_for)[index]
        return vote / vote.sum(dim=1, keepdim=True)


def rows_by_mask(asked: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], Tensor]]:
    """Each distinct mask `(L, M)` among `(n, L, M)`, and the rows that have it."""
    masks, which = np.unique(asked.reshape(len(asked), -1), axis=0, return_inverse=True)
    return [
        (mask.reshape(asked.shape[1:]), torch.from_numpy(np.flatnonzero(which.reshape(-1) == i)))
        for i, mask in enumerate(masks)
    ]
