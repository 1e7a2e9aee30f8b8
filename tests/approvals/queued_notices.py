"""Notices that are due."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from approvals.models import Channel, Notice
from plans.clock import clock
from plans.models import Plan


def queued(channel: Channel, plan: Plan, person: User | None = None, **columns: Any) -> Notice:
    row = {"channel": channel, "plan": plan, "person": person, "moment": "waits"} | columns
    return Notice.objects.create(**row, next_attempt_at=clock())
