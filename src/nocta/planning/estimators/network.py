"""What the trained networks here share: a check that they are fitted, and their saved state."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nocta.core.errors import NotFittedError
from nocta.core.parameters import Parameters
from nocta.predictors.encoding import InputEncoder, arrays_under
from nocta.predictors.training import TrainingConfig, TrainingLog


class FittedNetwork(Parameters):
    """A network over encoded histories, trained with a `TrainingConfig`."""

    training: TrainingConfig
    encoder_: InputEncoder
    net_: nn.Module
    log_: TrainingLog

    @abstractmethod
    def _build(self) -> nn.Module:
        """The network with new weights, for the inputs of `encoder_`."""

    def _check_fitted(self) -> None:
        if not hasattr(self, "net_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call `fit` first.")

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain configuration and arrays that restore the fitted network."""
        config = {**self.get_params(deep=False), "training": asdict(self.training)}
        config.pop("limits", None)  # they belong to the machine, not to the fit
        config["fitted"] = {"best_epoch": self.log_.best_epoch}
        arrays = {f"encoder.{k}": v for k, v in self.encoder_.state().items()}
        arrays |= {f"net.{k}": v.numpy() for k, v in self.net_.state_dict().items()}
        return config, arrays

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Inverse of `state`."""
        options = {k: v for k, v in config.items() if k != "fitted"}
        out = cls(**{**options, "training": TrainingConfig(**options["training"])})
        out.encoder_ = InputEncoder.from_state(arrays_under(arrays, "encoder."))
        out.log_ = TrainingLog((), (), config["fitted"]["best_epoch"])
        out.net_ = out._build()
        weights = arrays_under(arrays, "net.")
        out.net_.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in weights.items()})
        out.net_.eval()
        return out
