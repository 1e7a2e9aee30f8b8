"""Agents and their API keys."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models import ClockTimestamp


class Agent(models.Model):
    """A software identity with API keys; its owner is a person and never approves its plans."""

    name = models.CharField(max_length=100, unique=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="agents"
    )
    active = models.BooleanField(default=True)
    pending_cap = models.PositiveIntegerField(default=50)
    rate_limit_per_minute = models.PositiveIntegerField(default=600)
    # A token bucket, refilled from PostgreSQL's clock under this row's lock.
    rate_tokens = models.FloatField(default=0)
    rate_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """`cs_<id>_<secret>`, shown once; only its SHA-256 is stored (SEC-34)."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="api_keys")
    key_id = models.CharField(max_length=32, unique=True)
    digest = models.CharField(max_length=64)
    scopes: ArrayField[Any, Any] = ArrayField(models.CharField(max_length=32))
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    SCOPES: ClassVar[tuple[str, ...]] = (
        "plans:write",
        "plans:read",
        "replans:work",
        "audit:read",
    )

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"cs_{self.key_id}_…"
