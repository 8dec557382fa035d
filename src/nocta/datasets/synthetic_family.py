"""Random tasks like the paper's: other digits, countdowns, prices, useless features, horizons.

`task` draws one of them; which one does not depend on the seed of the subjects. The exact optimum
of every task is known, so that methods can be compared with what is possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.options import Count, CountOrZero
from nocta.datasets._card import Card, Measurement
from nocta.datasets._dataset import Dataset
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    from nocta.exact.task import FiniteTask

NAME = "synthetic-family"
#: A number draws a task; the names are those of `nocta.exact.NAMED_TASKS`.
Task = CountOrZero | Literal["late-starts", "late-starts-useless"]


def load(n_subjects: int = 8000, seed: int = 0, task: int | str = 0) -> Cohort:
    """Draw subjects of one task of the family."""
    drawn = finite_task(task)
    values, labels = drawn.sample(n_subjects, np.random.default_rng(seed))
    prices = drawn.cost_table()
    features = tuple(
        Feature(name, (name,), tuple(prices[:, m].tolist()))
        for m, name in enumerate(drawn.feature_names)
    )
    return Cohort(
        values=values.astype(np.float32),
        labels=labels,
        visits=np.ones(labels.shape, dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=Catalog(features, drawn.horizon),
        classes=tuple(str(c) for c in range(drawn.n_classes)),
        name=f"{NAME}-{task}",
        time_unit="time point",
    )


def finite_task(task: int | str = 0) -> FiniteTask:
    """The task the subjects are drawn from."""
    from nocta.exact.family import NAMED_TASKS, family_member

    if isinstance(task, str) and task not in NAMED_TASKS:
        raise ConfigError(
            f"task is '{task}'; use a whole number of at least 0, or one of "
            f"{', '.join(NAMED_TASKS)}.{did_you_mean(task, NAMED_TASKS)}"
        )
    return family_member(task).task


def _load(log: LoadLog, *, n_subjects: Count = 8000, seed: int = 0, task: Task = 0) -> Cohort:
    log.read(f"a random number generator (task {task}, seed {seed})")
    return load(n_subjects, seed, task)


CARD = Card(
    name=NAME,
    title="Random tasks like the paper's synthetic one, each with its exact optimum",
    origin="Drawn at random on loading; nothing is stored.",
    size="8,000 subjects, 6 to 8 slots",
    labels="a sum; the number of classes depends on the task",
    label_rule="Sum of the digits so far at time points when the counter is zero.",
    slots="6 to 8 time points, all present, nothing missing",
    license="BSD-3-Clause",
    access="built in",
    get="Nothing to download.",
    url="https://arxiv.org/abs/2211.05039",
    citations=("see `synthetic`, of which these tasks are variants",),
    measurements=(
        Measurement("digit", "uniform over 2 to 4 digits; costs .5 to 2", 1.0),
        Measurement("counter", "countdowns from 2 or 3 numbers up to 4; costs .25 to 1.5", 0.5),
    ),
    cost_source="Drawn with the task; those shown here are of the task `late-starts`.",
    traps=(
        "Nothing is tuned on these tasks, so that they can show how a method does on a task it has "
        "not seen. Leave it like that.",
        "Some tasks have a third or fourth feature that is pure noise.",
        "Some countdowns never start at 0. One look at the counter then tells when to look next, "
        "which open-loop plans cannot use: see docs/explanation/open-and-closed-loop.md.",
    ),
    options={
        "n_subjects": "number of subjects to draw (8000)",
        "seed": "same seed, same subjects (0)",
        "task": "which task: a whole number, `late-starts` or `late-starts-useless` (0)",
    },
    headline="accuracy",
    finite_task=finite_task,
)
DATASETS = (Dataset(CARD, _load),)
