"""What a key may hold: each converter takes the TOML value and returns it, or says what it wants.

A converter raises ValueError with words that follow the key's name ("must be …"); the words never
repeat the value, which may be a secret in the wrong place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from plans.custody import Secret

type Converter = Callable[[Any, Path], Any]
"""(value, folder of the file) → what is stored."""

_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_PATH = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@%/-]*", re.ASCII)
_PLAN_ID = "{plan_id}"
# What may stand behind "Authorization: Bearer " without being read as two headers (SEC-17).
_CREDENTIAL = re.compile(r"[\x21-\x7e]{1,4096}")
_SECRET_SOURCE = re.compile(r"(env|file):(.+)", re.DOTALL)


def name(value: Any, folder: Path) -> str:
    """A name that stands in addresses and events."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("must be 1 to 100 of A-Z a-z 0-9 . _ -")
    return value


def username(value: Any, folder: Path) -> str:
    """A person's sign-in name."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9.@+_-]{1,150}", value):
        raise ValueError("must be 1 to 150 of A-Z a-z 0-9 . @ + _ -")
    return value


def email(value: Any, folder: Path) -> str:
    """Where a person's notices go; empty: nowhere."""
    if not isinstance(value, str) or len(value) > 254:
        raise ValueError("must be an address like ada@example.com")
    try:
        if value:
            validate_email(value)
    except ValidationError:
        raise ValueError("must be an address like ada@example.com") from None
    return value


def text(limit: int) -> Converter:
    """Printable text of one line."""

    def convert(value: Any, folder: Path) -> str:
        if not isinstance(value, str) or len(value) > limit or not value.isprintable():
            raise ValueError(f"must be printable text of at most {limit} characters")
        return value

    return convert


def boolean(value: Any, folder: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def whole(least: int = 0, most: int = 2**31 - 1) -> Converter:
    """A whole number within bounds that the column can hold."""

    def convert(value: Any, folder: Path) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return convert


def seconds(above: float = 0, most: float = 3600) -> Converter:
    """A duration, fractions allowed; nan and inf are neither above nor below anything."""

    def convert(value: Any, folder: Path) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("must be a number of seconds")
        if not above < value <= most:
            raise ValueError(f"must be more than {above:g} and at most {most:g} seconds")
        return float(value)

    return convert


def delays(value: Any, folder: Path) -> list[float]:
    """The pauses before same-key retries (T-9)."""
    each = seconds()
    if not isinstance(value, list) or len(value) > 20:
        raise ValueError("must be a list of at most 20 numbers of seconds")
    return [each(item, folder) for item in value]


def one_of(choices: list[str]) -> Converter:
    def convert(value: Any, folder: Path) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return str(value)

    return convert


def words(limit: int) -> Converter:
    """A list of distinct, printable, non-empty texts; the order is kept."""

    def convert(value: Any, folder: Path) -> list[str]:
        if not isinstance(value, list):
            raise ValueError("must be a list of texts")
        for item in value:
            if not isinstance(item, str) or not item.strip() or not item.isprintable():
                raise ValueError("must be a list of texts, none of them empty")
            if len(item) > limit:
                raise ValueError(f"must be a list of texts of at most {limit} characters")
        if len(set(value)) != len(value):
            raise ValueError("names something twice")
        return list(value)

    return convert


def formats(value: Any, folder: Path) -> dict[str, str]:
    """Field names and how their values are shown."""
    if not isinstance(value, dict) or not all(
        isinstance(shown, str) and shown.isprintable() for shown in value.values()
    ):
        raise ValueError('must be a table like { refunded_cents = "money:USD" }')
    return dict(value)


def path(value: Any, folder: Path) -> str:
    """A path below the target's base URL."""
    if not isinstance(value, str) or not _is_path(value):
        raise ValueError("must be a path like /refund/dry_run")
    return value


def plan_path(value: Any, folder: Path) -> str:
    """The path of a plan's state; empty: plans cannot be read back (T-2)."""
    if value == "":
        return ""
    if not isinstance(value, str) or value.count(_PLAN_ID) != 1:
        raise ValueError("must hold {plan_id} once, like /plans/{plan_id}")
    if not _is_path(value.replace(_PLAN_ID, "x")):
        raise ValueError("must be a path like /plans/{plan_id}")
    return value


def _is_path(value: str) -> bool:
    """The gateway sends such a path as it is; dot segments are read differently by servers."""
    dots = any(part in (".", "..") for part in value.split("/"))
    return len(value) <= 500 and bool(_PATH.fullmatch(value)) and not dots


def password(value: Any, folder: Path) -> Secret:
    """A person's password from its source."""
    return secret_text(value, folder)


def secret_text(value: Any, folder: Path) -> Secret:
    """Whatever must not stand in the file, from its source."""
    return Secret(_from_source(value, folder))


def credential(value: Any, folder: Path) -> Secret:
    """A target's bearer credential from its source."""
    try:
        return Secret(credential_text(_from_source(value, folder)))
    except UnsendableCredential:
        raise ValueError("names a text that cannot be sent as a bearer credential") from None


class UnsendableCredential(ValidationError):
    """The text could be read as two headers, or is not ASCII (SEC-17)."""

    def __init__(self) -> None:
        super().__init__("must be 1 to 4096 visible ASCII characters without spaces")


def credential_text(text: str) -> str:
    """The text, if it can stand behind "Authorization: Bearer "; else UnsendableCredential."""
    if not _CREDENTIAL.fullmatch(text):
        raise UnsendableCredential
    return text


def _from_source(value: Any, folder: Path) -> str:
    source = _SECRET_SOURCE.fullmatch(value) if isinstance(value, str) else None
    if source is None:
        raise ValueError("must be env:NAME or file:PATH; the secret itself never stands here")
    kind, where = source.groups()
    if kind == "env":
        found = os.environ.get(where)
        if found is None:
            raise ValueError(f"names the environment variable {where}, which is not set")
    else:
        found = _text_of(folder / where)
    if not found:
        raise ValueError(f"names an empty {'variable' if kind == 'env' else 'file'}")
    return found


def _text_of(file: Path) -> str:
    """The file's text without the line end that editors add."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ValueError(f"names a file that cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("names a file that is not UTF-8 text") from None
