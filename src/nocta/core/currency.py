"""Amounts of money as text."""

from __future__ import annotations

import unicodedata


def money(amount: float, currency: str) -> str:
    """An amount to the cent, with its unit.

    Example:
        >>> money(1271.9, "$"), money(12.5, "EUR")
        ('$1,271.90', '12.50 EUR')
    """
    return with_currency(f"{amount:,.2f}", currency)


def brief_money(amount: float, currency: str) -> str:
    """An amount for a sentence: without cents from 100 on.

    Example:
        >>> brief_money(1271.9, "$"), brief_money(60.0, ""), brief_money(12.5, "$")
        ('$1,272', '60', '$12.50')
    """
    digits = 0 if abs(amount) >= 100 or amount == round(amount) else 2
    return with_currency(f"{amount:,.{digits}f}", currency)


def with_currency(amount: str, currency: str) -> str:
    """A formatted amount with its unit: currency signs go before it, other units after."""
    if currency and unicodedata.category(currency[-1]) == "Sc":
        return f"{currency}{amount}"
    return f"{amount} {currency}".rstrip()
