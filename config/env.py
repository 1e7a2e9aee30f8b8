"""Typed reading of the environment. Every NAME may also be given as NAME_FILE, a path to its value.

Files are how container platforms hand over secrets; a value in a file never shows in
`docker inspect` or in `/proc/<pid>/environ`.
"""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


def optional(name: str) -> str | None:
    """The value of NAME or of the file that NAME_FILE names; None when neither is set."""
    value = os.environ.get(name)
    path = os.environ.get(f"{name}_FILE")
    if value is not None and path is not None:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one.")
    if path is None:
        return value
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {error.strerror}") from None


def text(name: str, default: str) -> str:
    """The value as it is, or `default` when NAME is unset."""
    value = optional(name)
    return default if value is None else value


def boolean(name: str, default: bool = False) -> bool:
    """1/true/yes/on or 0/false/no/off; any other word is an error, not a guess."""
    value = optional(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false.")


def integer(name: str, default: int) -> int:
    """A whole number; an error when the value is anything else."""
    value = optional(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number.") from None


def seconds(name: str, default: float) -> float:
    """A duration in seconds, fractions allowed."""
    value = optional(name)
    if value is None:
        return default
    try:
        return float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number of seconds.") from None


def words(name: str, default: list[str] | None = None) -> list[str]:
    """A comma-separated list; blanks around and between items are dropped."""
    value = optional(name)
    if value is None:
        return default or []
    return [word.strip() for word in value.split(",") if word.strip()]


def path(name: str, default: Path) -> Path:
    """An absolute path."""
    value = optional(name)
    return Path(value).expanduser().resolve() if value else default


def database(url: str) -> dict[str, str | int]:
    """Django's connection parameters from `postgresql://user:password@host:port/name?option=…`."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"} or len(parts.path) < 2:
        raise ImproperlyConfigured("DATABASE_URL must look like postgresql://user@host:5432/name.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": parts.port or "",
    }


def database_options(url: str) -> dict[str, str]:
    """libpq's options from the address's query, like `sslmode=verify-full`."""
    return dict(parse_qsl(urlsplit(url).query))


def smtp(host: str) -> dict[str, str | int | bool]:
    """Options of the mail backend; SMTP_SECURITY is `starttls` (default), `tls` or `none`."""
    security = text("SMTP_SECURITY", "starttls")
    if security not in {"starttls", "tls", "none"}:
        raise ImproperlyConfigured("SMTP_SECURITY must be starttls, tls or none.")
    return {
        "host": host,
        "port": integer("SMTP_PORT", 587),
        "username": text("SMTP_USER", ""),
        "password": text("SMTP_PASSWORD", ""),
        "use_tls": security == "starttls",
        "use_ssl": security == "tls",
        "timeout": 10,
    }
