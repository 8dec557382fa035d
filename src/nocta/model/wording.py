"""An explanation in sentences that need no knowledge of the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nocta.core.currency import money
from nocta.model.nocta import NOCTA
from nocta.planning.explain import Recommendation
from nocta.planning.explanation import Explanation, FeatureEffect, ResultEffect, Tie

#: Probabilities that move by less than this are not worth a sentence.
_MOVES = 0.02


@dataclass(frozen=True)
class Words:
    """Names and units for sentences."""

    classes: tuple[str, ...]
    slots: tuple[str, ...]  # the name of every visit slot
    currency: str = ""

    @classmethod
    def of(cls, model: NOCTA) -> Words:
        """The names that a model knows."""
        names = tuple(slot_name(model, slot) for slot in range(model.catalog_.n_times))
        return cls(model.classes_, names, model.catalog_.currency)

    def money(self, amount: float) -> str:
        """An amount in the user's currency."""
        return money(amount, self.currency)


def slot_name(model: NOCTA, slot: int) -> str:
    """A visit by its number and its time."""
    record = getattr(model, "record_", {})
    times = record.get("slot_times")
    name = f"{slot + 1} of {model.catalog_.n_times}"
    if not times:
        return name
    unit = record["time_unit"]
    return f"{name} ({times[slot]:g} {unit.removesuffix('s') if times[slot] == 1 else unit})"


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence.

    Example:
        >>> listed(["sodium"]), listed(["sodium", "urea"]), listed(["a", "b", "c"])
        ('sodium', 'sodium and urea', 'a, b and c')
    """
    *most, last = names or [""]
    return f"{', '.join(most)} and {last}" if most else last


def headline(found: Recommendation, words: Words) -> str:
    """What to do, in one sentence."""
    if found.stop:
        return f"Acquire nothing more: {_why_stop(found, words)}."
    assert found.time is not None
    where = words.slots[found.time]
    return f"At visit {where}, acquire {listed(found.features)} for {words.money(found.cost)}."


def reasons(why: Explanation, words: Words) -> list[str]:
    """Why, most important first."""
    found = why.recommendation
    said = [] if found.stop else [_gain(why)]
    said.append(_weighed("Worth the price here", why.adds, words))
    if why.tie is not None and why.tie.tied:
        said.append(_tie(why.tie))
    said += [_result(effect, words) for effect in _telling(why.results)]
    left = [effect for effect in why.passed_over if effect.saves > 0][:3]
    said.append(_weighed("Left out", left, words))
    if why.evidence is not None:
        most = int(np.argmax(why.evidence.classes))
        said.append(
            f"This rests on {why.evidence.n_subjects} similar training subjects; "
            f"{why.evidence.classes[most]:.0%} of them were last seen as {words.classes[most]}."
        )
    return [text for text in said if text]


def _why_stop(found: Recommendation, words: Words) -> str:
    if found.stop_reason == "last visit":
        return "this was the last visit"
    if found.stop_reason == "nothing left":
        return "nothing is left to acquire"
    if found.stop_reason == "budget" and found.cheapest is not None:
        return f"nothing is affordable; the cheapest costs {words.money(found.cheapest)}"
    return "no further acquisition is expected to be worth its cost"


def _gain(why: Explanation) -> str:
    before = why.recommendation.stopping.expected_loss
    if before <= 0 or why.saves <= 0:
        return ""
    share = min(why.saves / before, 1.0)
    return f"The plan is expected to remove {share:.0%} of the remaining prediction error."


def _weighed(what: str, effects: Sequence[FeatureEffect], words: Words) -> str:
    """Each feature with what it is worth and what it costs."""
    said = [
        f"{effect.feature} (worth {words.money(max(effect.worth, 0.0))}, costs "
        f"{words.money(effect.cost)})"
        for effect in effects
        if effect.worth is not None
    ]
    return f"{what}: {listed(said)}." if said else ""


def _tie(tie: Tie) -> str:
    said = "Another plan is practically tied with this one, and costs no less."
    if tie.switched:
        said = "A more expensive plan is practically tied with this one, so this one is preferred."
    return f"{said} Both begin with the same visit." if tie.same_next_visit else said


def _telling(results: list[ResultEffect]) -> list[ResultEffect]:
    """The result that moves the prediction most, if it moves it at all."""
    spread = [_range(result) for result in results]
    if not spread or max(high - low for low, high, _ in spread) < _MOVES:
        return []
    return [results[int(np.argmax([high - low for low, high, _ in spread]))]]


def _range(result: ResultEffect) -> tuple[float, float, int]:
    """The lowest and highest probability of the class that moves most."""
    table = np.array(result.predictions)
    which = int(np.argmax(table.max(axis=0) - table.min(axis=0)))
    return float(table[:, which].min()), float(table[:, which].max()), which


def _result(result: ResultEffect, words: Words) -> str:
    low, high, which = _range(result)
    return (
        f"Depending on {result.column}, the probability of {words.classes[which]} at that visit "
        f"may lie anywhere from {low:.0%} to {high:.0%}."
    )
