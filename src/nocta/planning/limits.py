"""How much is computed or kept at once. Limits bound memory; they change no decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes of the pieces in which large work is done, and of what is kept for later.

    Args:
        rollout_subjects: Subjects rolled out together.
        scored_subjects: Subjects scored together for a table.
        gain_units: Hidden units (subject, plan) of the published amortized network.
        voter_units: Numbers held for one slot of the voters' states in NOCT-Contrastive.
        lookup_units: Numbers held while losses are looked up from tables.
        table_units: Numbers kept in the table of one slot, approximately.
        remembered_prefixes: Prefixes of plans whose population mean is kept.
        bank_bytes: Bytes kept of the neighbor bank as it looks under recent masks.
    """

    rollout_subjects: int = 20_000
    scored_subjects: int = 8192
    gain_units: int = 1 << 23
    voter_units: int = 1 << 24
    lookup_units: int = 1 << 22
    table_units: int = 1 << 24
    remembered_prefixes: int = 200_000
    bank_bytes: int = 256 << 20


DEFAULT_LIMITS = Limits()
