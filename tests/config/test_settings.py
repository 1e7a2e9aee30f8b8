"""What the settings become in another environment, asked of a fresh process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage
from django.core.management.base import SystemCheckError

from config import celery, checks

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "DATABASE_URL": "postgresql://countersign@db.example/countersign",
    "REDIS_URL": "redis://redis.example/0",
    "SECRET_KEY": "s" * 50,
    "COUNTERSIGN_KEYS": Fernet.generate_key().decode(),
    "BASE_URL": "https://countersign.example.com",
}


def fresh(home: Path, changes: dict[str, str | None], *names: str) -> "subprocess.CompletedProcess":  # type: ignore[type-arg]
    environment = os.environ | PRODUCTION | {"COUNTERSIGN_HOME": str(home)} | changes
    program = (
        "import json; from config import settings as s;"
        f"print(json.dumps({{n: getattr(s, n) for n in {names!r}}}))"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
    )


def test_https_binds_cookies_to_the_host(tmp_path: Path) -> None:
    done = fresh(tmp_path, {}, "SESSION_COOKIE_NAME", "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS")
    assert json.loads(done.stdout) == {
        "SESSION_COOKIE_NAME": "__Host-sessionid",
        "CSRF_COOKIE_SECURE": True,
        "SECURE_HSTS_SECONDS": 31_536_000,
    }


def test_plain_http_has_plain_cookies() -> None:
    assert settings.SESSION_COOKIE_NAME == "sessionid"
    assert settings.SESSION_COOKIE_SECURE is False


@pytest.mark.parametrize("missing", ["SECRET_KEY", "COUNTERSIGN_KEYS"])
def test_a_real_database_needs_real_secrets(tmp_path: Path, missing: str) -> None:
    done = fresh(tmp_path, {missing: None})
    assert done.returncode == 1
    assert "SECRET_KEY and COUNTERSIGN_KEYS" in done.stderr


def test_a_publisher_never_waits_and_a_worker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert celery.configuration()["broker_transport_options"]["socket_timeout"] == 0.5
    monkeypatch.setattr(settings, "ROLE", "worker")
    assert celery.configuration()["broker_transport_options"]["visibility_timeout"] == 300


def ids(messages: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_a_broken_encryption_key_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENCRYPTION_KEYS", [*settings.ENCRYPTION_KEYS, "short"])
    found = checks.check_encryption_keys()
    assert ids(found) == ["countersign.E001"]
    assert "short" not in str(found)


def test_production_refuses_debug_and_short_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "EMBEDDED", ())
    monkeypatch.setattr(settings, "DEBUG", True)
    monkeypatch.setattr(settings, "SECRET_KEY", "short")
    assert ids(checks.check_production()) == ["countersign.E002", "countersign.E003"]


@pytest.mark.parametrize("keys", [[], ["short"], ["public:" + "A" * 43 + "="]])
def test_a_trail_without_a_key_that_signs_is_refused(
    monkeypatch: pytest.MonkeyPatch, keys: list[str]
) -> None:
    assert checks.check_signing_keys() == []
    monkeypatch.setattr(settings, "AUDIT_SIGNING_KEYS", keys)
    found = checks.check_signing_keys()
    assert ids(found) == ["countersign.E006"]
    assert "short" not in str(found)


@pytest.mark.django_db
def test_commits_that_may_be_lost_are_refused() -> None:
    from django.db import connection

    assert checks.check_postgres(databases=["default"]) == []
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    assert ids(checks.check_postgres(databases=["default"])) == ["countersign.E004"]


@pytest.mark.django_db(transaction=True)
def test_an_unsafe_process_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.refuse_unsafe_start()
    monkeypatch.setattr(settings, "EMBEDDED", ())
    monkeypatch.setattr(settings, "DEBUG", True)
    with pytest.raises(SystemCheckError, match="DEBUG is on"):
        checks.refuse_unsafe_start()
