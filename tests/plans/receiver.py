"""A webhook's receiver on loopback, and what its owner would check with a library of others."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from email.parser import BytesParser
from typing import Any

from django.db import transaction
from standardwebhooks.webhooks import Webhook as Verifier

from audit import actors
from audit.actions import Action
from audit.models import Event
from audit.recording import record
from plans import receivers
from plans.clock import clock
from plans.custody import Secret
from plans.models import Agent, Delivery, Plan, Webhook
from plans.webhooks import deliver
from tests.faults.raw_target import Mode, RawTarget, whole

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    line: str
    headers: Message
    body: bytes

    @property
    def id(self) -> str:
        return str(self.headers["webhook-id"])

    @property
    def content(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    def verified_by(self, secret: Secret) -> Any:
        """What the reference library makes of it; raises what it raises."""
        return Verifier(secret.reveal()).verify(self.body, dict(self.headers.items()))


class Receiver(RawTarget):
    """Answers 200 unless told otherwise, and keeps what it was told."""

    def __init__(self, *modes: str) -> None:
        super().__init__(*modes or ("empty-204",))

    @property
    def url(self) -> str:
        return f"{self.base_url}/hooks/countersign?of=support"

    def answers(self, *modes: Mode) -> None:
        """Each in its turn; the last one stays."""
        self.modes = deque(modes)

    @property
    def messages(self) -> list[Received]:
        """A connection that died before its first byte told nothing."""
        return list(_parsed(filter(None, self.requests)))


def _parsed(requests: Iterable[bytes]) -> Iterator[Received]:
    for request in requests:
        head, _, body = request.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        yield Received(line.decode(), BytesParser().parsebytes(fields), body)


def status(code: int, *headers: str, body: bytes = b"") -> Mode:
    return Mode([whole(f"{code} Scripted", body, *headers)])


@contextmanager
def listening(agent: Agent, *modes: str) -> Iterator[tuple[Receiver, Webhook, Secret]]:
    """A receiver, the webhook that leads there, and its secret."""
    with Receiver(*modes) as receiver:
        webhook, secret = receivers.add(agent, receiver.url, internal=True, actor=actors.OPERATOR)
        yield receiver, webhook, secret


def happened(plan: Plan, action: Action = Action.PLAN_COMMITTED, to: str = "committed") -> Event:
    """An event of the plan as the trail has it; the plan itself does not move."""
    with transaction.atomic():
        return record(
            action, actors.COMMITTER, plan.subject(), from_status=to and "committing", to_status=to
        )


def queued(webhook: Webhook, event: Event) -> Delivery:
    """The delivery of one event, due now."""
    return Delivery.objects.create(webhook=webhook, event=event, next_attempt_at=clock())


def make_due(delivery: Delivery) -> Delivery:
    """As if the wait were over."""
    Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=clock())
    Webhook.objects.filter(pk=delivery.webhook_id).update(not_before=None)
    delivery.refresh_from_db()
    return delivery


def wait_of(delivery: Delivery) -> timedelta:
    """From now to the next attempt."""
    delivery.refresh_from_db()
    assert delivery.next_attempt_at is not None
    return delivery.next_attempt_at - clock()


class Line:
    """A receiver, its webhook, and one delivery that is due."""

    def __init__(self, receiver: Receiver, webhook: Webhook, secret: Secret, plan: Plan) -> None:
        self.receiver, self.webhook, self.secret, self.plan = receiver, webhook, secret, plan
        self.delivery = queued(webhook, happened(plan))

    def deliver(self) -> int:
        return deliver(self.webhook.pk)

    def fresh(self) -> tuple[Webhook, Delivery]:
        self.webhook.refresh_from_db()
        self.delivery.refresh_from_db()
        return self.webhook, self.delivery

    def log(self) -> list[tuple[str, int | None]]:
        rows = self.delivery.attempts.order_by("number")
        return list(rows.values_list("outcome", "http_status"))

    def fault(self) -> str:
        return self.delivery.attempts.order_by("number")[0].fault
