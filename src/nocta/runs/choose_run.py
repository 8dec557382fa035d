"""Choose the default operating point of a saved model, and keep it in its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nocta.core.environment import Availability
from nocta.core.errors import ConfigError
from nocta.core.rollout import Rollout
from nocta.methods.saving import SavedMethod
from nocta.model import archive
from nocta.model.choice.choose import Choice, choose_point
from nocta.model.choice.default import KEY
from nocta.model.choice.goals import Goal
from nocta.model.nocta import piece_rows
from nocta.runs.model_card import model_card
from nocta.runs.results import plain
from nocta.runs.saved import Judged

_PARTS = {"validation": "validation subjects", "test": "test subjects", "all": "other subjects"}


def roll_out_kept(
    model: SavedMethod, judged: Judged, availability: Availability
) -> tuple[list[dict[str, Any]], list[Rollout]]:
    """The operating points that a model keeps, and a roll-out at each."""
    settings = model.settings
    if not any(settings):
        raise ConfigError(
            f"Method '{model.name}' keeps no operating points to choose from: it has no knob, or "
            f"was saved without them. Fit it again with `nocta fit`."
        )
    cohort = judged.cohort

    def one(setting: dict[str, Any]) -> Rollout:
        pieces = [
            model.rollout(cohort.subset(rows), setting, availability=availability)
            for rows in piece_rows(len(cohort))
        ]
        return pieces[0] if len(pieces) == 1 else Rollout.concatenate(pieces)

    return settings, [one(setting) for setting in settings]


def choose_default(
    model: SavedMethod, judged: Judged, goal: Goal, availability: Availability = "on-arrival"
) -> tuple[Choice, list[Rollout]]:
    """The operating point that does what was asked, and the roll-outs it was chosen from."""
    settings, rollouts = roll_out_kept(model, judged, availability)
    return choose_point(settings, rollouts, goal), rollouts


def keep_choice(model: SavedMethod, folder: Path, choice: Choice, judged: Judged) -> SavedMethod:
    """Make a choice the default of a saved model: in its manifest and on its card."""
    reason = f"{choice.reason}, chosen on {len(judged.cohort)} {_PARTS[judged.part]}"
    entry = {**choice.point.to_dict(), "reason": reason, "said": str(choice)}
    entry |= {"choice": choice.to_dict(), "part": judged.part}
    changed = replace(model, record_=plain({**model.record_, KEY: entry}))
    archive.write_record(folder, changed.record_, {archive.CARD: model_card(changed)})
    return changed
