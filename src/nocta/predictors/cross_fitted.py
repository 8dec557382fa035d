"""Predictors that score each training subject by a member fitted without it."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.predictor import Fittable, Network, OutOfFold, Predictor, State
from nocta.predictors.encoding import arrays_under
from nocta.predictors.registry import predictor_state, restore_predictor

#: With fewer training subjects than this, five folds instead of three.
SMALL = 2000


class CrossFittedPredictor(Predictor):
    """One predictor, or one per fold whose probabilities are averaged for new subjects.

    `fold`, `(n_train,)`, is the member fitted without each training subject; all zero with a single
    member, whose losses on training subjects are then in-sample. `expected` says whether the
    members are calibrated well enough to judge themselves.
    """

    kind = "cross-fitted"

    def __init__(
        self, members: Sequence[Predictor], fold: NDArray[np.int64], expected: bool = True
    ) -> None:
        self.members = tuple(members)
        self.fold = fold
        self.expected = self.is_calibrated = expected
        self.n_classes_ = self.members[0].n_classes_

    @classmethod
    def single(cls, predictor: Predictor, train: Cohort, expected: bool | None = None) -> Self:
        """One predictor for every subject; `expected` is by default what it declares."""
        judges = predictor.is_calibrated if expected is None else expected
        return cls([predictor], np.zeros(len(train), dtype=np.int64), judges)

    @property
    def networks(self) -> tuple[Network, ...]:
        """The members' networks; empty unless every member has one."""
        found = [m.network for m in self.members]
        networks = tuple(network for network in found if network is not None)
        return networks if len(networks) == len(found) else ()

    @property
    def network(self) -> Network | None:
        return self.members[0].network if len(self.members) == 1 else None

    @property
    def out_of_fold(self) -> OutOfFold | None:
        return OutOfFold(self.members, self.fold) if len(self.members) > 1 else None

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        total = np.zeros((), dtype=np.float64)
        for member in self.members:
            total = total + member.predict_proba(history)
        return (total / len(self.members)).astype(np.float32)

    def state(self) -> State:
        states = [predictor_state(member) for member in self.members]
        config = {
            "kind": self.kind,
            "expected": self.expected,
            "members": [config for config, _ in states],
        }
        arrays = {"fold": self.fold}
        for i, (_, own) in enumerate(states):
            arrays |= {f"member{i}.{name}": array for name, array in own.items()}
        return config, arrays

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        members = [
            restore_predictor(own, arrays_under(arrays, f"member{i}."))
            for i, own in enumerate(config["members"])
        ]
        return cls(members, arrays["fold"], config["expected"])


class OutOfFoldPredictor(Predictor):
    """Predicts for the training subjects of a cross-fitted predictor, each out of fold.

    Histories hold the training subjects in the order of `rows`, possibly several times over.
    """

    def __init__(self, predictor: OutOfFold, rows: NDArray[np.int64]) -> None:
        self.members, self.fold = predictor.members, predictor.fold[rows]
        self.n_classes_ = self.members[0].n_classes_

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        fold = np.tile(self.fold, len(history) // len(self.fold))
        out = np.zeros((*history.values.shape[:2], self.n_classes_), dtype=np.float32)
        for which, member in enumerate(self.members):
            own = np.flatnonzero(fold == which)
            if own.size:
                out[own] = member.predict_proba(history.subset(own))
        return out


def as_cross_fitted(
    predictor: Predictor, train: Cohort, val: Cohort, seed: int = 0, progress: bool = False
) -> CrossFittedPredictor:
    """Any predictor in the form that planners learn from; it is left unchanged.

    A predictor that has members is taken as it is. One that can be fitted is fitted again, once
    per fold. Any other is used for every subject, with a warning unless it is calibrated. Raises
    `ConfigError` if the predictor does not fit the cohort.
    """
    if isinstance(predictor, CrossFittedPredictor):
        return predictor
    if predictor.out_of_fold is not None:
        members, fold = predictor.out_of_fold
        for member in members:
            check_output(member, train)
        return CrossFittedPredictor(members, fold, predictor.is_calibrated)
    if isinstance(predictor, Fittable):
        return cross_fit(predictor, train, val, None, seed, progress)
    check_output(predictor, train)
    if not predictor.is_calibrated:
        warnings.warn(
            f"{type(predictor).__name__} has no `fit`, so it is used as it is. If it was fitted "
            f"on the training subjects, its losses on them are too small, and estimates that are "
            f"learned from them are optimistic.",
            stacklevel=2,
        )
    return CrossFittedPredictor.single(predictor, train)


def cross_fit(
    model: Any,
    train: Cohort,
    val: Cohort,
    n_folds: int | None = None,
    seed: int = 0,
    progress: bool = False,
    *,
    expected: bool | None = None,
) -> CrossFittedPredictor:
    """Fit one copy of a predictor per fold of the training subjects; groups stay together.

    By default there are five folds with few subjects, otherwise three. The seed decides the folds,
    and the seed of every member. For `expected`, see `CrossFittedPredictor`; by default it is what
    the model declares.
    """
    check_fit(model)
    groups = np.arange(len(train)) if train.groups is None else train.groups
    n_folds = min(n_folds or (5 if len(train) < SMALL else 3), np.unique(groups).size)
    # A class too rare to be in every fold cannot be balanced over them.
    top = train.labels.max(axis=1)
    kinds, counts = np.unique(top, return_counts=True)
    top = np.where(np.isin(top, kinds[counts < n_folds]), kinds[counts.argmax()], top)
    from sklearn.model_selection import StratifiedGroupKFold

    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    fold = np.zeros(len(train), dtype=np.int64)
    members: list[Predictor] = []
    for f, (rest, held_out) in enumerate(splitter.split(top, top, groups)):
        fold[held_out] = f
        member = copy.deepcopy(model)
        own_seed = seed + 101 * (f + 1)
        member.fit(train.subset(rest), val, seed=own_seed, progress=progress)
        members.append(member)
        check_output(member, train)
    is_calibrated = members[0].is_calibrated if expected is None else expected
    return CrossFittedPredictor(members, fold, is_calibrated)


def check_fit(predictor: Fittable) -> None:
    """Raise `ConfigError` if `fit` has other arguments than those of the contract."""
    try:
        inspect.signature(predictor.fit).bind(None, None, seed=0, progress=False)
    except TypeError:
        raise ConfigError(
            f"{type(predictor).__name__}.fit must accept fit(train, val, *, seed, progress=False). "
            f"Change it, or remove fit to use the predictor as it is."
        ) from None


def check_output(predictor: Predictor, cohort: Cohort) -> None:
    """Raise `ConfigError` if predictions do not have the cohort's times and classes."""
    one = cohort.subset(np.arange(1))
    found = predictor.predict_proba(History.of(one, np.zeros_like(one.recorded))).shape
    said = getattr(predictor, "n_classes_", None)
    expected = (1, cohort.n_times, cohort.n_classes)
    if found != expected or said != cohort.n_classes:
        raise ConfigError(
            f"{type(predictor).__name__} predicts shape {found} for one subject, with n_classes_ = "
            f"{said}; expected {expected} (subjects, times, classes) and {cohort.n_classes}. Fit "
            f"it on a cohort with the same times and classes."
        )
