"""The training loop: it stops when nothing improves and keeps the best it saw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nocta.predictors.training import TrainingConfig, batches, train


class Point(nn.Module):
    """One number, to be moved to 3."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.zeros(()))


def run(config: TrainingConfig, validation=None, seed: int = 0):  # type: ignore[no-untyped-def]
    point = Point()
    seen: list[tuple[int, float]] = []
    log = train(
        point,
        20,
        lambda index: (point.x - 3.0) ** 2 * len(index) / 20,
        validation or (lambda: float((point.x - 3.0) ** 2)),
        config,
        np.random.default_rng(seed),
        on_epoch=lambda epoch, loss: seen.append((epoch, loss)),
    )
    return point, log, seen


def test_it_minimises_the_loss() -> None:
    point, log, _ = run(TrainingConfig(epochs=60, batch_size=5, learning_rate=0.1))
    assert float(point.x.detach()) == pytest.approx(3.0, abs=0.3)
    assert log.validation_losses[-1] < log.validation_losses[0]


def test_it_stops_when_nothing_improves() -> None:
    losses = iter([5.0, 4.0, 4.5, 4.6, 4.7, 1.0])
    config = TrainingConfig(epochs=100, patience=3, check_every=1)
    _, log, seen = run(config, lambda: next(losses))
    assert log.epochs == (1, 2, 3, 4, 5)
    assert log.best_epoch == 2
    assert [loss for _, loss in seen] == [5.0, 4.0, 4.5, 4.6, 4.7]


def test_the_best_weights_are_restored() -> None:
    kept: list[float] = []
    losses = iter([3.0, 1.0, 2.0, 2.0, 2.0])
    point = Point()

    def validation() -> float:
        kept.append(float(point.x.detach()))
        return next(losses)

    config = TrainingConfig(epochs=5, batch_size=5, schedule="constant", check_every=1)
    train(point, 20, lambda _: (point.x - 3.0) ** 2, validation, config, np.random.default_rng(0))
    assert float(point.x.detach()) == kept[1]
    assert kept[1] != kept[-1]
    assert not point.training


def test_the_last_epoch_is_always_checked() -> None:
    _, log, _ = run(TrainingConfig(epochs=5, check_every=2, schedule="constant"))
    assert log.epochs == (2, 4, 5)


def test_a_constant_rate_stays_constant() -> None:
    moved = []
    for schedule in ("constant", "one-cycle"):
        config = TrainingConfig(epochs=1, batch_size=20, learning_rate=0.01, schedule=schedule)
        point, _, _ = run(config)
        moved.append(float(point.x.detach()))
    assert moved[0] == pytest.approx(0.01, rel=1e-3)
    assert moved[1] < 0.01


def test_batches_cover_everybody_once() -> None:
    pieces = list(batches(23, 5, np.random.default_rng(0)))
    assert sorted(np.concatenate(pieces)) == list(range(23))
    assert {len(p) for p in pieces} <= {4, 5}
    assert len(list(batches(3, 100, np.random.default_rng(0)))) == 1
