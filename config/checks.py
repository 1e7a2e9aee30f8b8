"""What would make this installation unsafe, said at start with what to do about it (SEC-35)."""

from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections

OLDEST_POSTGRES = 160_000


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
    """Called by the processes that serve: raises SystemCheckError where a check finds an error."""
    from django.core.management import call_command  # servers import no command line before this

    call_command("check", "--database", "default", "--fail-level", "ERROR", verbosity=0)
