"""One delivery: signed as Standard Webhooks has it, repeated on its schedule, ended truthfully."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from audit import actors
from audit.models import Event
from plans import delivering, receivers, webhooks
from plans.clock import clock
from plans.custody import Secret
from plans.delivering import SCHEDULE
from plans.models import Agent, Delivery, DeliveryAttempt, Plan, Webhook
from plans.webhooks import deliver, due
from tests.faults.raw_target import CHUNKED, Mode, chunk, dripped, head, refused_port, whole
from tests.plans.receiver import Receiver, happened, listening, make_due, queued, status, wait_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type MakePlan = Callable[..., Plan]


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


@pytest.fixture
def line(support_agent: Agent, make_plan: MakePlan) -> Iterator[Line]:
    with listening(support_agent) as (receiver, webhook, secret):
        yield Line(receiver, webhook, secret, make_plan("committed"))


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
        assert due() == []
        make_due(line.delivery)
        assert due() == [line.webhook.pk]
    line.deliver()
    webhook, delivery = line.fresh()
    assert (delivery.status, delivery.next_attempt_at, delivery.tries) == ("given_up", None, 10)
    assert (webhook.on_since, webhook.off_reason) == (None, "exhausted")
    event = Event.objects.get(action="webhook.switched_off")
    assert (event.actor_kind, event.agent) == ("system", "support-agent")
    assert event.details["message"] == delivery.message_id
    assert len(line.receiver.messages) == 10
    assert (line.deliver(), due()) == (0, [])


SECOND = timedelta(seconds=1)


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


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_every_complete_2xx_is_delivered(line: Line, code: int) -> None:
    line.receiver.answers(status(code) if code != 204 else Mode([head(status="204 No Content")]))
    assert line.deliver() == 1
    assert line.log() == [("delivered", code)]


@pytest.mark.parametrize("code", [300, 301, 302, 304, 307, 308, 400, 401, 404, 409, 429, 500, 503])
def test_nothing_else_is(line: Line, code: int) -> None:
    """No redirect is followed, to an internal host least of all (FM-21)."""
    inside = Receiver()
    with inside:
        line.receiver.answers(status(code, f"Location: {inside.url}"))
        assert line.deliver() == 0
        assert inside.connections == 0
    assert line.log() == [("refused", code)]
    assert line.fresh()[1].status == "waiting"


ASKED = {
    "60": 60,
    "9999999999": 300,
    "9" * 5000: 300,
    "2": 5,
    "-1": 5,
    "soon": 5,
    "Fri, 31 Dec 1999 23:59:59 GMT": 5,
    "Sat, 06 Nov 2094 08:49:37 GMT": 300,
}


@pytest.mark.parametrize("asked", ASKED)
def test_retry_after_bounds_below_and_is_capped(line: Line, asked: str) -> None:
    line.receiver.answers(status(429, f"Retry-After: {asked}"), status(200))
    line.deliver()
    wait = timedelta(seconds=ASKED[asked])
    assert wait_of(line.delivery) == pytest.approx(wait, abs=SECOND)


def test_a_receiver_that_asks_to_wait_gets_nothing_else_meanwhile(line: Line) -> None:
    line.receiver.answers(status(503, "Retry-After: 60"), status(200))
    other = queued(line.webhook, happened(line.plan))
    assert (line.deliver(), line.deliver(), due()) == (0, 0, [])
    make_due(other)
    assert line.deliver() == 1


BROKEN = {
    "hang": "timeout",
    "drip-body": "deadline",
    "drip-head": "deadline",
    "drip-hints": "deadline",
    "read-then-close": "closed",
    "read-then-reset": "reset",
    "cut-in-header": "truncated",
    "short-content-length": "truncated",
    "garbage": "malformed",
    "http-0.9": "truncated",
    "switching-101": "malformed",
    "two-lengths": "malformed",
    "big-header": "too-large",
    "big-with-length": "too-large",
    "big-length-only": "too-large",
    "big-chunked": "too-large",
    "big-without-length": "too-large",
}


@pytest.fixture
def _short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "READ_SECONDS", 0.3)
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.6)


@pytest.mark.usefixtures("_short_deadlines")
@pytest.mark.parametrize("mode", BROKEN)
def test_half_an_answer_is_none(line: Line, mode: str) -> None:
    line.receiver.play(mode)
    began = time.monotonic()
    assert line.deliver() == 0
    assert time.monotonic() - began < 2
    assert line.log() == [("no_answer", None)]
    assert line.fault().startswith(BROKEN[mode])
    assert wait_of(line.delivery) == pytest.approx(timedelta(seconds=5), abs=SECOND)


KIB_64 = b"x" * 65_536


@pytest.mark.parametrize(
    ("pieces", "delivered"),
    [
        ([whole("200 OK", KIB_64)], 1),
        ([whole("200 OK", KIB_64 + b"x")], 0),
        ([CHUNKED, chunk(KIB_64), b"0\r\n\r\n"], 1),
        ([CHUNKED, chunk(KIB_64), chunk(b"x"), b"0\r\n\r\n"], 0),
        ([head() + KIB_64], 1),
        ([head() + KIB_64 + b"x"], 0),
    ],
)
def test_64_kib_of_an_answer_are_read(line: Line, pieces: list[bytes], delivered: int) -> None:
    line.receiver.answers(Mode(pieces))
    assert line.deliver() == delivered
    assert ("larger than 64 KiB" in line.fault()) is not bool(delivered)


def test_nothing_of_an_answer_is_kept(line: Line) -> None:
    line.receiver.answers(status(418, "X-Inside: secret", body=b"secret"))
    line.deliver()
    attempt = line.delivery.attempts.get()
    assert "secret" not in " ".join(str(value) for value in vars(attempt).values())


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


def test_nobody_listens(line: Line) -> None:
    Webhook.objects.update(url=f"http://127.0.0.1:{refused_port()}/")
    assert line.deliver() == 0
    assert line.log() == [("not_sent", None)]
    assert line.fault() == "connect: Connection refused"


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
        assert due() == [well.pk, line.webhook.pk]


# ── rotation ─────────────────────────────────────────────────────────────────────────────────


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


# ── switched off, sent again ─────────────────────────────────────────────────────────────────


def test_off_means_that_nothing_is_sent(line: Line) -> None:
    assert receivers.switch_off(line.webhook.pk, actor=actors.OPERATOR)
    assert not receivers.switch_off(line.webhook.pk, actor=actors.OPERATOR)
    assert (line.deliver(), due(), line.receiver.connections) == (0, [], 0)
    assert line.fresh()[1].status == "cancelled"
    assert receivers.switch_on(line.webhook.pk, actor=actors.OPERATOR)
    assert not receivers.switch_on(line.webhook.pk, actor=actors.OPERATOR)
    assert (line.deliver(), due()) == (0, [])
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


def test_a_late_success_counts_and_a_late_failure_does_not(line: Line) -> None:
    """An attempt whose lease lapsed comes back after another one has taken over."""
    slow = webhooks.LINE.claim(line.webhook.pk)
    assert slow is not None
    assert (webhooks.LINE.claim(line.webhook.pk), due()) == (None, [])
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


def test_dripping_is_not_an_answer_however_it_begins(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FM-8: the deadline is a wall clock."""
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.4)
    line.receiver.answers(dripped(whole("200 OK", b"x" * 500)))
    assert line.deliver() == 0
    assert line.fault().startswith("deadline")
