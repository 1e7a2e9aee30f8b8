"""API keys: made once, shown once, revoked at once (SEC-34)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction

from audit.actions import Action
from audit.actors import Actor
from audit.recording import Subject, record
from plans import custody
from plans.clock import clock
from plans.custody import Secret
from plans.models import Agent, ApiKey

# What an agent needs for its own plans; reading the trail is asked for by name.
DEFAULT_SCOPES: Final = ("plans:write", "plans:read", "replans:work")


@transaction.atomic
def create_api_key(
    agent: Agent, actor: Actor, *, scopes: Sequence[str] = (), expires_in: timedelta | None = None
) -> Secret:
    """A new key for the agent, returned once; only its SHA-256 is stored (SEC-34).

    Raises ValueError for a scope that does not exist. Older keys stay, so that a rotation overlaps.
    """
    wanted = list(dict.fromkeys(scopes or DEFAULT_SCOPES))
    if unknown := set(wanted) - set(ApiKey.SCOPES):
        raise ValueError(f"unknown scope {', '.join(sorted(unknown))}")
    key_id, _, full = custody.new_api_key()
    key = ApiKey.objects.create(
        agent=agent,
        key_id=key_id,
        digest=custody.api_key_digest(full),
        scopes=wanted,
        expires_at=None if expires_in is None else clock() + expires_in,
    )
    expires = key.expires_at and key.expires_at.isoformat()
    details = {"key_id": key_id, "scopes": wanted, "expires_at": expires}
    record(Action.API_KEY_CREATED, actor, Subject(agent=agent.name), details)
    return Secret(full)


@transaction.atomic
def revoke_api_key(key: ApiKey, actor: Actor) -> bool:
    """Close the key from this moment on; False: it was revoked before (SEC-34)."""
    locked = ApiKey.objects.select_for_update(of=("self",)).select_related("agent").get(pk=key.pk)
    if locked.revoked_at is not None:
        return False
    locked.revoked_at = clock()
    locked.save(update_fields=["revoked_at"])
    subject = Subject(agent=locked.agent.name)
    record(Action.API_KEY_REVOKED, actor, subject, {"key_id": locked.key_id})
    return True
