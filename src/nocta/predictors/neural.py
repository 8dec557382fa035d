"""What the network predictors share: training under random masks, calibration, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.errors import NotFittedError
from nocta.core.history import History
from nocta.core.parameters import Parameters
from nocta.core.predictor import Predictor, State
from nocta.core.random_plans import random_requests
from nocta.predictors.encoding import EncodedCohort, InputEncoder, arrays_under
from nocta.predictors.training import TrainingConfig, TrainingLog, train

ClassWeight = Literal["balanced"] | None
Requests = Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.bool_]]
_CHUNK = 4096


class FitOptions(NamedTuple):
    """The options of one call of `NeuralPredictor.fit`."""

    requests: Requests | None
    rng: np.random.Generator
    progress: bool
    on_epoch: Callable[[int, float], None] | None


class NeuralPredictor(Parameters, Predictor):
    """Base of the network predictors: arbitrary conditioning by training under random masks.

    A subclass builds a module that maps inputs `(n, L, width)` to logits `(n, L, C)`, causally.
    """

    training: TrainingConfig
    class_weight: ClassWeight  # "balanced" counters rare classes; it distorts probabilities
    calibrate: bool  # fit a temperature on validation
    seed: int  # same seed, same network
    #: Name of this class in a saved model.
    kind: str
    #: Constructor arguments that are dataclasses.
    bundles: ClassVar[dict[str, type]] = {"training": TrainingConfig}

    net_: nn.Module
    encoder_: InputEncoder
    log_: TrainingLog
    temperature_: float

    @abstractmethod
    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        """A fresh network for inputs of this width."""

    @property
    def network(self) -> Self:
        return self

    @property
    def is_calibrated(self) -> bool:  # type: ignore[override]
        return self.calibrate and self.class_weight is None

    def fit(
        self,
        train_cohort: Cohort,
        val_cohort: Cohort,
        *,
        seed: int | None = None,
        requests: Requests | None = None,
        progress: bool = False,
        on_epoch: Callable[[int, float], None] | None = None,
    ) -> Self:
        """Train under random masks, stop early on validation, calibrate on validation.

        `seed` replaces the one the predictor was constructed with. `requests` gives what is
        requested of the training subjects at some positions, `(b, L, M)`; random sets of every
        density by default. `on_epoch` is called with epoch and validation loss at every check.
        """
        self.seed = self.seed if seed is None else seed
        rng = np.random.default_rng(self.seed)
        self.encoder_ = InputEncoder().fit(train_cohort)
        self.n_classes_, self.n_times_ = train_cohort.n_classes, train_cohort.n_times
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.net_ = self.build_net(self.encoder_.width, self.n_classes_, self.n_times_)
            how = FitOptions(requests, rng, progress, on_epoch)
            self._train(train_cohort, val_cohort, how)
        return self

    def _train(self, train_cohort: Cohort, val_cohort: Cohort, how: FitOptions) -> None:
        open_slots, rng = train_cohort.catalog.open_slots, how.rng
        ask = how.requests or (lambda index, r: random_requests(len(index), open_slots, r))
        data = EncodedCohort(self.encoder_, train_cohort)
        weight = self._class_weights(train_cohort)
        val_inputs, val_labels = self._validation_set(val_cohort, open_slots)

        def batch_loss(index: NDArray[np.int64]) -> Tensor:
            logits = self.net_(data.inputs(index, ask(index, rng)))
            return cross_entropy(logits, data.labels[torch.as_tensor(index)], weight)

        self.log_ = train(
            self.net_,
            len(train_cohort),
            batch_loss,
            lambda: self._validation_loss(val_inputs, val_labels, weight),
            self.training,
            rng,
            description="predictor",
            progress=how.progress,
            on_epoch=how.on_epoch,
        )
        self._calibrate(val_inputs, val_labels)

    @torch.no_grad()
    def _validation_loss(self, inputs: Tensor, labels: Tensor, weight: Tensor | None) -> float:
        return float(cross_entropy(self._logits(inputs), labels, weight))

    @torch.no_grad()
    def _calibrate(self, inputs: Tensor, labels: Tensor) -> None:
        """Fit the temperature that minimizes the cross-entropy."""
        from scipy.optimize import minimize_scalar

        self.temperature_ = 1.0
        if self.calibrate and bool((labels >= 0).any()):
            logits = self._logits(inputs)

            def objective(log_temperature: float) -> float:
                return float(cross_entropy(logits / float(np.exp(log_temperature)), labels))

            found = minimize_scalar(objective, bounds=(-1.5, 1.5), method="bounded")
            self.temperature_ = float(np.exp(found.x))

    def _validation_set(
        self, cohort: Cohort, open_slots: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        # The same masks at every check; several draws each if the cohort is small.
        copies = int(np.clip(2000 // max(len(cohort), 1), 1, 8))
        index = np.tile(np.arange(len(cohort)), copies)
        asked = random_requests(len(index), open_slots, np.random.default_rng(self.seed + 1))
        data = EncodedCohort(self.encoder_, cohort)
        return data.inputs(index, asked), data.labels[torch.as_tensor(index)]

    def _class_weights(self, cohort: Cohort) -> Tensor | None:
        if self.class_weight is None:
            return None
        counts = np.bincount(cohort.labels[cohort.labeled], minlength=cohort.n_classes)
        weights = np.where(counts > 0, counts.sum() / np.maximum(counts, 1) / (counts > 0).sum(), 0)
        return torch.from_numpy(weights.astype(np.float32))

    def _logits(self, inputs: Tensor) -> Tensor:
        return torch.cat([self.net_(piece) for piece in torch.split(inputs, _CHUNK)])

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        return self.log_proba(self.encode(history)).exp().numpy()

    def encode(self, history: History) -> Tensor:
        if not hasattr(self, "net_"):
            raise NotFittedError("This predictor is not fitted yet; call `fit(train, val)` first.")
        return self.encoder_.encode(history)

    @torch.no_grad()
    def log_proba(self, inputs: Tensor) -> Tensor:
        """Calibrated log-probabilities from network inputs, `(n, L, C)`."""
        return F.log_softmax(self._logits(inputs) / self.temperature_, dim=-1)

    @torch.no_grad()
    def hidden_states(self, inputs: Tensor) -> Tensor:
        """Last hidden layer before the head at every time, `(n, L, hidden)`."""
        states: Callable[[Tensor], Tensor] = self.net_.states  # type: ignore[assignment]
        return torch.cat([states(piece) for piece in torch.split(inputs, _CHUNK)])

    def state(self) -> State:
        params = self.get_params(deep=False)
        plain = {k: vars(v).copy() if is_dataclass(v) else v for k, v in params.items()}
        config = {"kind": self.kind, **plain}
        config["fitted"] = {
            "n_classes": self.n_classes_,
            "n_times": self.n_times_,
            "temperature": self.temperature_,
            "best_epoch": self.log_.best_epoch,
        }
        arrays = {f"encoder.{k}": v for k, v in self.encoder_.state().items()}
        arrays |= {f"net.{k}": v.numpy() for k, v in self.net_.state_dict().items()}
        return config, arrays

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        options = {k: v for k, v in config.items() if k not in ("kind", "fitted")}
        for name, bundle in cls.bundles.items():
            if name in options:
                options[name] = bundle(**options[name])
        out = cls(**options)
        fitted = config["fitted"]
        out.n_classes_, out.n_times_ = fitted["n_classes"], fitted["n_times"]
        out.temperature_ = fitted["temperature"]
        out.log_ = TrainingLog((), (), fitted["best_epoch"])
        out.encoder_ = InputEncoder.from_state(arrays_under(arrays, "encoder."))
        out.net_ = out.build_net(out.encoder_.width, out.n_classes_, out.n_times_)
        weights = arrays_under(arrays, "net.")
        out.net_.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in weights.items()})
        out.net_.eval()
        return out


def head_of_one_layer(hidden: int, n_outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_outputs))


def cross_entropy(logits: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean over labeled (subject, time) pairs; zero if there is none."""
    flat = labels.reshape(-1)
    if not bool((flat >= 0).any()):
        return logits.sum() * 0.0
    return F.cross_entropy(logits.reshape(len(flat), -1), flat, weight=weight, ignore_index=-1)
