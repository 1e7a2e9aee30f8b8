"""API keys: who asks, and what the key lets them do (SEC-34)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

import structlog
from django.db import models
from django.db.models import Q

from audit.models import ClockTimestamp
from audit.statements import Slot, Statement
from plans.custody import api_key_digest, api_key_id, keys_equal
from plans.errors import MissingScope, Unauthenticated
from plans.models import Agent, ApiKey

type Scope = Literal["plans:write", "plans:read", "replans:work", "audit:read"]

# Writing it at every request would make every read a write.
USE_NOTED_EVERY: Final = timedelta(minutes=1)
_NO_KEY: Final = api_key_digest("")
_KEY: Final = Statement(
    lambda: (
        ApiKey.objects.filter(key_id=Slot("key_id", models.TextField()))
        .select_related("agent")
        .annotate(now=ClockTimestamp())
    )
)
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent behind a key that is good now."""

    agent: Agent
    key_id: str
    scopes: frozenset[str]

    def demand(self, scope: Scope) -> None:
        """Raises MissingScope (403)."""
        if scope not in self.scopes:
            log.warning("scope missing", agent=self.agent.name, key_id=self.key_id, scope=scope)
            raise MissingScope(f"The key cs_{self.key_id}_… does not have the scope {scope}.")


def authenticate(authorization: str) -> Caller:
    """The caller of an `Authorization: Bearer cs_<id>_<secret>` header. Raises Unauthenticated.

    One query for a known key, and one write a minute. Revocation and expiry are compared with
    PostgreSQL's clock, at every request (C-1, SEC-34).
    """
    scheme, _, full = authorization.partition(" ")
    key_id = api_key_id(full.strip()) if scheme.lower() == "bearer" else None
    if key_id is None:
        raise Unauthenticated()
    key = _KEY.first(key_id=key_id)
    # Compared even without a row: the time must not tell which IDs exist.
    equal = keys_equal(key.digest if key else _NO_KEY, api_key_digest(full.strip()))
    if key is None or not equal or not _is_good(key, now := cast("Any", key).now):
        log.warning("API key refused", key_id=key_id)
        raise Unauthenticated()
    _note_use(key, now)
    return Caller(key.agent, key_id, frozenset(key.scopes))


def _is_good(key: ApiKey, now: datetime) -> bool:
    if key.revoked_at is not None and key.revoked_at <= now:
        return False
    if key.expires_at is not None and key.expires_at <= now:
        return False
    return key.agent.active


def _note_use(key: ApiKey, now: datetime) -> None:
    if key.last_used_at is not None and now - key.last_used_at < USE_NOTED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=ClockTimestamp() - USE_NOTED_EVERY)
    ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=ClockTimestamp())
