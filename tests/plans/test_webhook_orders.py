"""What is ordered for a webhook: new secrets, off and on, and a delivery once more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from audit import actors
from audit.models import Event
from plans import receivers, webhooks
from plans.clock import clock
from plans.models import Webhook
from plans.webhooks import due
from tests.plans.receiver import SECOND, Line, make_due, status, wait_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]


def test_no_log_tells_the_secret_or_the_path(
    line: Line, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor does anything that is printed of a row, of a claim or of a call."""
    line.receiver.answers(status(500), status(410))
    line.deliver()
    make_due(line.delivery)
    claim = webhooks.LINE.claim(line.webhook.pk)
    assert claim is not None
    make_due(line.delivery)
    line.deliver()
    told = caplog.text + "".join(capfd.readouterr()) + repr([claim, line.webhook, line.delivery])
    assert "webhook.switched_off" in told
    for secret in (line.secret.reveal(), line.secret.reveal()[6:], "of=support"):
        assert secret not in told


def test_for_a_day_both_secrets_sign(line: Line) -> None:
    new = receivers.rotate(line.webhook.pk, 1, actor=actors.OPERATOR)
    line.deliver()
    (message,) = line.receiver.messages
    assert len(message.headers["webhook-signature"].split(" ")) == 2
    assert message.verified_by(line.secret) == message.verified_by(new)
    ends = Webhook.objects.get().old_secret_until
    assert ends is not None
    assert ends - clock() == pytest.approx(timedelta(hours=24), abs=SECOND)


def test_after_it_the_old_one_signs_nothing_and_is_destroyed(line: Line) -> None:
    new = receivers.rotate(line.webhook.pk, 1, actor=actors.OPERATOR)
    receivers.retire_secrets()
    assert Webhook.objects.get().old_secret is not None
    Webhook.objects.update(old_secret_until=clock())
    line.deliver()
    (message,) = line.receiver.messages
    assert message.verified_by(new)
    with pytest.raises(WebhookVerificationError):
        message.verified_by(line.secret)
    receivers.retire_secrets()
    webhook = Webhook.objects.get()
    assert (webhook.old_secret, webhook.old_secret_until) == (None, None)
    assert Event.objects.get(action="webhook.secret_retired").actor_id == "clock"
    receivers.retire_secrets()
    assert Event.objects.filter(action="webhook.secret_retired").count() == 1


def test_off_means_that_nothing_is_sent(line: Line) -> None:
    assert receivers.switch_off(line.webhook.pk, actor=actors.OPERATOR)
    assert not receivers.switch_off(line.webhook.pk, actor=actors.OPERATOR)
    assert (line.deliver(), list(due()), line.receiver.connections) == (0, [], 0)
    assert line.fresh()[1].status == "cancelled"
    assert receivers.switch_on(line.webhook.pk, actor=actors.OPERATOR)
    assert not receivers.switch_on(line.webhook.pk, actor=actors.OPERATOR)
    assert (line.deliver(), list(due())) == (0, [])
    assert Event.objects.filter(action__startswith="webhook.switched").count() == 2


@pytest.mark.parametrize("answered", [200, 500])
def test_sent_again_it_has_a_schedule_of_its_own(line: Line, answered: int) -> None:
    line.receiver.answers(status(answered))
    line.deliver()
    receivers.send_again(line.delivery.pk, actor=actors.OPERATOR)
    line.receiver.answers(status(500), status(200))
    line.deliver()
    assert wait_of(line.delivery) == pytest.approx(timedelta(seconds=5), abs=SECOND)
    make_due(line.delivery)
    assert line.deliver() == 1
    assert len({message.id for message in line.receiver.messages}) == 1
    assert [number for number, _ in enumerate(line.log(), 1)] == [1, 2, 3]
    event = Event.objects.get(action="webhook.sent_again")
    assert event.details["message"] == line.delivery.message_id
