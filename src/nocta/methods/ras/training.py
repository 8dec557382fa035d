"""Actor-critic training of active sensing, on simulated follow-ups of the training subjects."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from nocta.core.cohort import even_rows
from nocta.core.options import Count, Options, Positive
from nocta.core.progress import progress_bar
from nocta.methods.ras.networks import ActorCritic, EncoderKind, Intervals
from nocta.methods.ras.simulation import Prices, Simulator
from nocta.predictors.training import finite_loss

_TINY = 1e-7
#: Weight of all follow-ups beside the tail when the best weights are chosen: it breaks ties.
_EVERYBODY = 0.1
#: Maximum number of validation subjects who decide which weights are kept, and of training subjects
#: among whom the tail is searched in a round.
_JUDGED, _WATCHED = 1000, 2000
#: The pool has shrunk to the tail after this share of the rounds.
_NARROWED = 0.6


class RasTraining(Options):
    """Length and pace of the training of actor and critic."""

    rounds: Count = 60
    """Rounds of training; never stopped early, since the actor's modes hardly change at first."""
    steps_per_round: Count = 20
    """Gradient steps per round."""
    batch_size: Count = 128
    """Simulated follow-ups per step."""
    learning_rate: Positive = 5e-3
    """Peak of a cosine schedule over all rounds."""
    exploration: float = Field(default=0.03, ge=0, lt=0.5)
    """In training, no probability comes closer to 0 or 1 than this; falls to a tenth."""
    entropy: float = 0.12
    """Reward of undecided coins; falls to a tenth."""
    discount: float = 0.99
    """Discount of later visits."""
    trace: float = 0.9
    """How far advantages follow what happened before they trust the critic: 1 to the end, 0 to the
    next visit."""


@dataclass(eq=False)
class ActorTraining:
    """Trains actor and critic at one prediction weight, in the end on the worst `tail_share`."""

    simulator: Simulator
    intervals: Intervals
    prices: Prices
    config: RasTraining
    tail_share: float
    hidden: int
    kind: EncoderKind
    seed: int

    def __post_init__(self) -> None:
        config, seed = self.config, self.seed
        self.rng, self.generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.net = ActorCritic(self.simulator.predictor.encoder_, self.hidden, self.kind)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=config.learning_rate)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            config.learning_rate,
            total_steps=config.rounds * config.steps_per_round + 1,
            pct_start=0.1,
        )

    def run(self, val: Simulator, progress: bool = False) -> tuple[ActorCritic, list[float]]:
        """The network with the weights best on validation, and the cost there after each round.

        That cost is the mean of the worst `tail_share` of the subjects and, to a tenth, of
        everybody: without the tenth, acquiring everything for everybody could not be told from
        sparing nine subjects in ten.
        """
        net, rounds, judged = self.net, self.config.rounds, even_rows(len(val), _JUDGED)
        best, best_weights, curve = np.inf, copy.deepcopy(net.state_dict()), list[float]()
        bar = progress_bar(range(rounds), desc="active sensing", show=progress)
        for done in bar:
            self.train_round(done / max(rounds - 1, 1))
            totals = val.totals(judged, net, self.intervals, self.prices)
            tail = float(totals[worst(totals, self.tail_share)].mean())
            curve.append((1 - _EVERYBODY) * tail + _EVERYBODY * float(totals.mean()))
            bar.set_postfix(validation=f"{curve[-1]:.3f}")
            if curve[-1] < best - 1e-6:
                best, best_weights = curve[-1], copy.deepcopy(net.state_dict())
        bar.close()
        net.load_state_dict(best_weights)
        return net.eval(), curve

    def train_round(self, progress: float) -> None:
        """Find the tail, then take some steps; `progress` goes from 0 to 1 over the rounds."""
        config, pool = self.config, np.arange(len(self.simulator))
        heat = 1 - 0.9 * progress  # of exploration
        floor = heat * config.exploration
        if self.tail_share < 1:
            if len(pool) > _WATCHED:
                pool = self.rng.choice(pool, size=_WATCHED, replace=False)
            totals = self.simulator.totals(
                pool, self.net, self.intervals, self.prices, self.generator, floor
            )
            # The tail alone teaches nothing before the actor has learned what is worth its cost.
            pool = pool[worst(totals, self.tail_share ** min(1.0, progress / _NARROWED))]
        for _ in range(config.steps_per_round):
            # If subjects are few, each is followed more than once, each time with another draw.
            again = len(pool) < config.batch_size
            index = self.rng.choice(pool, size=config.batch_size, replace=again)
            self.optimizer.zero_grad(set_to_none=True)
            finite_loss(self._loss(index, floor, heat), "ras").backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()

    def _loss(self, index: NDArray[np.int64], floor: float, heat: float) -> Tensor:
        config, net = self.config, self.net
        episodes = self.simulator.follow(net, self.intervals, index, self.generator, floor)
        costs = self.simulator.stage_costs(index, episodes, self.prices)
        returns, decided = discounted_returns(costs, episodes.visited, config.discount)
        center, scale = returns[decided].mean(), returns[decided].std() + _TINY

        # Once more in one pass, now with gradients.
        states = net.encoder.states(self.simulator.inputs(index, episodes))
        value, action = net.value(states), net.act(states, floor)
        features, interval = action.log_prob(episodes.chosen, episodes.share, episodes.mattered)
        # The first visit is at once, whatever was drawn.
        interval = interval * (torch.arange(interval.shape[1]) > 0)
        log_prob = features if self.intervals.is_fixed else features + interval

        expected = center + scale * value.detach()
        gain = advantages(costs, episodes.visited, expected, config.discount, config.trace) / scale
        actor = (log_prob * gain)[decided].mean()
        critic = (value - (returns - center) / scale)[decided].square().mean()
        doubt = action.doubt(episodes.mattered)[decided].mean()
        return actor + critic - heat * config.entropy * doubt


