"""Amounts of money as text."""

from __future__ import annotations

import unicodedata


def money(amount: float, currency: str) -> str:
    """An amount to the cent, with its unit."""
    return with_currency(f"{amount:.2f}", currency)


def with_currency(amount: str, currency: str) -> str:
    """A formatted amount with its unit: currency signs go before it, other units after."""
    if currency and unicodedata.category(currency[-1]) == "Sc":
        return f"{currency}{amount}"
    return f"{amount} {currency}".rstrip()
