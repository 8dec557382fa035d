"""A causal recurrent predictor: one pass gives the prediction at every time.

The state after slot `k` holds all that was acquired up to `k`, so the loss-to-go of a plan
costs one pass, and a plan that extends another continues from its state.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.nn import functional as F

from nocta.predictors.gru import combine, input_half, state_half
from nocta.predictors.neural import ClassWeight, NeuralPredictor, head_of_one_layer
from nocta.predictors.training import TrainingConfig


class CellNet(nn.Module):
    """Input layer, recurrent cell (a gated recurrent unit), and a head of one hidden layer."""

    def __init__(self, width: int, hidden: int, n_outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Linear(width, hidden)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.head = head_of_one_layer(hidden, n_outputs)

    def states(self, inputs: Tensor) -> Tensor:
        out, _ = self.cell(self.drop(F.relu(self.embed(inputs))))
        return out  # type: ignore[no-any-return]

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.drop(self.states(inputs)))  # type: ignore[no-any-return]


class RecurrentNet(CellNet):
    """A `CellNet` that can walk slot by slot (`nocta.predictors.walking.WalkingNet`)."""

    def input_half(self, inputs: Tensor) -> Tensor:
        return input_half(self.cell, F.relu(self.embed(inputs)))

    @property
    def state_width(self) -> int:
        return self.cell.hidden_size

    walk = CellNet.states

    def extend(self, state: Tensor, inputs: Tensor) -> Tensor:
        return combine(self.input_half(inputs), state_half(self.cell, state), state)

    def read(self, state: Tensor) -> Tensor:
        return self.head(state)  # type: ignore[no-any-return]


class LSTMNet(CellNet):
    """A `CellNet` whose cell is a long short-term memory."""

    def __init__(self, width: int, hidden: int, n_outputs: int, dropout: float = 0.0) -> None:
        super().__init__(width, hidden, n_outputs, dropout)
        self.cell = nn.LSTM(hidden, hidden, batch_first=True)  # type: ignore[assignment]


@dataclass(eq=False, repr=False)
class RecurrentPredictor(NeuralPredictor):
    """Gated recurrent network over visit slots: the `default` preset's for many subjects."""

    kind = "recurrent"
    net_: CellNet = field(init=False, repr=False)
    hidden: int = 64  # units of the recurrent state
    dropout: float = 0.0  # on the inputs of the recurrent unit and of the head
    training: TrainingConfig = TrainingConfig()  # noqa: RUF009 - frozen
    class_weight: ClassWeight = None
    calibrate: bool = True
    seed: int = 0

    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        return RecurrentNet(width, self.hidden, n_classes, self.dropout)


class LSTMPredictor(RecurrentPredictor):
    """`RecurrentPredictor` with a long short-term memory, as ASAC was published."""

    kind = "lstm"

    def build_net(self, width: int, n_classes: int, n_times: int) -> nn.Module:
        return LSTMNet(width, self.hidden, n_classes, self.dropout)
