"""How much is computed or kept at once. Limits bound memory; they change no decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes of the pieces in which large work is done, and of what is kept for later."""

    rollout_subjects: int = 20_000  # subjects rolled out together
    scored_subjects: int = 8192  # subjects scored together for a table
    gain_units: int = 1 << 23  # hidden units (subject, plan) of the published amortized network
    #: Numbers held for one slot of the voters' states in NOCT-Contrastive.
    voter_units: int = 1 << 24
    lookup_units: int = 1 << 22  # numbers held while losses are looked up from tables
    table_units: int = 1 << 24  # numbers kept in the table of one slot, approximately
    remembered_prefixes: int = 200_000  # prefixes of plans whose population mean is kept
    bank_bytes: int = 256 << 20  # bytes kept of the neighbor bank as it looks under recent masks


DEFAULT_LIMITS = Limits()
