"""A linear predictor over summaries of the past, for cohorts that are too small for a network.

The summary of a column at slot `k` holds its last value and age, the mean so far, the change since
the first value, and whether there is any. A multinomial logistic regression on the summaries is
fitted under random masks. It has few enough weights for a few hundred subjects.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort, even_rows
from nocta.core.errors import ConfigError
from nocta.core.random_plans import random_requests
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.neural import ClassWeight, FitOptions, NeuralPredictor, Requests
from nocta.predictors.training import TrainingLog

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

#: Strengths of the weights' prior that validation chooses from, the strongest first.
INVERSE_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Maximum number of optimizer steps.
_MAX_STEPS = 200
#: Log-odds by which a class that was never seen stays behind the rarest one.
_UNSEEN = 3.0


@dataclass(frozen=True)
class RowLimits:
    """How many rows (a labeled visit under a random mask) the regression is fitted on."""

    masks: int = 4  # random masks per training subject, at least
    wanted: int = 20_000  # rows to aim for with more masks
    most: int = 400_000  # above it, an even sample of the subjects is used
    at_once: int = 4096  # subjects under a mask that are summarized at once; bounds memory


class SummaryNet(nn.Module):
    """Summaries of the past, standardized, and one linear layer; an additive `WalkingNet`.

    A state holds per column the last and first value, sum, count and age of the last value; then
    the inputs that belong to the present slot alone.
    """

    column: Tensor
    owner: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, encoder: InputEncoder, n_outputs: int) -> None:
        super().__init__()
        self.n_columns, self.n_levels = encoder.n_value_columns, len(encoder.level_column_)
        self.n_features, self.n_times = encoder.n_features_, encoder.n_times_
        self.frame_width = encoder.width - encoder.slot_width
        # A channel is a column's value, or the indicator of one of its levels.
        column = np.concatenate([np.arange(self.n_columns), encoder.level_column_])
        self.register_buffer("column", torch.from_numpy(column))
        owner = encoder.slot_owner_[column]
        each = [owner, owner, owner, *[owner[: self.n_columns]] * 3, np.arange(self.n_features)]
        self.register_buffer("owner", torch.from_numpy(np.concatenate(each)))
        width = len(self.owner) + self.frame_width
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.head = nn.Linear(width, n_outputs)

    @property
    def state_width(self) -> int:
        return 3 * len(self.column) + 2 * self.n_columns + self.n_features + self.frame_width

    def extend(self, state: Tensor, inputs: Tensor) -> Tensor:
        channels, known, present = self._split(inputs)
        last, first, total, count, age, _ = self._parts(state)
        seen = known[..., self.column]
        fresh = (count == 0)[..., self.column]
        parts = [
            seen * channels + (1 - seen) * last,
            torch.where(fresh, seen * channels, first),
            total + seen * channels,
            count + known,
            torch.where(known > 0, 0.0, age + (count > 0)),
        ]
        shape = parts[0].shape[:-1]
        return torch.cat([p.expand(*shape, p.shape[-1]) for p in (*parts, present)], dim=-1)

    def walk(self, inputs: Tensor) -> Tensor:
        channels, known, present = self._split(inputs)
        slot = torch.arange(inputs.shape[1])[None, :, None]
        count = known.cumsum(dim=1)
        latest = torch.where(known > 0, slot, -1).cummax(dim=1).values
        earliest = torch.where(known > 0, slot, len(slot[0])).cummin(dim=1).values
        ever = (count > 0)[..., self.column]
        newest = channels.gather(1, latest.clamp(min=0)[..., self.column])
        oldest = channels.gather(1, earliest.clamp(max=len(slot[0]) - 1)[..., self.column])
        age = torch.where(count > 0, slot - latest, 0).float()
        total = (channels * known[..., self.column]).cumsum(dim=1)
        return torch.cat([newest * ever, oldest * ever, total, count, age, present], dim=-1)

    def summaries(self, state: Tensor) -> Tensor:
        """Inputs of the linear layer before they are standardized."""
        parts = self._parts(state)
        return self._summarize(parts, parts[3].clamp(max=1))

    def states(self, inputs: Tensor) -> Tensor:
        """Standardized summaries after every slot, `(n, L, width of the linear layer)`.

        If the inputs need a gradient, it includes what a value that is not known would change.
        """
        if inputs.requires_grad:
            summaries = self._gated_summaries(inputs)
        else:
            summaries = self.summaries(self.walk(inputs))
        return (summaries - self.centre) / self.scale

    def read(self, state: Tensor) -> Tensor:
        return self.head((self.summaries(state) - self.centre) / self.scale)  # type: ignore[no-any-return]

    def shares(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs at the slot a state has reached, in parts that add up to them.

        Every summary belongs to one feature, and the outputs are linear in them: what does not
        depend on what was acquired, `(..., C)`, and what each feature adds, `(..., M, C)`.
        """
        seen = (self.summaries(state) - self.centre) / self.scale
        n = len(self.owner)
        mine = F.one_hot(self.owner, self.n_features).float()[:, :, None]
        weight = self.head.weight[:, :n].T[:, None]
        added = seen[..., :n] @ (mine * weight).flatten(1)  # one column per feature and class
        free = F.linear(seen[..., n:], self.head.weight[:, n:], self.head.bias)
        return free, added.view(*added.shape[:-1], self.n_features, self.head.out_features)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.states(inputs))  # type: ignore[no-any-return]

    def _gated_summaries(self, inputs: Tensor) -> Tensor:
        """The summaries after every slot, as `walk` has them, but smooth in what is known.

        `walk` looks up where the last value is, and so has no gradient toward being known. Here
        every step is linear in it, and its gradient is the change if it were known or not.
        """
        every_channel, every_known, every_present = self._split(inputs)
        last = first = total = torch.zeros_like(every_channel[:, 0])
        count = ever = age = torch.zeros_like(every_known[:, 0])
        out = []
        for k in range(inputs.shape[1]):
            channels, known = every_channel[:, k], every_known[:, k]  # channels: 0 if unknown
            last = channels + (1 - known)[:, self.column] * last
            first = first + (1 - ever)[:, self.column] * channels
            age = (1 - known) * (age + ever)
            total, count = total + channels, count + known
            ever = ever + (1 - ever) * known
            parts = (last, first, total, count, age, every_present[:, k])
            out.append(self._summarize(parts, ever))
        return torch.stack(out, dim=1)

    def _summarize(self, parts: tuple[Tensor, ...], ever: Tensor) -> Tensor:
        """See `summaries`; `ever` is 1 for columns with any value."""
        last, first, total, count, age, present = parts
        mean = total / (count + (1 - ever))[..., self.column]
        # How much of the value is still of today.
        current = last[..., : self.n_columns] / (1 + age)
        each = [last, mean, last - first, ever, age / self.n_times, current, present]
        return torch.cat(each, dim=-1)

    def _split(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values and levels, which columns are known, and what is true of the slot alone."""
        sizes = [self.n_columns, self.n_columns, self.n_levels]
        sizes.append(inputs.shape[-1] - sum(sizes))
        values, known, levels, present = torch.split(inputs, sizes, dim=-1)
        return torch.cat([values, levels], dim=-1), known, present

    def _parts(self, state: Tensor) -> tuple[Tensor, ...]:
        n = len(self.column)
        sizes = [n, n, n, self.n_columns, self.n_columns]
        return tuple(torch.split(state, [*sizes, state.shape[-1] - sum(sizes)], dim=-1))


@dataclass(eq=False, repr=False)
class SummaryPredictor(NeuralPredictor):
    """Logistic regression on summaries of what was acquired."""

    kind = "summary"
    bundles: ClassVar[dict[str, type]] = {"rows": RowLimits}
    net_: SummaryNet = field(init=False, repr=False)
    #: Steps of the log are strengths of the prior, in their order; nothing is trained in epochs.
    log_: TrainingLog = field(init=False, repr=False)

    #: Strengths of the prior to choose from on validation (scikit-learn's `C`, with every labeled
    #: visit counted once).
    inverse_penalties: tuple[float, ...] = INVERSE_PENALTIES
    class_weight: ClassWeight = None
    calibrate: bool = True
    seed: int = 0
    rows: RowLimits = RowLimits()  # size of the regression

    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        return SummaryNet(self.encoder_, n_classes)

    def _train(self, train_cohort: Cohort, val_cohort: Cohort, how: FitOptions) -> None:
        if not self.inverse_penalties:
            raise ConfigError("inverse_penalties is empty; give at least one positive number.")
        open_slots = train_cohort.catalog.open_slots
        ask = how.requests or (lambda index, r: random_requests(len(index), open_slots, r))
        rows, labels, copies = self._rows(train_cohort, ask, how.rng)
        spread = rows.std(dim=0)
        self.net_.centre.copy_(rows.mean(dim=0))
        self.net_.scale.copy_(torch.where(spread > 1e-6, spread, 1.0))
        table = ((rows - self.net_.centre) / self.net_.scale).numpy()
        weight = self._class_weights(train_cohort)
        each = np.full(len(labels), 1.0 / copies)
        if weight is not None:
            each = each * weight.numpy()[labels]
        val_inputs, val_labels = self._validation_set(val_cohort, open_slots)
        found: list[tuple[float, dict[str, Tensor]]] = []
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=_MAX_STEPS, warm_start=True, tol=1e-3)
        for step, inverse_penalty in enumerate(self.inverse_penalties):
            model.set_params(C=inverse_penalty)
            self._fit_weights(model, table, labels, each)
            loss = self._validation_loss(val_inputs, val_labels, weight)
            found.append((loss, {k: v.clone() for k, v in self.net_.state_dict().items()}))
            if how.on_epoch is not None:
                how.on_epoch(step + 1, loss)
        best = int(np.argmin([loss for loss, _ in found]))
        self.net_.load_state_dict(found[best][1])
        self.net_.eval()
        self.log_ = TrainingLog(
            tuple(range(1, len(found) + 1)), tuple(loss for loss, _ in found), best + 1
        )
        self._calibrate(val_inputs, val_labels)

    @torch.no_grad()
    def _rows(
        self, cohort: Cohort, ask: Requests, rng: np.random.Generator
    ) -> tuple[Tensor, NDArray[np.int64], int]:
        """Summaries and labels of labeled pairs under random masks, and masks per subject."""
        limits = self.rows
        data = EncodedCohort(self.encoder_, cohort)
        n_pairs = max(int(cohort.labeled.sum()), 1)
        copies = int(np.clip(limits.wanted // n_pairs, limits.masks, 40))
        wanted = min(1.0, limits.most / (n_pairs * copies))
        index = np.tile(even_rows(len(cohort), max(1, int(wanted * len(cohort)))), copies)
        asked = ask(index, rng)
        labeled = cohort.labeled[index]
        labels = cohort.labels[index][labeled]
        rows = []
        for i in range(0, len(index), limits.at_once):  # rows without a label are not kept
            some = slice(i, i + limits.at_once)
            summaries = self.net_.summaries(self.net_.walk(data.inputs(index[some], asked[some])))
            rows.append(summaries[torch.from_numpy(labeled[some])])
        return torch.cat(rows), labels, copies

    @torch.no_grad()
    def _fit_weights(
        self,
        model: LogisticRegression,
        table: NDArray[np.float32],
        labels: NDArray[np.int64],
        each: NDArray[np.float64],
    ) -> None:
        """Fit and copy the weights; a class that was never seen gets a small probability."""
        from sklearn.exceptions import ConvergenceWarning

        seen = np.unique(labels)
        if len(seen) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(table, labels, sample_weight=each)
            weight, bias = model.coef_, model.intercept_
        else:  # a single class
            weight, bias = np.zeros((1, table.shape[1])), np.zeros(1)
        if len(seen) == 2:  # scikit-learn has one set of weights for two classes
            weight, bias = np.concatenate([-weight, weight]) / 2, np.array([-bias[0], bias[0]]) / 2
        head = self.net_.head
        head.weight.zero_()
        head.bias.fill_(float(bias.min()) - _UNSEEN)
        head.weight[seen] = torch.from_numpy(weight).float()
        head.bias[seen] = torch.from_numpy(bias).float()
