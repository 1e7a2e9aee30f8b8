"""Signing in is an event: who, from where, and never with which password (SEC-27)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test import Client

from approvals.signing_in import NOT_A_NAME
from audit.actions import Action
from audit.models import Event
from audit.sentences import sentence

PASSWORD = "correct horse battery staple"
SIGN_IN = "/accounts/login/"


@pytest.fixture
def ada_with_password(ada: User) -> User:
    ada.set_password(PASSWORD)
    ada.save()
    return ada


def sign_in(client: Client, name: str, password: str) -> int:
    form = {"login": name, "password": password}
    response = client.post(SIGN_IN, form, headers={"X-Request-Id": "req-12345"})
    return response.status_code


def test_ada_signs_in(client: Client, ada_with_password: User) -> None:
    assert sign_in(client, "ada", PASSWORD) == 302
    event = Event.objects.get()
    assert (event.action, event.actor_kind, event.actor_label, event.actor_id) == (
        Action.SIGNED_IN,
        "person",
        "ada",
        str(ada_with_password.pk),
    )
    assert (event.ip, event.request_id) == ("127.0.0.1", "req-12345")
    assert str(sentence(event)) == "ada signed in"


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("ada", "ada"),
        ("mallory", "mallory"),
        ("Zoë.o'Brien", NOT_A_NAME),
        ("correct horse battery staple", NOT_A_NAME),
    ],
)
def test_a_failure_keeps_the_typed_name(
    client: Client, ada_with_password: User, typed: str, label: str
) -> None:
    assert sign_in(client, typed, "wrong-secret") == 200
    event = Event.objects.get()
    assert (event.action, event.actor_kind, event.actor_label) == (
        Action.SIGN_IN_FAILED,
        "person",
        label,
    )
    assert (event.actor_id, event.details) == ("", {})
    assert str(sentence(event)) == f"Signing in as {label} failed"


def test_a_password_is_never_in_the_trail(client: Client, ada_with_password: User) -> None:
    sign_in(client, "ada", "wrong-secret")
    sign_in(client, "ada", PASSWORD)
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(e::text, '') FROM audit_event AS e")
        trail = cursor.fetchone()[0]
    assert "signed_in" in trail
    assert "wrong-secret" not in trail
    assert PASSWORD not in trail


def test_who_is_not_active_fails(client: Client, ada_with_password: User) -> None:
    ada_with_password.is_active = False
    ada_with_password.save()
    sign_in(client, "ada", PASSWORD)
    assert {event.action for event in Event.objects.all()} == {Action.SIGN_IN_FAILED}


def test_a_script_that_logs_in_is_nobody_at_the_door(client: Client, ada: User) -> None:
    client.force_login(ada)
    assert not Event.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_without_an_event_nobody_is_signed_in(client: Client, ada_with_password: User) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE audit_event ADD CONSTRAINT full_disk CHECK (action = '') NOT VALID"
        )
    try:
        with pytest.raises(IntegrityError):
            sign_in(client, "ada", PASSWORD)
    finally:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE audit_event DROP CONSTRAINT full_disk")
    assert client.get("/review/").status_code == 302
