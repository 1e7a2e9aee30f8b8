"""One delivery: signed as Standard Webhooks has it, repeated on its schedule, ended truthfully."""

from __future__ import annotations

from datetime import timedelta

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from audit.models import Event
from plans import delivering, webhooks
from plans.clock import clock
from plans.custody import Secret
from plans.delivering import SCHEDULE
from plans.models import Agent, Delivery, DeliveryAttempt
from plans.webhooks import due
from tests.plans.receiver import (
    SECOND,
    Line,
    happened,
    listening,
    make_due,
    queued,
    status,
    wait_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]


def test_the_reference_library_verifies_it(line: Line) -> None:
    assert (line.deliver(), line.fresh()[1].status) == (1, "delivered")
    (message,) = line.receiver.messages
    assert message.line == "POST /hooks/countersign?of=support HTTP/1.1"
    assert message.verified_by(line.secret) == message.content
    assert message.headers["content-type"] == "application/json"
    assert message.headers["authorization"] is None
    with pytest.raises(WebhookVerificationError):
        message.verified_by(Secret("whsec_" + "A" * 43 + "="))


def test_it_is_thin(line: Line) -> None:
    """Type, ids, status and an address: no inputs, no values, never a token."""
    line.deliver()
    plan, event = line.plan, Event.objects.get(action="plan.committed")
    assert line.receiver.messages[0].content == {
        "type": "plan.committed",
        "timestamp": event.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": {
            "event_id": event.pk,
            "agent": "support-agent",
            "target": "billing",
            "plan_id": plan.plan_id,
            "intent_id": str(plan.intent_id),
            "task_id": "t-1",
            "status": "committed",
            "url": f"http://127.0.0.1:8000/api/v1/plans/billing/{plan.plan_id}",
        },
    }


def test_a_repeat_has_the_same_id_and_body_and_its_own_time(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.receiver.answers(status(503), status(200))
    line.deliver()
    make_due(line.delivery)
    later = clock() + timedelta(seconds=90)
    monkeypatch.setattr(delivering, "clock", lambda: later)
    line.deliver()
    first, second = line.receiver.messages
    assert (first.id, first.body) == (second.id, second.body)
    assert first.id == line.delivery.message_id
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert second.verified_by(line.secret)
    assert line.log() == [("refused", 503), ("delivered", 200)]


def test_it_follows_the_schedule_and_then_is_switched_off(line: Line) -> None:
    """0 s, 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, then disabled and told (W-1)."""
    line.receiver.answers(status(500))
    for seconds in SCHEDULE[1:]:
        assert line.deliver() == 0
        assert wait_of(line.delivery) == pytest.approx(timedelta(seconds=seconds), abs=SECOND)
        assert list(due()) == []
        make_due(line.delivery)
        assert list(due()) == [line.webhook.pk]
    line.deliver()
    webhook, delivery = line.fresh()
    assert (delivery.status, delivery.next_attempt_at, delivery.tries) == ("given_up", None, 10)
    assert (webhook.on_since, webhook.off_reason) == (None, "exhausted")
    event = Event.objects.get(action="webhook.switched_off")
    assert (event.actor_kind, event.agent) == ("system", "support-agent")
    assert event.details["message"] == delivery.message_id
    assert len(line.receiver.messages) == 10
    assert (line.deliver(), list(due())) == (0, [])


def test_gone_switches_it_off_at_once(line: Line) -> None:
    others = [queued(line.webhook, happened(line.plan)) for _ in range(2)]
    line.receiver.answers(status(410))
    line.deliver()
    webhook, delivery = line.fresh()
    assert (webhook.off_reason, delivery.status) == ("gone", "given_up")
    statuses = Delivery.objects.filter(pk__in=[other.pk for other in others])
    assert set(statuses.values_list("status", flat=True)) == {"cancelled"}
    assert len(line.receiver.messages) == 1
    assert Event.objects.get(action="webhook.switched_off").details["off"] == "gone"


def test_one_that_works_again_is_well_again(line: Line) -> None:
    line.receiver.answers(status(500), status(200))
    line.deliver()
    assert line.fresh()[0].failing_since is not None
    make_due(line.delivery)
    line.deliver()
    webhook, delivery = line.fresh()
    assert (webhook.failing_since, webhook.lease, webhook.not_before) == (None, None, None)
    assert (delivery.status, delivery.tries) == ("delivered", 2)


def test_what_waits_goes_in_its_order_until_one_fails(line: Line) -> None:
    plan = line.plan
    more = [queued(line.webhook, happened(plan)) for _ in range(3)]
    line.receiver.answers(status(200), status(200), status(500), status(200))
    assert line.deliver() == 2
    assert [m.id for m in line.receiver.messages] == [
        each.message_id for each in [line.delivery, *more[:2]]
    ]
    assert line.deliver() == 1
    assert [d.status for d in Delivery.objects.order_by("pk")] == [
        "delivered", "delivered", "waiting", "delivered"
    ]  # fmt: skip


def test_those_that_are_well_come_first(line: Line, support_agent: Agent) -> None:
    line.receiver.answers(status(500), status(200))
    line.deliver()
    make_due(line.delivery)
    with listening(support_agent) as (_, well, _secret):
        queued(well, happened(line.plan))
        assert list(due()) == [well.pk, line.webhook.pk]


def test_a_late_success_counts_and_a_late_failure_does_not(line: Line) -> None:
    """An attempt whose lease lapsed comes back after another one has taken over."""
    slow = webhooks.LINE.claim(line.webhook.pk)
    assert slow is not None
    assert (webhooks.LINE.claim(line.webhook.pk), list(due())) == (None, [])
    make_due(line.delivery)
    second = webhooks.LINE.claim(line.webhook.pk)
    assert second is not None
    assert line.log() == [("lost", None), ("open", None)]
    before = line.fresh()[1].next_attempt_at
    webhooks.LINE.write_down(slow, delivering.Verdict(DeliveryAttempt.Outcome.REFUSED, 500))
    assert line.fresh()[1].next_attempt_at == before
    webhooks.LINE.write_down(slow, delivering.Verdict(DeliveryAttempt.Outcome.DELIVERED, 200))
    webhook, delivery = line.fresh()
    assert (delivery.status, webhook.lease) == ("delivered", second.lease)
    webhooks.LINE.write_down(second, delivering.Verdict(DeliveryAttempt.Outcome.REFUSED, 500))
    webhook, delivery = line.fresh()
    assert (delivery.status, webhook.lease) == ("delivered", None)


def test_ten_lost_workers_are_enough(line: Line) -> None:
    """Their tries keep to the schedule, too: it is not given up within minutes."""
    for seconds in (*SCHEDULE[1:], 0):
        assert webhooks.LINE.claim(line.webhook.pk) is not None
        lease = timedelta(seconds=webhooks.TOTAL_SECONDS) + delivering.LEASE_SLACK
        wait = max(timedelta(seconds=seconds), lease)
        assert wait_of(line.delivery) == pytest.approx(wait, abs=SECOND)
        make_due(line.delivery)
    assert line.deliver() == 0
    webhook, delivery = line.fresh()
    assert (delivery.status, webhook.off_reason) == ("given_up", "exhausted")
    assert set(line.log()) == {("lost", None)}
