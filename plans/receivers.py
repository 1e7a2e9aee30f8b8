"""What a person does with webhooks: add, rotate, switch, send again (W-1, SEC-16).

Who may is for the caller to say. A secret leaves here once, in the return value of the act that
made it; an address never changes, so that no secret follows it elsewhere (SEC-18).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from audit.actions import Action
from audit.actors import CLOCK, Actor
from audit.recording import Subject, record
from plans import custody, telling, webhook_messages
from plans.addresses import AddressRefused
from plans.clock import clock
from plans.custody import Secret
from plans.errors import AddressNotAllowed, InvalidField, WebhookChanged
from plans.models import Agent, Delivery, Webhook
from plans.retrying import retried
from plans.webhook_addresses import Address

# Each is told every event, one call at a time.
MOST_PER_AGENT: Final = 10
OVERLAP: Final = timedelta(hours=24)
_WORDS: Final = {
    "https-required": "It needs https; http needs a receiver that an operator allowed inside.",
    "scheme": "Only https (or http to an internal receiver) is called.",
    "userinfo": "An address has no user name and no password.",
    "loopback": "That is this machine. An operator may allow a receiver inside.",
    "private": "That is a private address. An operator may allow a receiver inside.",
    "shared": "That is a private address. An operator may allow a receiver inside.",
}


def add(agent: Agent, url: str, *, internal: bool, actor: Actor) -> tuple[Webhook, Secret]:
    """Tell this agent's events to `url` from now on; the secret is shown this once.

    Raises AddressNotAllowed, InvalidField (422), WebhookChanged (409) when it is there already.
    """
    address = checked(url, internal)
    secret = webhook_messages.new_secret()
    with transaction.atomic():
        agent = Agent.objects.select_for_update(of=("self",)).get(pk=agent.pk)
        if agent.webhooks.filter(url=str(address)).exists():
            raise WebhookChanged(f"{agent.name} has a webhook with this address already.")
        _refuse_too_many(agent)
        telling.begin()
        webhook = Webhook.objects.create(
            agent=agent,
            url=str(address),
            internal=internal,
            secret=custody.encrypt(secret.reveal().encode()),
            on_since=clock(),
            created_by=actor.label[:200],
        )
        _record(Action.WEBHOOK_ADDED, webhook, actor, {"internal": internal})
    return webhook, secret


@retried
def rotate(pk: int, number: int, *, actor: Actor) -> Secret:
    """A new secret; the old one signs beside it for 24 hours. Raises WebhookChanged (409).

    `number` is the secret's that the person wants replaced: a page sent twice replaces one.
    """
    secret = webhook_messages.new_secret()
    with transaction.atomic():
        webhook = _locked(pk)
        if webhook.secret_number != number:
            raise WebhookChanged("The secret was replaced meanwhile. It is shown only once.")
        Webhook.objects.filter(pk=pk).update(
            secret=custody.encrypt(secret.reveal().encode()),
            old_secret=webhook.secret,
            old_secret_until=clock() + OVERLAP,
            secret_number=number + 1,
        )
        _record(Action.WEBHOOK_SECRET_ROTATED, webhook, actor, {"number": number + 1})
    return secret


@retried
def switch_on(pk: int, *, actor: Actor) -> bool:
    """Tell it what happens from now on; what was missed is in the feed. False: it is on."""
    with transaction.atomic():
        agent = Agent.objects.select_for_update(of=("self",)).get(webhooks=pk)
        webhook, now = _locked(pk), clock()
        if webhook.on_since is not None:
            return False
        _refuse_too_many(agent)
        _cancel_waiting(webhook, now)
        free = {"lease": None, "not_before": None, "failing_since": None}
        Webhook.objects.filter(pk=pk).update(on_since=now, off_at=None, off_reason="", **free)
        _record(Action.WEBHOOK_ON, webhook, actor)
    return True


@retried
def switch_off(pk: int, *, actor: Actor) -> bool:
    """Nothing is sent any more; what waits is cancelled. False: it is off already."""
    with transaction.atomic():
        return switch_off_locked(_locked(pk), Webhook.Off.PERSON, clock(), actor=actor)


def switch_off_locked(
    webhook: Webhook,
    why: Webhook.Off,
    now: datetime,
    *,
    actor: Actor,
    details: Mapping[str, Any] | None = None,
) -> bool:
    """The same, by whoever holds the webhook's lock."""
    if webhook.on_since is None:
        return False
    _cancel_waiting(webhook, now)
    free = {"lease": None, "not_before": None}
    Webhook.objects.filter(pk=webhook.pk).update(on_since=None, off_at=now, off_reason=why, **free)
    _record(Action.WEBHOOK_OFF, webhook, actor, {"off": why.value, **(details or {})})
    return True


@retried
def send_again(pk: int, *, actor: Actor) -> None:
    """Due now, with a schedule of its own and the same `webhook-id`. WebhookChanged (409): off."""
    with transaction.atomic():
        webhook = _locked(Delivery.objects.values_list("webhook_id", flat=True).get(pk=pk))
        if webhook.on_since is None:
            raise WebhookChanged("The webhook is off. Switch it on first.")
        delivery = Delivery.objects.select_for_update().get(pk=pk)
        Delivery.objects.filter(pk=pk).update(
            status=Delivery.Status.WAITING, tries=0, next_attempt_at=clock(), closed_at=None
        )
        details = {"message": delivery.message_id, "was": delivery.status}
        _record(Action.WEBHOOK_SENT_AGAIN, webhook, actor, details)


def retire_secrets() -> None:
    """Old secrets whose day is over are destroyed."""
    over = Webhook.objects.filter(old_secret_until__lte=clock())
    for pk in list(over.values_list("pk", flat=True)[:100]):
        with transaction.atomic():
            webhook = _locked(pk)
            if webhook.old_secret_until is not None and webhook.old_secret_until <= clock():
                Webhook.objects.filter(pk=pk).update(old_secret=None, old_secret_until=None)
                _record(Action.WEBHOOK_SECRET_RETIRED, webhook, CLOCK)


def checked(url: str, internal: bool) -> Address:
    """An address that could be called now. AddressNotAllowed (422), with what to do instead."""
    try:
        address = Address.parse(url, internal=internal)
        address.look_up(internal=internal)
    except AddressRefused as refused:
        words = _WORDS.get(refused.code, refused.detail) if not internal else refused.detail
        raise AddressNotAllowed(words, pointer="/url") from refused
    return address


def _refuse_too_many(agent: Agent) -> None:
    if agent.webhooks.on().count() >= MOST_PER_AGENT:
        detail = f"{agent.name} has {MOST_PER_AGENT} webhooks that are on; switch one off first."
        raise InvalidField(detail, pointer="/agent")


def _locked(pk: int) -> Webhook:
    return Webhook.objects.select_for_update(of=("self",)).select_related("agent").get(pk=pk)


def _cancel_waiting(webhook: Webhook, now: datetime) -> None:
    webhook.deliveries.filter(status=Delivery.Status.WAITING).update(
        status=Delivery.Status.CANCELLED, next_attempt_at=None, closed_at=now
    )


def _record(
    action: Action, webhook: Webhook, actor: Actor, details: Mapping[str, Any] | None = None
) -> None:
    """The origin alone: a path may hold what only the receiver should know."""
    origin = str(Address.parse(webhook.url, internal=True).origin)
    named = {"webhook": webhook.pk, "address": origin, **(details or {})}
    record(action, actor, Subject(agent=webhook.agent.name), named)
