"""The training loop all networks share: one-cycle Adam, early stopping, best weights kept."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nocta.core.errors import ConfigError
from nocta.core.progress import progress_bar

L = TypeVar("L", float, Tensor)


@dataclass(frozen=True)
class TrainingConfig:
    """How long and how fast to train."""

    epochs: int = 200  # maximum number of passes over the training subjects
    batch_size: int = 256  # subjects per step
    learning_rate: float = 3e-3  # peak of the one-cycle schedule, or the constant rate
    schedule: str = "one-cycle"  # `"one-cycle"` or `"constant"`
    weight_decay: float = 0.0  # AdamW's weight decay
    patience: int = 20  # stop after this many checks without a better validation loss
    check_every: int = 4  # epochs between two checks on validation
    #: Maximum number of subjects per epoch, drawn again each time, so that a fit on a larger cohort
    #: takes no longer.
    most_per_epoch: int = 50_000
    #: Decay of a running mean of the weights, which is then what is checked and kept; 0 for none.
    average: float = 0.0

    def n_batches(self, n_train: int) -> int:
        """Steps of one epoch."""
        return max(1, round(min(n_train, self.most_per_epoch) / self.batch_size))

    def n_steps(self, n_train: int) -> int:
        """Steps in all, if training is not stopped early."""
        return self.epochs * self.n_batches(n_train)


@dataclass(frozen=True)
class TrainingLog:
    """Validation loss at every check, and which epoch was kept."""

    epochs: tuple[int, ...]
    validation_losses: tuple[float, ...]
    best_epoch: int


class _Steps:
    """The optimizer of parts of a module, each with its own rate, and its schedule."""

    def __init__(
        self, parts: Sequence[tuple[nn.Module, float]], config: TrainingConfig, n_train: int
    ) -> None:
        self.parts = [list(part.parameters()) for part, _ in parts]
        peaks = [rate for _, rate in parts]
        groups = [{"params": p, "lr": r} for p, r in zip(self.parts, peaks, strict=True)]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
        self.scheduler = None
        if config.schedule == "one-cycle":
            self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
                self.optimizer, peaks, total_steps=config.n_steps(n_train) + 1
            )

    def step(self, loss: Tensor) -> None:
        """Follow the gradient of a loss, clipped in every part."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for parameters in self.parts:
            nn.utils.clip_grad_norm_(parameters, 1.0)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()


class RunningMean:
    """A running mean of a module's weights, which can take their place for a while.

    With a decay of 0 the weights themselves stay in their place.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.module, self.decay, self._steps = module, decay, 0
        self._mean = {name: weight.clone() for name, weight in module.state_dict().items()}

    @torch.no_grad()
    def update(self) -> None:
        """Add the present weights; early steps, which are far off, soon count for nothing."""
        if not self.decay:
            return
        self._steps += 1
        keep = min(self.decay, self._steps / (9 + self._steps))
        for name, weight in self.module.state_dict().items():
            if weight.dtype.is_floating_point:
                self._mean[name].lerp_(weight, 1 - keep)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The mean stands in for the weights."""
        if not self.decay:
            yield
            return
        weights = copy.deepcopy(self.module.state_dict())
        self.module.load_state_dict(self._mean)
        try:
            yield
        finally:
            self.module.load_state_dict(weights)


def batches(
    n: int, size: int, rng: np.random.Generator, most: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """A fresh shuffle of `range(n)`, or of `most` out of it, in pieces of about `size`."""
    order = rng.permutation(n)[:most]
    yield from np.array_split(order, max(1, round(len(order) / size)))


def finite_loss(loss: L, description: str, part: str = "training") -> L:
    """The loss, if it is a finite number: otherwise training has diverged."""
    value = loss if isinstance(loss, float) else float(loss.detach())
    if not math.isfinite(value):
        raise ConfigError(
            f"{description}: training diverged; the {part} loss is {value}. Use a lower "
            f"learning_rate, or look for extreme values in the data."
        )
    return loss


def train(
    module: nn.Module,
    n_train: int,
    batch_loss: Callable[[NDArray[np.int64]], Tensor],
    validation_loss: Callable[[], float],
    config: TrainingConfig,
    rng: np.random.Generator,
    *,
    description: str = "training",
    progress: bool = False,
    on_epoch: Callable[[int, float], None] | None = None,
    rates: Sequence[tuple[nn.Module, float]] | None = None,
) -> TrainingLog:
    """Minimize `batch_loss` over minibatches of subjects; keep the weights best on validation.

    The module's parameters are trained in place. `batch_loss` is that of the subjects at some
    positions; `validation_loss` is evaluated without gradients, always under the same masks.
    `on_epoch` is called with epoch and validation loss at every check. `rates` gives parts of the
    module learning rates of their own; together they must be the whole module.
    """
    steps = _Steps(rates or [(module, config.learning_rate)], config, n_train)
    mean = RunningMean(module, config.average)
    best, best_epoch, best_weights = np.inf, 0, copy.deepcopy(module.state_dict())
    checks: list[tuple[int, float]] = []
    since_best = 0
    bar = progress_bar(range(1, config.epochs + 1), desc=description, show=progress)
    for epoch in bar:
        module.train()
        for index in batches(n_train, config.batch_size, rng, config.most_per_epoch):
            steps.step(finite_loss(batch_loss(index), description))
            mean.update()
        if epoch % config.check_every and epoch != config.epochs:
            continue
        module.eval()
        with mean.in_place(), torch.no_grad():
            score = float(finite_loss(validation_loss(), description, "validation"))
            weights = copy.deepcopy(module.state_dict()) if score < best - 1e-6 else {}
        checks.append((epoch, score))
        bar.set_postfix(validation=f"{score:.4f}", best=f"{min(best, score):.4f}")
        if on_epoch is not None:
            on_epoch(epoch, score)
        if score < best - 1e-6:
            best, best_epoch, since_best = score, epoch, 0
            best_weights = weights
        else:
            since_best += 1
            if since_best >= config.patience:
                break
    bar.close()
    module.load_state_dict(best_weights)
    module.eval()
    return TrainingLog(tuple(e for e, _ in checks), tuple(s for _, s in checks), best_epoch)
