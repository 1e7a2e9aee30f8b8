"""Mona verifies the trail from its page; what she found is an event (L-3)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.sentences import sentence, tone
from tests.audit.trail import attack, sealed, write

pytestmark = pytest.mark.usefixtures("one_transaction")

VERIFY = "/audit/verification/"


@pytest.fixture
def reader(client: Client, mona: User) -> Client:
    client.force_login(mona)
    return client


def page(client: Client) -> str:
    return " ".join(client.get("/audit/").content.decode().split())


def test_the_page_says_how_far_the_trail_is_sealed(reader: Client) -> None:
    assert "Nothing is sealed yet" in page(reader)
    sealed(2)
    html = page(reader)
    assert "Sealed up to" in html
    assert "2 events." in html
    assert "Chain verified" not in html


def test_the_page_says_when_seals_are_late(reader: Client) -> None:
    sealed(1)
    event = write(1)[0]
    assert "wait for a seal" not in page(reader)
    late = timezone.now() - timedelta(minutes=2)
    attack("UPDATE audit_event SET at = %s WHERE id = %s", late, event.pk)
    assert "wait for a seal" in page(reader)


def test_mona_verifies_the_trail(reader: Client) -> None:
    sealed(3)
    answer = reader.post(VERIFY)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/audit/#chain")
    event = Event.objects.get(action=Action.AUDIT_VERIFIED)
    assert (event.actor_label, event.details["holds"], event.details["events"]) == ("mona", True, 3)
    assert event.details["checkpoints"] == 1
    assert str(sentence(event)).startswith("mona verified the trail up to 20")
    html = page(reader)
    assert "Chain verified up to" in html
    assert "<bdi>mona</bdi>" in html
    assert "3 events under 1 seals" in html


def test_the_page_says_what_does_not_hold(reader: Client) -> None:
    events = sealed(3)
    attack("UPDATE audit_event SET title = 'x' WHERE id = %s", events[1].pk)
    reader.post(VERIFY)
    html = page(reader)
    assert "The chain does NOT verify" in html
    assert f"edited: event {events[1].pk} " in html
    event = Event.objects.get(action=Action.AUDIT_VERIFIED)
    assert str(sentence(event)).startswith("mona verified the trail: it does not hold; edited: ")
    assert tone(event) == "bad"


@pytest.mark.parametrize("name", ["ada", "charlie"])
def test_who_does_not_audit_does_not_verify(
    client: Client, name: str, request: pytest.FixtureRequest
) -> None:
    client.force_login(request.getfixturevalue(name))
    assert client.post(VERIFY).status_code == 403
    assert not Event.objects.exists()


def test_a_link_never_verifies(reader: Client, client: Client) -> None:
    assert reader.get(VERIFY).status_code == 405
    assert Client().post(VERIFY).status_code == 302
    assert Client(enforce_csrf_checks=True).post(VERIFY).status_code == 403
    assert not Event.objects.exists()


def test_a_page_costs_no_hashing(reader: Client) -> None:
    sealed(5)
    with CaptureQueriesContext(connection) as queries:
        reader.get("/audit/")
    asked = [query["sql"] for query in queries if "audit_seal" in query["sql"]]
    assert len(asked) == 1
    assert "manifest" not in asked[0]
