"""What people do with notices: switch a group's channels, name its webhook, want no mail.

Who may is for the caller to say. Every change is an event in its transaction; an address is told
by its origin alone, and a secret leaves here once, in the return value of what made it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils.translation import gettext as _

from approvals.notices import telling
from approvals.notices.rows import Channel, Notice, Silence
from audit.actions import Action
from audit.actors import CLOCK, DELIVERER, Actor
from audit.recording import Subject, record
from plans import custody, receivers, webhook_messages
from plans.clock import clock
from plans.configuration.changes import Change, KeyChange
from plans.custody import Secret
from plans.errors import InvalidField, WebhookChanged
from plans.models.messages import Receiver
from plans.retrying import retried
from plans.webhook_addresses import Address

NOUN: Final = "notices"
Kind = Channel.Kind


@retried
def switch(group: Group, kind: str, on: bool, *, actor: Actor) -> bool:
    """One channel on or off; False: it is so already. InvalidField (422): no such channel."""
    with transaction.atomic():
        _locked(group)
        keys = switched(group, kind, on)
        _record(group, keys, actor)
    return bool(keys)


def switched(group: Group, kind: str, on: bool) -> list[KeyChange]:
    """The same without the event, for a caller who tells of more at once."""
    channel = _channel(group, kind)
    if channel is None and kind == Kind.WEBHOOK and on:
        raise InvalidField(_("It has no webhook yet: name its address."), pointer="/to")
    if on == (channel is not None and channel.on_since is not None):
        return []
    channel = channel or Channel(group=group, kind=kind)
    _set(channel, on, clock())
    return [KeyChange(kind, "off" if on else "on", "on" if on else "off")]


def name_webhook(group: Group, url: str, *, internal: bool, actor: Actor) -> tuple[Channel, Secret]:
    """The address of the group's webhook, and its secret, which is shown this once.

    Raises AddressNotAllowed (422), WebhookChanged (409) when it is this address already.
    """
    address = receivers.checked(url, internal)
    with transaction.atomic():
        _locked(group)
        keys, secret = named(group, address, internal=internal)
        if secret is None:
            raise WebhookChanged(
                _("{group} has a webhook with this address already.").format(group=group.name)
            )
        _record(group, keys, actor)
        channel = _channel(group, Kind.WEBHOOK)
    assert channel is not None
    return channel, secret


def named(
    group: Group, address: Address, *, internal: bool, secret: Secret | None = None
) -> tuple[list[KeyChange], Secret | None]:
    """The same without the event; no secret in the answer: nothing has changed.

    Another address has another secret: none follows an address elsewhere (SEC-18).
    """
    channel = _channel(group, Kind.WEBHOOK)
    if channel is not None and _is(channel, address, internal) and _has(channel, secret):
        return [], None
    secret = secret or webhook_messages.new_secret()
    before = channel.origin if channel else None
    channel = channel or Channel(group=group, kind=Kind.WEBHOOK)
    channel.address = custody.encrypt(str(address).encode())
    channel.origin, channel.internal = str(address.origin)[:300], internal
    channel.secret = custody.encrypt(secret.reveal().encode())
    channel.old_secret = channel.old_secret_until = None
    channel.secret_number += 1 if channel.pk else 0
    _set(channel, True, clock())
    return [KeyChange("webhook", before, channel.origin), KeyChange("secret", words="set")], secret


def _is(channel: Channel, address: Address, internal: bool) -> bool:
    held = custody.decrypt(channel.address).decode() if channel.address else ""
    return held == str(address) and channel.internal == internal


def _has(channel: Channel, secret: Secret | None) -> bool:
    if secret is None or channel.secret is None:
        return True
    return custody.decrypt(channel.secret).decode() == secret.reveal()


@retried
def rotate(group: Group, number: int, *, actor: Actor) -> tuple[Channel, Secret]:
    """A new secret; the old one signs beside it for 24 hours. WebhookChanged (409), InvalidField.

    `number` is the secret's that the person wants replaced: a page sent twice replaces one.
    """
    secret = webhook_messages.new_secret()
    with transaction.atomic():
        _locked(group)
        channel = _channel(group, Kind.WEBHOOK)
        if channel is None:
            raise InvalidField(_("It has no webhook yet."), pointer="/number")
        if channel.secret_number != number:
            raise WebhookChanged(_("The secret was replaced meanwhile. It is shown only once."))
        channel.old_secret, channel.old_secret_until = channel.secret, clock() + receivers.OVERLAP
        channel.secret = custody.encrypt(secret.reveal().encode())
        channel.secret_number += 1
        channel.save()
        _record(group, [KeyChange("secret", words="replaced")], actor)
    return channel, secret


def stop(channel: Channel, why: Receiver.Off, now: datetime) -> None:
    """By the sender, under the channel's lock: it wants nothing any more, or never answered."""
    _cancel_waiting(channel, now)
    free = {"lease": None, "not_before": None}
    Channel.objects.filter(pk=channel.pk).update(on_since=None, off_at=now, off_reason=why, **free)
    details = {"group": channel.group.name, "address": channel.origin, "off": why.value}
    record(Action.NOTICES_OFF, DELIVERER, Subject(), details)


@retried
def want_mail(person: User, wanted: bool, *, actor: Actor) -> bool:
    """A person's own wish; False: it is so already."""
    with transaction.atomic():
        User.objects.select_for_update(of=("self",)).get(pk=person.pk)
        silent = Silence.objects.filter(person=person)
        if silent.exists() is not wanted:
            return False
        if wanted:
            silent.delete()
        else:
            Silence.objects.create(person=person)
        keys = (KeyChange("mail", "off" if wanted else "on", "on" if wanted else "off"),)
        Change("notices for", person.get_username(), False, keys).record(actor)
    return True


def retire_secrets() -> None:
    """Old secrets whose day is over are destroyed."""
    over = Channel.objects.filter(old_secret_until__lte=clock())
    for channel in over.select_related("group")[:100]:
        with transaction.atomic():
            again = Channel.objects.select_for_update().get(pk=channel.pk)
            if again.old_secret_until is not None and again.old_secret_until <= clock():
                changes: dict[str, Any] = {"old_secret": None, "old_secret_until": None}
                Channel.objects.filter(pk=again.pk).update(**changes)
                _record(channel.group, [KeyChange("old secret", words="destroyed")], CLOCK)


def _set(channel: Channel, on: bool, now: datetime) -> None:
    """Saved; what waited for it is not told later."""
    if channel.pk:
        _cancel_waiting(channel, now)
    channel.lease = channel.not_before = channel.failing_since = None
    channel.on_since, channel.off_at = (now, None) if on else (None, now)
    channel.off_reason = "" if on else Receiver.Off.PERSON
    channel.save()
    if on:
        telling.begin()


def _cancel_waiting(channel: Channel, now: datetime) -> None:
    channel.notices.filter(status=Notice.Status.WAITING).update(
        status=Notice.Status.CANCELLED, next_attempt_at=None, closed_at=now
    )


def _channel(group: Group, kind: str) -> Channel | None:
    rows = Channel.objects.select_for_update(of=("self",)).select_related("group")
    return rows.filter(group=group, kind=kind).first()


def _locked(group: Group) -> None:
    """Two people at once would both make the same row."""
    Group.objects.select_for_update(of=("self",), no_key=True).get(pk=group.pk)


def _record(group: Group, keys: list[KeyChange], actor: Actor) -> None:
    if keys:
        Change(NOUN, group.name, False, tuple(keys)).record(actor)
