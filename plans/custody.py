"""Keeping secrets: plan tokens, credentials and API keys (A-2, SEC-20, SEC-34, SEC-35)."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, NoReturn, overload

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings

from plans.errors import InvalidField, MissingField, StringTooLong
from plans.strict_json import JsonValue, escape

TOKEN_MAX = 16_384
# Shorter texts occur by chance, and masking them would tear holes into honest values.
TOKEN_MIN_SEARCHED = 12
REMOVED = "[token removed]"

_TOKEN = re.compile(r"[\x20-\x7e]+")
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/]))')
_API_KEY = re.compile(r"cs_([0-9a-f]{16})_[0-9a-f]{64}")

_SECRET_NAMES = re.compile(
    r"plan_token|token|api_?key|authorization|password|secret|credential|cookie|set-cookie",
    re.IGNORECASE,
)
_SECRET_TEXTS = (
    (_API_KEY, "[api key]"),
    (re.compile(r"whsec_[A-Za-z0-9+/=]+"), "[secret]"),
    (re.compile(r"(Bearer\s+)[^\s\"',;]+", re.IGNORECASE), r"\1[secret]"),
    # The value in quotes, in quotes that are escaped themselves, or cut off before its end.
    (
        re.compile(
            r"""(plan_token\\?["']?\s*[:=]\s*)"""
            r"""(?:\\(["']).*?(?:\\\2|$)|(["'])(?:\\.|(?!\3).)*(?:\3|$))""",
            re.DOTALL,
        ),
        r"\1[secret]",
    ),
    (re.compile(r"(plan_token\s*[:=]\s*)(?!\[secret\])[^\s\"',&]+"), r"\1[secret]"),
)


class Secret:
    """A string that shows itself only when asked: not in repr, str, format, logs or pickles."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself; call it where the bytes leave, and nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "[secret]"

    def __format__(self, spec: str) -> str:
        return "[secret]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and keys_equal(self._value, other._value)

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def encrypt(plain: bytes) -> bytes:
    """A Fernet token of `plain`, under the first of `settings.ENCRYPTION_KEYS` (SEC-35)."""
    return _keyring(tuple(settings.ENCRYPTION_KEYS)).encrypt(plain)


def decrypt(blob: bytes | memoryview) -> bytes:
    """The plain bytes, under any key of the keyring; cryptography.fernet.InvalidToken if none."""
    return _keyring(tuple(settings.ENCRYPTION_KEYS)).decrypt(bytes(blob))


def rotate(blob: bytes | memoryview) -> bytes:
    """The same secret encrypted anew under the first key, for the rotation command (SEC-35)."""
    return _keyring(tuple(settings.ENCRYPTION_KEYS)).rotate(bytes(blob))


@lru_cache(maxsize=4)
def _keyring(keys: tuple[str | bytes, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def token_digest(token: str) -> str:
    """What stays of a plan token after a terminal status: its SHA-256 in hex (A-2)."""
    return hashlib.sha256(token.encode()).hexdigest()


def check_token(token: object, pointer: str) -> str:
    """The plan token, if it is 1 to 16,384 printable ASCII characters (BI-27); else a Problem."""
    if token is None:
        raise MissingField("A plan token is required and cannot be null.", pointer=pointer)
    if isinstance(token, str) and len(token) > TOKEN_MAX:
        raise StringTooLong(
            f"A plan token has at most {TOKEN_MAX} characters.", pointer=pointer, limit=TOKEN_MAX
        )
    if not isinstance(token, str) or not _TOKEN.fullmatch(token) or token.isspace():
        raise InvalidField("A plan token is printable ASCII text, not empty.", pointer=pointer)
    return token


def find_token(value: JsonValue, token: str, *, allowed: str | None = None) -> str | None:
    """The pointer of the first string or member name that holds the token's text (A-18).

    JSON escapes inside strings are seen through, since `inputs` is a text. The pointer of a
    name is that of its object: it must not repeat the token. `allowed` is the token's own place.
    """
    if len(token) < TOKEN_MIN_SEARCHED:
        return None
    return _find(value, token, allowed.split("/")[1:] if allowed else None)


def _find(value: JsonValue, token: str, allowed: list[str] | None) -> str | None:
    """Builds the pointer on the way back: most requests hold nothing to point at."""
    if isinstance(value, str):
        return "" if allowed != [] and _holds(value, token) else None
    if isinstance(value, dict):
        if any(_holds(name, token) for name in value):
            return ""
        items: Iterable[tuple[str | int, JsonValue]] = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return None
    for key, item in items:
        rest = allowed[1:] if allowed and allowed[0] == key else None
        if (found := _find(item, token, rest)) is not None:
            return f"/{escape(key)}{found}"
    return None


def _holds(text: str, token: str) -> bool:
    return token in text or ("\\" in text and token in _ESCAPE.sub(_unescape, text))


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else match[2]


@overload
def mask(value: str, secrets: Iterable[str]) -> str: ...
@overload
def mask(value: JsonValue, secrets: Iterable[str]) -> JsonValue: ...
def mask(value: JsonValue, secrets: Iterable[str]) -> JsonValue:
    """The value with every secret's text (12 characters or more) replaced, names too (A-18)."""
    texts = sorted({s for s in secrets if len(s) >= TOKEN_MIN_SEARCHED}, key=len, reverse=True)
    return _mask(value, texts) if texts else value


