"""Django around the shop, configured without a settings module."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.target.shop import TABLES


def database(address: str) -> dict[str, Any]:
    if not address.startswith("postgresql:"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": address}
    parts = urlsplit(address)
    where = {"HOST": parts.hostname, "PORT": parts.port, "NAME": parts.path.strip("/")}
    return {"ENGINE": "django.db.backends.postgresql", "USER": parts.username, **where}


def configure(address: str) -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    settings.configure(
        DATABASES={"default": database(address) | {"ATOMIC_REQUESTS": True}},
        INSTALLED_APPS=["countersign_target.django"],
        MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
        ROOT_URLCONF="tests.target.django_shop",
        ALLOWED_HOSTS=["127.0.0.1"],
        SECRET_KEY="only for these tests",
        USE_TZ=True,
    )
    django.setup()
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        for statement in TABLES:
            cursor.execute(statement)
