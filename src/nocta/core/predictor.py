"""The predictor contract: labels at every time from what has been acquired up to that time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.history import History

if TYPE_CHECKING:
    from torch import Tensor

#: Plain configuration and arrays that restore a fitted object.
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class Predictor(ABC):
    """Class probabilities at every time point, causally (`ŷ_k(x_{o_{1:k}})`).

    To add a predictor, derive from this class, write `predict_proba` and set `n_classes_`. Every
    reference policy, NOCT-Contrastive and NOCT-Amortized work with that. The prediction for slot
    `k` may use acquisitions at slots `<= k` only: changing anything acquired later must leave it
    identical to the bit. `nocta.testing.check_predictor` verifies this.

    Everything else is a capability that defaults to "no". Users of a predictor ask for the
    capability, never for a class, and refuse a predictor without it before any training:

    - `fit(train, val, *, seed, progress=False)` returns `self` and starts over at every call
      (`Fittable`). NOCTA then fits one copy per fold, so that the losses of training subjects are
      out of fold. Without it the predictor is used as it is. A class that can also be constructed
      without arguments can be published under the entry-point group `nocta.predictors` and named
      in `nocta compare --predictor NAME` and `nocta fit --predictor NAME`.
    - `is_calibrated`: the probabilities can be trusted as expected losses.
    - `out_of_fold`: the predictor is already a mean of members that each skipped some training
      subjects.
    - `network`: a torch network that can be trained further and read as an embedding. Derive from
      `nocta.predictors.neural.NeuralPredictor` to have one. Methods that train the predictor
      (`dime`, `asac`, the `paper` preset) need it. Its module can offer faster paths: slot by slot
      (`nocta.predictors.walking.WalkingNet`), or as sums over features (`AdditiveNet`).
    - `state()` and the class method `from_state(config, arrays)` (`Savable`): a model that
      contains the predictor can be saved.
    """

    n_classes_: int
    #: Whether the loss that the predictor expects of itself can replace the realized loss.
    is_calibrated: bool = False

    @abstractmethod
    def predict_proba(self, history: History) -> NDArray[np.float32]:
        """Class probabilities `(n, L, C)`; row `[:, k]` uses slots `<= k` only."""

    @property
    def network(self) -> Network | None:
        """The torch network behind the predictions, if there is one."""
        return None

    @property
    def out_of_fold(self) -> OutOfFold | None:
        """The members whose mean `predict_proba` returns, if each skipped some subjects."""
        return None


class OutOfFold(NamedTuple):
    """Members of a cross-fitted predictor."""

    members: tuple[Predictor, ...]
    #: `(n_train,)` position of the member that was fitted without each training subject.
    fold: NDArray[np.int64]


@runtime_checkable
class Fittable(Protocol):
    """A predictor that can be fitted."""

    def fit(self, train: Cohort, val: Cohort, /, *, seed: int, progress: bool = False) -> Any:
        """Learn from `train`, choose on `val`; start over at every call; return `self`."""


@runtime_checkable
class Savable(Protocol):
    """A predictor that can be saved without pickling."""

    def state(self) -> State:
        """Plain configuration (JSON) and arrays that restore the fitted predictor."""

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Inverse of `state`: a predictor with identical predictions."""


class Network(Protocol):
    """A torch network over encoded inputs, as `NeuralPredictor` provides it."""

    n_classes_: int
    temperature_: float
    encoder_: Any  # nocta.predictors.encoding.InputEncoder
    net_: Any  # torch.nn.Module: inputs (n, L, width) to logits (n, L, C)

    def encode(self, history: History) -> Tensor:
        """Inputs of the network, `(n, L, width)`."""

    def log_proba(self, inputs: Tensor) -> Tensor:
        """Calibrated log-probabilities, `(n, L, C)`."""

    def hidden_states(self, inputs: Tensor) -> Tensor:
        """Last hidden layer at every time, `(n, L, hidden)`."""


def has_network(predictor: Predictor) -> bool:
    """Whether the predictor, fitted or not, has a network, in all its members."""
    found = predictor.out_of_fold
    return all(member.network is not None for member in (found.members if found else (predictor,)))


def require_network(predictor: Predictor, user: str, reason: str) -> None:
    """Raise `ConfigError` if the predictor, fitted or not, has no network.

    `user` and `reason` begin the message, such as "Method 'dime'" and "trains the predictor".
    """
    found = predictor.out_of_fold
    for member in found.members if found else (predictor,):
        if member.network is None:
            raise ConfigError(
                f"{user} {reason}, which needs a torch network, and {type(member).__name__} has "
                f"none (`Predictor.network` is None). Use the learned predictor, or a method "
                f"that only asks for predictions, such as 'nocta-amortized' or 'static'."
            )
