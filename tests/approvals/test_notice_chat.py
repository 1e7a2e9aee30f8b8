"""One notice at the webhook of a group: what each answer makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from standardwebhooks.webhooks import WebhookVerificationError

from approvals.models import Channel, Notice
from approvals.notices import channels, sending
from audit import actors
from audit.models import Event
from audit.sentences import sentence
from plans import custody
from plans.clock import clock
from tests.approvals.paper_plans import MakePlan
from tests.approvals.queued_notices import queued
from tests.plans.receiver import Receiver, status

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)

type Chat = tuple[Receiver, Channel, custody.Secret]


@pytest.fixture(autouse=True)
def _in_the_tests_transaction(settings: Any) -> None:
    settings.GATEWAY_ALLOW_IN_TRANSACTION = True


@pytest.fixture
def chat(billing: Any) -> Iterator[tuple[Receiver, Channel, custody.Secret]]:
    with Receiver() as receiver:
        made, secret = channels.name_webhook(
            Group.objects.get(name="reviewers"), receiver.url, internal=True, actor=actors.OPERATOR
        )
        yield receiver, made, secret


def test_a_chat_is_told_and_can_check_who_tells(chat: Chat, make_plan: MakePlan) -> None:
    receiver, channel, secret = chat
    row = queued(channel, make_plan())
    assert sending.send_notices(channel.pk) == 1
    (message,) = receiver.messages
    assert message.line == "POST /hooks/countersign?of=support HTTP/1.1"
    assert message.verified_by(secret) == message.content
    assert message.id == row.message_id
    assert message.content["text"].startswith("A plan waits for a decision; Refund 480.00 USD")
    assert set(message.content) == {"text", "mrkdwn", "unfurl_links", "blocks"}
    with pytest.raises(WebhookVerificationError):
        message.verified_by(custody.Secret("whsec_" + "A" * 43 + "="))
    assert "token-of-the-tests" not in str(message.body)


def test_both_secrets_sign_for_a_day(chat: Chat, make_plan: MakePlan) -> None:
    receiver, channel, secret = chat
    _, new = channels.rotate(channel.group, channel.secret_number, actor=actors.OPERATOR)
    queued(channel, make_plan())
    sending.send_notices(channel.pk)
    (message,) = receiver.messages
    assert message.verified_by(secret) == message.verified_by(new)
    Channel.objects.update(old_secret_until=clock())
    channels.retire_secrets()
    assert Channel.objects.get().old_secret is None
    queued(channel, make_plan())
    sending.send_notices(channel.pk)
    with pytest.raises(WebhookVerificationError):
        receiver.messages[-1].verified_by(secret)


def test_a_chat_that_is_gone_is_switched_off_and_told_in_the_trail(
    chat: Chat, make_plan: MakePlan
) -> None:
    receiver, channel, _ = chat
    receiver.answers(status(410))
    others = [queued(channel, make_plan()) for _ in range(2)]
    sending.send_notices(channel.pk)
    channel.refresh_from_db()
    assert (channel.on_since, channel.off_reason) == (None, "gone")
    event = Event.objects.get(action="notices.switched_off")
    assert str(sentence(event)).startswith("The notices of reviewers to http://127.0.0.1:")
    assert "hooks" not in str(event.details)
    states = Notice.objects.filter(pk__in=[row.pk for row in others])
    assert sorted(states.values_list("status", flat=True)) == ["cancelled", "given_up"]


def test_an_address_is_checked_again_at_the_send(chat: Chat, make_plan: MakePlan) -> None:
    receiver, channel, _ = chat
    Channel.objects.update(internal=False)
    row = queued(channel, make_plan())
    sending.send_notices(channel.pk)
    assert row.attempts.get().outcome == "not_sent"
    assert row.attempts.get().fault.startswith("address-blocked: ")
    assert receiver.connections == 0


@pytest.mark.parametrize("code", [301, 307, 400, 404, 429, 500, 503])
def test_what_is_not_delivered_waits_for_the_schedule(
    chat: Chat, make_plan: MakePlan, code: int
) -> None:
    receiver, channel, _ = chat
    receiver.answers(status(code, "Location: http://127.0.0.1:1/"))
    row = queued(channel, make_plan())
    sending.send_notices(channel.pk)
    row.refresh_from_db()
    assert (row.status, row.tries) == ("waiting", 1)
    assert row.next_attempt_at is not None
    assert row.next_attempt_at - clock() == pytest.approx(timedelta(seconds=5), abs=SECOND)
