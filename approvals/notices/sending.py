"""Sending notices: the claims, leases and schedule of webhooks, in a lane of their own (W-1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db.models import QuerySet

from approvals.notices import channels, letters, telling
from approvals.notices.rows import Channel, Notice, NoticeAttempt
from approvals.notices.smtp import TOTAL_SECONDS
from approvals.notices.words import slack, words
from plans import custody, webhook_messages, webhooks
from plans.clock import clock
from plans.delivering import Claim, Line, Outcome, Verdict, judge
from plans.models.messages import Receiver
from plans.status import Status

# After these somebody may have read that people are needed, and should hear how it ended.
_MAYBE_TOLD: Final = (Outcome.DELIVERED, Outcome.NO_ANSWER, Outcome.LOST)


class Notices(Line[Channel, Notice]):
    """Mail and webhooks of groups; a channel that hangs holds itself up, and nothing else."""

    receivers = Channel
    messages = Notice
    key = "channel"
    related = (
        "channel",
        "person",
        "plan__target",
        "plan__operation",
        "plan__agent__owner",
        "plan__intent",
    )

    @property
    def seconds(self) -> float:
        return TOTAL_SECONDS

    def send(self, claim: Claim[Channel, Notice]) -> Verdict:
        if claim.receiver.kind == Channel.Kind.MAIL:
            return letters.send(claim.message, claim.at)
        return _post(claim)

    def unneeded(self, message: Notice) -> bool:
        """Nobody is needed any more, or heard that they were, or this person is not to be told."""
        plan = message.plan
        match message.moment:
            case Notice.Moment.WAITS:
                late = plan.status != Status.PENDING or plan.decide_by <= clock()
            case Notice.Moment.UNRESOLVED:
                late = plan.status != Status.UNRESOLVED
            case _:
                late = not _maybe_told(message)
        return late or not _still_wanted(message)

    def give_up(self, receiver: Channel, message: Notice, why: Receiver.Off, now: datetime) -> None:
        channels.stop(receiver, why, now)

    def _exhaust(self, receiver: Channel, message: Notice, now: datetime) -> None:
        """A letter that three days did not deliver says nothing against the mail of a group."""
        if receiver.kind == Channel.Kind.MAIL:
            self._finish(message, Notice.Status.GIVEN_UP, now)
            self._free(receiver)
        else:
            super()._exhaust(receiver, message, now)


LINE: Final = Notices()


def due() -> QuerySet[Channel, int]:
    """Channels that have something to send now."""
    return LINE.due()


def send_notices(pk: int) -> int:
    """Send what is due to one channel; how many were delivered."""
    return LINE.deliver(pk)


def tell_people(most: int) -> None:
    """Make what happened into notices, and forget what is long over."""
    telling.tell_all(most)
    channels.retire_secrets()
    telling.prune()


def _post(claim: Claim[Channel, Notice]) -> Verdict:
    channel, at = claim.receiver, claim.at
    assert channel.address is not None
    body = json.dumps(slack(words(claim.message, at)), ensure_ascii=False).encode()
    headers = webhook_messages.headers(claim.message.message_id, at, body, _keys(channel, at))
    url = custody.decrypt(channel.address).decode()
    return judge(webhooks.post(url, body, headers, internal=channel.internal), at)


def _keys(channel: Channel, now: datetime) -> Iterator[custody.Secret]:
    """The secret, and for a day after a rotation the one before it."""
    assert channel.secret is not None
    yield custody.Secret(custody.decrypt(channel.secret).decode())
    until = channel.old_secret_until
    if channel.old_secret is not None and until is not None and until > now:
        yield custody.Secret(custody.decrypt(channel.old_secret).decode())


def _still_wanted(notice: Notice) -> bool:
    """Of this moment: a person who left, has no address any more, or wants none gets no mail."""
    person = notice.person
    if person is None:
        return True
    if not settings.SMTP_HOST:
        return False
    stays = person.groups.filter(reviewed_targets=notice.plan.target_id).exists()
    return bool(person.is_active and person.email and stays and not hasattr(person, "silence"))


def _maybe_told(notice: Notice) -> bool:
    """A person is the same one in every group; of a group each channel is told by itself."""
    earlier = NoticeAttempt.objects.filter(
        notice__plan=notice.plan_id, notice__person=notice.person_id, outcome__in=_MAYBE_TOLD
    ).exclude(notice__moment=Notice.Moment.OVER)
    if notice.person_id is None:
        earlier = earlier.filter(notice__channel=notice.channel_id)
    return earlier.exists()
