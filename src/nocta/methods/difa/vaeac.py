"""VAEAC: a variational autoencoder that imputes anything from anything (Ivanov et al. 2019).

"Variational Autoencoder with Arbitrary Conditioning", ICLR 2019. A prior network looks at what
was acquired (`x_b` and the mask `b`), a proposal network also at the rest, and a decoder draws the
rest from their latent code. Trained under random masks on the evidence bound of what is hidden,
with a weak prior on the prior network's mean and scale that keeps it from running away.

Continuous columns have a Gaussian, discrete ones (at most six values, see `InputEncoder`) a
categorical likelihood, as in the source. Imputations are deterministic: the decoder's means and
probabilities at the prior's mean code. The decoder also sees what was acquired, in place of the
source's skip connections between encoder and decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.errors import NotFittedError
from nocta.core.random_plans import random_requests
from nocta.model.state import Arrays, State, load_net, nest, net_arrays, take_part
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.training import TrainingConfig, train

#: The source's weak prior on the prior network: scale of its mean, and pull on its scale.
_MEAN_SCALE, _SCALE_PULL = 1e4, 1e-4
_LOG_SCALE_RANGE = (-3.0, 3.0)
_CHUNK = 4096
VAEAC_TRAINING = TrainingConfig(epochs=60, learning_rate=3e-3, patience=8, check_every=3)


class SkipNet(nn.Module):
    """Two hidden layers with a skip connection around the second, LeakyReLU and dropout."""

    def __init__(self, width: int, n_outputs: int, hidden: int = 128, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, n_outputs)
        self.drop = nn.Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        low = self.drop(F.leaky_relu(self.first(inputs)))
        high = self.drop(F.leaky_relu(self.second(low)))
        return self.head(low + high)  # type: ignore[no-any-return]


class Code(NamedTuple):
    """A Gaussian over latent codes."""

    mean: Tensor
    log_scale: Tensor


class _VaeacNet(nn.Module):
    def __init__(self, seen: int, context: int, decoded: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.prior = SkipNet(seen + context, 2 * latent, hidden)
        self.proposal = SkipNet(2 * seen + context, 2 * latent, hidden)
        self.decoder = SkipNet(latent + seen + context, decoded, hidden)


@dataclass(eq=False)
class Vaeac:
    """Imputes every column of every slot from what was acquired.

    Works on the slot part of an encoded history, `(n, L, slot_width)`: values, which columns are
    known, indicators of discrete columns, which requests were unavailable.
    """

    hidden: int = 128
    latent: int = 16
    training: TrainingConfig = VAEAC_TRAINING
    seed: int = 0

    def fit(
        self,
        train_cohort: Cohort,
        val_cohort: Cohort,
        encoder: InputEncoder,
        progress: bool = False,
    ) -> Self:
        """Train under random masks; keep the weights with the best bound on validation."""
        self.encoder_ = encoder
        self._lay_out(train_cohort.n_times)
        open_slots = train_cohort.catalog.open_slots
        data, held_out = EncodedCohort(encoder, train_cohort), EncodedCohort(encoder, val_cohort)
        rng = np.random.default_rng(self.seed)
        fixed = random_requests(len(held_out), open_slots, np.random.default_rng(self.seed + 1))
        everybody = np.arange(len(held_out))

        def batch_loss(index: NDArray[np.int64]) -> Tensor:
            return self._bound(data, index, random_requests(len(index), open_slots, rng))

        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.net_ = self._build()
            self.log_ = train(
                self.net_,
                len(train_cohort),
                batch_loss,
                lambda: float(self._bound(held_out, everybody, fixed)),
                self.training,
                rng,
                description="imputer",
                progress=progress,
            )
        return self

    def _build(self) -> _VaeacNet:
        return _VaeacNet(
            self._n_times * self.encoder_.slot_width,
            2 * self.encoder_.context_.width,
            self._n_times * (2 * self._n_values + self._n_levels),
            self.hidden,
            self.latent,
        )

    def state(self) -> State:
        """Plain configuration and arrays that restore the fitted imputer."""
        config = {"hidden": self.hidden, "latent": self.latent}
        encoder, net = self.encoder_.state(), net_arrays(self.net_)
        return nest(config, {}, encoder=({}, encoder), net=({}, net))

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Inverse of `state`."""
        out = cls(config["hidden"], config["latent"])
        out.encoder_ = InputEncoder.from_state(take_part(config, arrays, "encoder")[1])
        out._lay_out(out.encoder_.n_times_)
        out.net_ = load_net(out._build(), take_part(config, arrays, "net")[1])
        return out

    def _lay_out(self, n_times: int) -> None:
        """Where values and indicators are within the vector of a slot."""
        encoder = self.encoder_
        self._n_times, self._n_values = n_times, encoder.n_value_columns
        self._n_levels = len(encoder.level_column_)
        table = np.full((self._n_levels, self._n_values), np.nan, dtype=np.float32)
        table[np.arange(self._n_levels), encoder.level_column_] = encoder.level_value_
        discrete = np.isin(np.arange(self._n_values), encoder.level_column_)
        self._discrete = torch.from_numpy(discrete)
        self._columns = [
            torch.from_numpy(np.flatnonzero(encoder.level_column_ == d))
            for d in np.unique(encoder.level_column_)
        ]
        #: Standardized value of every level in its own column, `(K, D)`.
        self._level_values = torch.from_numpy(
            np.where(np.isnan(table), np.float32(0), encoder.values_.transform(table))
        )

        known = np.concatenate(
            [np.arange(self._n_values)] * 2
            + [encoder.level_column_, np.zeros(encoder.n_features_, dtype=np.int64)]
        )
        #: For every entry of a slot's vector the one that says whether its column is known.
        self._known = torch.from_numpy(self._n_values + known)

    # -- imputing ------------------------------------------------------------------------

    def complete(self, slots: Tensor, context: Tensor) -> Tensor:
        """What was acquired, and imputations for the rest, `(n, L, slot_width)`.

        Gradients pass through `slots` and not through the imputations: if a slot is known
        "a little", its entries move from the imputation toward the value.
        """
        imputed = self.fill(slots.detach(), context)
        return slots + imputed * (1 - slots[..., self._known])

    @torch.no_grad()
    def fill(self, slots: Tensor, context: Tensor) -> Tensor:
        """What would stand in the vectors of the slots if all were known, `(n, L, slot_width)`.

        Only values and indicators are imputed; flags of known and unavailable entries are zero.
        """
        if not hasattr(self, "net_"):
            raise NotFittedError("This imputer is not fitted yet; call `fit(train, val)` first.")
        pieces = zip(torch.split(slots, _CHUNK), torch.split(context, _CHUNK), strict=True)
        return torch.cat([self._fill(*piece) for piece in pieces])

    def _fill(self, slots: Tensor, context: Tensor) -> Tensor:
        seen = torch.cat([slots.flatten(1), context], dim=1)
        mean, _, logits = self._decode(self._code(self.net_.prior, seen).mean, seen)
        levels = torch.zeros_like(logits)
        for columns in self._columns:
            levels[..., columns] = logits[..., columns].softmax(dim=-1)
        values = torch.where(self._discrete, levels @ self._level_values, mean)
        out = torch.zeros_like(slots)
        out[..., : self._n_values] = values
        out[..., 2 * self._n_values : 2 * self._n_values + self._n_levels] = levels
        return out

    # -- training ------------------------------------------------------------------------

    def _bound(
        self, data: EncodedCohort, index: NDArray[np.int64], requested: NDArray[np.bool_]
    ) -> Tensor:
        """Negative evidence bound of what is hidden, per subject and slot."""
        rows = torch.as_tensor(index)
        full = data.slots[rows]
        mask = torch.from_numpy(requested).float()[..., data.owner]
        shown, context = full * mask, data.frame[rows, 0, self._n_times :]
        seen = torch.cat([shown.flatten(1), context], dim=1)
        prior = self._code(self.net_.prior, seen)
        proposal = self._code(self.net_.proposal, torch.cat([full.flatten(1), seen], dim=1))
        noise = torch.randn_like(proposal.mean) if self.net_.training else 0.0
        code = proposal.mean + proposal.log_scale.exp() * noise
        hidden = full[..., self._n_values : 2 * self._n_values] * (1 - mask[..., : self._n_values])
        error = self._error(code, seen, full, hidden)
        weak = prior.mean.square() / (2 * _MEAN_SCALE**2)
        weak = weak + _SCALE_PULL * (prior.log_scale.exp() - prior.log_scale)
        per_subject = error + (_divergence(proposal, prior) + weak).sum(dim=1)
        return per_subject.mean() / self._n_times

    def _error(self, code: Tensor, seen: Tensor, full: Tensor, hidden: Tensor) -> Tensor:
        """Negative log-likelihood of the hidden columns, `(n,)`."""
        mean, log_scale, logits = self._decode(code, seen)
        gap = (full[..., : self._n_values] - mean) / log_scale.exp()
        gaussian = (0.5 * gap.square() + log_scale) * hidden * ~self._discrete
        total = gaussian.sum(dim=(1, 2))
        first_level = 2 * self._n_values
        for columns in self._columns:
            column = int(self.encoder_.level_column_[columns[0]])
            log_p = logits[..., columns].log_softmax(dim=-1)
            picked = (full[..., first_level + columns] * log_p).sum(dim=-1)
            total = total - (picked * hidden[..., column]).sum(dim=1)
        return total

    def _code(self, net: nn.Module, inputs: Tensor) -> Code:
        mean, log_scale = net(inputs).chunk(2, dim=1)
        return Code(mean, log_scale.clamp(*_LOG_SCALE_RANGE))

    def _decode(self, code: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means and log-scales `(n, L, D)`, and logits of levels `(n, L, K)`."""
        out = self.net_.decoder(torch.cat([code, seen], dim=1)).view(len(code), self._n_times, -1)
        sizes = [self._n_values, self._n_values, self._n_levels]
        mean, log_scale, logits = out.split(sizes, dim=2)
        return mean, log_scale.clamp(*_LOG_SCALE_RANGE), logits


def _divergence(a: Code, b: Code) -> Tensor:
    """Kullback-Leibler divergence of two Gaussians, per dimension."""
    ratio = (2 * (a.log_scale - b.log_scale)).exp()
    gap = ((a.mean - b.mean) / b.log_scale.exp()).square()
    return 0.5 * (ratio + gap - 1) + b.log_scale - a.log_scale
