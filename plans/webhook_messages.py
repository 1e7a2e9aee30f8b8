"""What a webhook carries and how it is signed, as Standard Webhooks 1.0 has it (W-1). Pure."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.conf import settings

from audit.models import Event
from plans.custody import Secret
from plans.feed import as_item
from plans.representation import plan_path

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> Secret:
    """`whsec_` and 256 random bits in base64 (SEC-20)."""
    return Secret(PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode())


def headers(message_id: str, at: datetime, body: bytes, keys: Iterable[Secret]) -> dict[str, str]:
    """The three headers: `webhook-id`, `webhook-timestamp`, and a signature by each of the keys."""
    timestamp = str(int(at.timestamp()))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(key, signed) for key in keys),
    }


def _signature(key: Secret, signed: bytes) -> str:
    raw = base64.b64decode(key.reveal().removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(raw, signed, "sha256")).decode()


def body(event: Event) -> bytes:
    """Type, ids, status and where to read the rest: no inputs, no values, never a token (A-2)."""
    item = as_item(event)
    data: dict[str, Any] = {
        "event_id": item["id"],
        "agent": event.agent,
        "target": item["target"],
        "plan_id": item["plan_id"],
        "intent_id": item["intent_id"],
        "task_id": item["task_id"],
        "status": item["to"],
        "url": _address(event),
    }
    message = {"type": item["type"], "timestamp": item["at"], "data": data}
    return json.dumps(message, separators=(",", ":")).encode()


def _address(event: Event) -> str | None:
    """Where the agent reads what became of it."""
    if event.plan_id:
        return settings.BASE_URL + plan_path(event.target, event.plan_id)
    if event.intent_id:
        return f"{settings.BASE_URL}/api/v1/intents/{event.intent_id}"
    return None
