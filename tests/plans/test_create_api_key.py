"""A key is printed once and stored as its hash (SEC-34)."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from audit import actors
from audit.actions import Action
from audit.models import Event
from plans import custody
from plans.configuration.api_keys import revoke_api_key
from plans.models import Agent, ApiKey


def create(*arguments: str) -> str:
    out, err = StringIO(), StringIO()
    call_command("create_api_key", *arguments, stdout=out, stderr=err)
    assert err.getvalue() == ""
    return out.getvalue()


def test_it_prints_the_key_and_nothing_else(support_agent: Agent) -> None:
    printed = create("support-agent")
    key = ApiKey.objects.get(agent=support_agent)
    full = printed.removesuffix("\n")
    assert custody.api_key_id(full) == key.key_id
    assert custody.api_key_digest(full) == key.digest
    assert key.scopes == ["plans:write", "plans:read", "replans:work"]
    assert key.expires_at is None


def test_it_stores_the_scopes_and_the_expiry(support_agent: Agent) -> None:
    create("support-agent", "--scope", "plans:read", "--scope", "audit:read", "--expires-days", "7")
    key = ApiKey.objects.get()
    assert key.scopes == ["plans:read", "audit:read"]
    assert key.expires_at is not None
    assert abs(key.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)


def test_it_is_in_the_trail_without_the_key(support_agent: Agent) -> None:
    full = create("support-agent").strip()
    event = Event.objects.get(action=Action.API_KEY_CREATED)
    assert event.agent == "support-agent"
    assert event.details["key_id"] == custody.api_key_id(full)
    assert full.rpartition("_")[2] not in str(event.details)


def test_two_keys_overlap(support_agent: Agent) -> None:
    assert create("support-agent") != create("support-agent")
    assert ApiKey.objects.filter(revoked_at=None).count() == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["nobody"],
        ["support-agent", "--scope", "plans:approve"],
        ["support-agent", "--expires-days", "0"],
        ["support-agent", "--expires-days", "soon"],
        [],
    ],
)
def test_it_refuses_what_makes_no_key(support_agent: Agent, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        create(*arguments)
    assert not ApiKey.objects.exists()
    assert not Event.objects.exists()


def test_a_key_is_revoked_once(support_agent: Agent) -> None:
    create("support-agent")
    key = ApiKey.objects.get()
    assert revoke_api_key(key, actors.OPERATOR)
    assert not revoke_api_key(key, actors.OPERATOR)
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert Event.objects.filter(action=Action.API_KEY_REVOKED).count() == 1
