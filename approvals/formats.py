"""Money, dates and numbers as text: exact, and the same text for everybody (B-2, SEC-14)."""

from __future__ import annotations

import re
from datetime import UTC
from decimal import Decimal

from plans.errors import Problem
from plans.strict_json import JsonValue
from plans.timestamps import parse_instant

# The minor unit where ISO 4217 does not say two digits.
_NO_MINOR = re.compile("BIF|CLP|DJF|GNF|ISK|JPY|KMF|KRW|PYG|RWF|UGX|UYI|VND|VUV|XAF|XOF|XPF")
_THREE_DIGITS = re.compile("BHD|IQD|JOD|KWD|LYD|OMR|TND")
_CURRENCY = re.compile("[A-Z]{3}")
# Integers beyond 2^53 travel as strings (BI-5); [0-9] because \d takes every script's digits.
_INTEGER = re.compile(r"-?[0-9]{1,40}")
_FRACTION = re.compile(r"-?[0-9]{1,40}\.[0-9]{1,20}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Beyond this a difference of fractions is noise, and a Decimal of it would be hundreds of digits.
_EXACT_FRACTIONS = 15


def is_known(spec: str) -> bool:
    """Whether `spec` is a format: `money:` and a currency's three letters, `date`, `number`."""
    kind, _, detail = spec.partition(":")
    if kind == "money":
        return _CURRENCY.fullmatch(detail) is not None
    return kind in ("date", "number") and not detail


def formatted(value: JsonValue, spec: str) -> str | None:
    """The value in a format, like `480.00 USD`; None when it does not fit the format."""
    kind, _, detail = spec.partition(":")
    if kind == "money":
        amount = _money(whole(value), detail)
        return None if amount is None else f"{amount} {detail}"
    if kind == "number":
        number = exact(value)
        return None if number is None else f"{number:,f}"
    return _instant(value) if kind == "date" and isinstance(value, str) else None


def difference(before: JsonValue, after: JsonValue, spec: str = "") -> str | None:
    """What `after` is above `before`, like `+280.00`; None unless both are numbers."""
    kind, _, detail = spec.partition(":")
    step = minus(after, before)
    if step is None or kind == "date":
        return None
    if kind == "money":
        amount = _money(whole(step), detail)
        return amount and (amount if amount.startswith("-") else f"+{amount}")
    return f"{Decimal(step):+,f}"


def minus(after: JsonValue, before: JsonValue) -> int | str | None:
    """The exact difference, fractions as a decimal text; None unless both are numbers."""
    ends = whole(after), whole(before)
    if ends[0] is not None and ends[1] is not None:
        return ends[0] - ends[1]
    numbers = exact(after), exact(before)
    if numbers[0] is None or numbers[1] is None:
        return None
    return f"{numbers[0] - numbers[1]:f}"


def whole(value: JsonValue) -> int | None:
    """An integer, or a string that is one. True is not 1."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    return None


def exact(value: JsonValue) -> Decimal | None:
    """A JSON number (or a string that is one) as the decimal that was written; never a float."""
    number = whole(value)
    if number is not None:
        return Decimal(number)
    if isinstance(value, str) and _FRACTION.fullmatch(value):
        return Decimal(value)
    if not isinstance(value, float):
        return None
    decimal = Decimal(repr(value))
    return decimal if abs(decimal.adjusted()) <= _EXACT_FRACTIONS else None


def _money(minor: int | None, currency: str) -> str | None:
    """Minor units as `1,900.00`."""
    if minor is None or not _CURRENCY.fullmatch(currency):
        return None
    digits = 0 if _NO_MINOR.fullmatch(currency) else 3 if _THREE_DIGITS.fullmatch(currency) else 2
    units, rest = divmod(abs(minor), 10**digits)
    sign = "-" if minor < 0 else ""
    return f"{sign}{units:,}" + (f".{rest:0{digits}d}" if digits else "")


def _instant(text: str) -> str | None:
    """A date as it is, an instant in UTC: `2026-03-14 09:41:12 UTC`."""
    if _DATE.fullmatch(text):
        return text
    try:
        instant = parse_instant(text, "")
    except Problem:
        return None
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