def _mask(value: JsonValue, texts: list[str]) -> JsonValue:
    if isinstance(value, str):
        return _mask_text(value, texts)
    if isinstance(value, dict):
        return {_mask_text(name, texts): _mask(item, texts) for name, item in value.items()}
    if isinstance(value, list):
        return [_mask(item, texts) for item in value]
    return value


def _mask_text(text: str, secret_texts: list[str]) -> str:
    for secret in secret_texts:
        text = text.replace(secret, REMOVED)
        if _holds(text, secret):
            text = re.sub("".join(map(_spellings, secret)), REMOVED, text)
    return text


@lru_cache(maxsize=256)
def _spellings(character: str) -> str:
    r"""A character of a token: plain, behind a backslash (\/ and \") or as \uXXXX."""
    code = "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in f"{ord(character):04x}")
    plain = re.escape(character)
    return rf"(?:{plain}|\\u{code}" + (rf"|\\{plain})" if character in '"/\\' else ")")


def new_api_key() -> tuple[str, str, str]:
    """A key: its public ID, its secret of 256 random bits, and `cs_<id>_<secret>` (SEC-34)."""
    key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    return key_id, secret, f"cs_{key_id}_{secret}"


def api_key_id(full: str) -> str | None:
    """The ID to look the key up by; None for a text that cannot be a key."""
    match = _API_KEY.fullmatch(full)
    return match[1] if match else None


def api_key_digest(full: str) -> str:
    """What is stored of an API key: SHA-256 in hex; 256 random bits need no slow hash (SEC-34)."""
    return hashlib.sha256(full.encode()).hexdigest()


def keys_equal(left: str, right: str) -> bool:
    """Comparison in a time that does not tell where two secrets differ (SEC-20)."""
    return hmac.compare_digest(left.encode(errors="replace"), right.encode(errors="replace"))


def redact_event(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor, last before the renderer: masks what looks like a secret.

    The last line of defence and no more: secrets are not passed to a logger in the first place.
    """
    return {name: _redacted(name, value) for name, value in event.items()}


def _redacted(name: object, value: Any) -> Any:
    if isinstance(name, str) and _SECRET_NAMES.fullmatch(name) and value is not None:
        return "[secret]"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {key: _redacted(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_redacted(None, item) for item in value]
    text = value if isinstance(value, str) else _shown(value)
    clean = text
    for pattern, replacement in _SECRET_TEXTS:
        clean = pattern.sub(replacement, clean)
    return value if clean == text else clean


def _shown(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else repr(value)
