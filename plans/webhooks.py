"""Sending what webhooks are told, by Standard Webhooks (W-1, FM-54).

The gateway's rules are these calls' rules: every address checked and the checked one connected
to, no redirect followed, a deadline that a dripping receiver cannot outlive.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from audit import actors
from plans import custody, webhook_messages
from plans.delivering import Claim, Line, Verdict, judge
from plans.exchanges import Call, Endpoint, Exchange, NotSent
from plans.gateway import exchange
from plans.models import Delivery, Webhook
from plans.models.messages import Receiver
from plans.receivers import switch_off_locked
from plans.webhook_addresses import Address

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 10.0
TOTAL_SECONDS: Final = 15.0
ANSWER_CAP: Final = 64 * 1024


class Webhooks(Line[Webhook, Delivery]):
    """An agent's events, each for every webhook of it that is on."""

    receivers = Webhook
    messages = Delivery
    key = "webhook"
    related = ("event",)

    @property
    def seconds(self) -> float:
        return TOTAL_SECONDS

    def send(self, claim: Claim[Webhook, Delivery]) -> Verdict:
        webhook = claim.receiver
        body, keys = webhook_messages.body(claim.message.event), _keys(webhook, claim.at)
        headers = webhook_messages.headers(claim.message.message_id, claim.at, body, keys)
        return judge(post(webhook.url, body, headers, internal=webhook.internal), claim.at)

    def give_up(
        self, receiver: Webhook, message: Delivery, why: Receiver.Off, now: datetime
    ) -> None:
        details = {"message": message.message_id}
        switch_off_locked(receiver, why, now, actor=actors.DELIVERER, details=details)


LINE: Final = Webhooks()


def due() -> QuerySet[Webhook, int]:
    """Webhooks that have something to send now."""
    return LINE.due()


def deliver(pk: int) -> int:
    """Send what is due to one webhook; how many were delivered."""
    return LINE.deliver(pk)


def post(url: str, body: bytes, headers: dict[str, str], *, internal: bool) -> Exchange:
    """The address is parsed and checked again, and resolved for this one connection (SEC-15)."""
    try:
        address = Address.parse(url, internal=internal)
    except ValueError as refused:
        return NotSent("address-blocked", str(refused))
    endpoint = Endpoint(
        str(address.origin),
        internal,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        total_timeout=TOTAL_SECONDS,
        answer_cap=ANSWER_CAP,
    )
    return exchange(endpoint, Call("POST", address.path, body=body, headers=headers))


def _keys(webhook: Webhook, now: datetime) -> Iterator[custody.Secret]:
    """The secret, and for a day after a rotation the one before it."""
    assert webhook.secret is not None
    yield custody.Secret(custody.decrypt(webhook.secret).decode())
    until = webhook.old_secret_until
    if webhook.old_secret is not None and until is not None and until > now:
        yield custody.Secret(custody.decrypt(webhook.old_secret).decode())