def discounted_returns(costs: Tensor, visited: Tensor, discount: float) -> tuple[Tensor, Tensor]:
    """What follows from each decision on, discounted once per visit, and which were made.

    From `(b, L)` to two `(b, L + 1)`; index 0 is the decision before the first visit.
    """
    running = torch.zeros(len(costs))
    returns = torch.zeros(len(costs), costs.shape[1] + 1)
    for k in reversed(range(costs.shape[1])):
        running = costs[:, k] + running
        returns[:, k + 1] = running
        running = torch.where(visited[:, k], discount * running, running)
    returns[:, 0] = running
    return returns, torch.cat([torch.ones_like(visited[:, :1]), visited], dim=1)


def advantages(
    costs: Tensor, visited: Tensor, expected: Tensor, discount: float, trace: float
) -> Tensor:
    """How much more each decision cost than the critic expected, both `(b, L + 1)`.

    `trace=1` sums up what really followed; less trusts the critic from the next visit on.
    """
    found = torch.zeros_like(expected)
    stage, value, later = (torch.zeros(len(costs)) for _ in range(3))
    for k in reversed(range(costs.shape[1])):
        stage = stage + costs[:, k]
        here = visited[:, k]
        surprise = stage + discount * value - expected[:, k + 1]
        found[:, k + 1] = surprise + discount * trace * later
        stage = torch.where(here, 0.0, stage)
        value = torch.where(here, expected[:, k + 1], value)
        later = torch.where(here, found[:, k + 1], later)
    found[:, 0] = stage + discount * value - expected[:, 0] + discount * trace * later
    return found


def worst(totals: Tensor, share: float) -> NDArray[np.int64]:
    """Positions of the most expensive `share` of the follow-ups, at least one."""
    n = max(1, math.ceil(share * len(totals)))
    return np.asarray(totals.numpy().argsort(kind="stable")[-n:])
