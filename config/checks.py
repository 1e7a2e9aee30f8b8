"""What would make this installation unsafe, said at start with what to do about it (SEC-35)."""

import logging
from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import SystemCheckError
from django.db import OperationalError, ProgrammingError, connections

from audit import eras, signing

logger = logging.getLogger(__name__)

OLDEST_POSTGRES = 160_000
SHORTEST_TOKEN = 16


@register(Tags.security)
def check_encryption_keys(**_kwargs: Any) -> list[CheckMessage]:
    """Every key of the ring must be one."""
    problems: list[CheckMessage] = []
    for position, key in enumerate(settings.ENCRYPTION_KEYS, start=1):
        try:
            Fernet(key)
        except ValueError:
            problems.append(
                Error(
                    f"Key {position} of COUNTERSIGN_KEYS is not a Fernet key.",
                    hint="Make one: python -c 'from cryptography.fernet import Fernet; "
                    "print(Fernet.generate_key().decode())'",
                    id="countersign.E001",
                )
            )
    return problems


@register(Tags.security)
def check_production(**_kwargs: Any) -> list[CheckMessage]:
    """With a real database, debugging pages and short keys are refused."""
    if "postgres" in settings.EMBEDDED:
        return []
    problems: list[CheckMessage] = []
    if settings.DEBUG:
        problems.append(
            Error("DEBUG is on.", hint="Unset it: its pages show secrets.", id="countersign.E002")
        )
    if len(settings.SECRET_KEY) < 32:
        problems.append(
            Error(
                "SECRET_KEY has fewer than 32 characters.",
                hint="python -c 'import secrets; print(secrets.token_urlsafe(48))'",
                id="countersign.E003",
            )
        )
    return problems


@register(Tags.security)
def check_signing_keys(**_kwargs: Any) -> list[CheckMessage]:
    """Without a key that signs, the audit trail is not sealed (L-2)."""
    try:
        signing.signer()
        signing.public_keys()
    except ImproperlyConfigured as error:
        return [
            Error(
                str(error),
                hint="Make one: python -c 'import base64, secrets; "
                "print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())'",
                id="countersign.E006",
            )
        ]
    return []


@register(Tags.security)
def check_metrics_token(**_kwargs: Any) -> list[CheckMessage]:
    """A token that can be guessed opens `/metrics` to the world."""
    token = settings.METRICS_TOKEN
    if not token or len(token) >= SHORTEST_TOKEN:
        return []
    return [
        Error(
            f"METRICS_TOKEN has fewer than {SHORTEST_TOKEN} characters.",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            id="countersign.E007",
        )
    ]


@register(Tags.security, deploy=True)
def check_address(**_kwargs: Any) -> list[CheckMessage]:
    """Cookies and passwords belong on https."""
    if settings.HTTPS:
        return []
    return [
        Warning(
            f"BASE_URL is {settings.BASE_URL}: cookies are sent in the clear.",
            hint="Serve over https and set BASE_URL to the https address.",
            id="countersign.W001",
        )
    ]


@register(Tags.database)
def check_postgres(databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """A commit that is acknowledged must be on disk: or it might be sent twice (FM-33)."""
    problems: list[CheckMessage] = []
    for alias in databases or []:
        with connections[alias].cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone()[0] == "off":
                problems.append(
                    Error(
                        "PostgreSQL runs with synchronous_commit=off.",
                        hint="Set it to on (or stronger): a crash would forget decisions.",
                        id="countersign.E004",
                    )
                )
            cursor.execute("SHOW server_version_num")
            if int(cursor.fetchone()[0]) < OLDEST_POSTGRES:
                problems.append(
                    Error("PostgreSQL is older than 16.", hint="Upgrade it.", id="countersign.E005")
                )
    return problems


def refuse_unsafe_start() -> None:
    """Called once by every process that serves, after Django is set up.

    SystemCheckError names what is unsafe. A database that is down is no reason to refuse: the
    process waits for it, and `prepare` has looked at it before the first start.
    """
    found = [
        *check_encryption_keys(),
        *check_signing_keys(),
        *check_production(),
        *check_metrics_token(),
    ]
    try:
        found += check_postgres(databases=["default"])
        # Before anything is written: a restored trail goes on in a new era (L-2).
        eras.check()
    except OperationalError:
        logger.warning("The database does not answer yet; its settings were not checked.")
    except ProgrammingError:
        logger.warning("The database has no tables of this version yet: run `manage.py prepare`.")
    finally:
        connections.close_all()
    errors = [problem for problem in found if problem.is_serious()]
    if errors:
        raise SystemCheckError("\n".join(str(problem) for problem in errors))
