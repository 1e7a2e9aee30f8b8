"""FM-54 at every step of a delivery: raise, or kill the worker. Told at least once, never lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from audit import failpoints
from audit.failpoints import STEPS
from audit.models import Event
from plans import delivering, telling, webhooks
from plans.management.commands.sweep import Sweeper
from plans.models import Agent, Delivery, Plan, Webhook
from tests.plans.receiver import Receiver, happened, listening

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.fm(54)]
ROOT = Path(__file__).resolve().parents[2]
# Up to here no byte has left: the receiver hears of it once.
BEFORE = ("hook.told", "hook.claimed", "send.before")
# From here on it may hear of it twice, by the same webhook-id.
AFTER = ("send.after", "hook.answered", "hook.inside")
PATIENCE_SECONDS = 30


class InjectedError(Exception):
    """Raised at a step."""


@pytest.fixture(autouse=True)
def _short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 1.0)
    monkeypatch.setattr(delivering, "LEASE_SLACK", timedelta(seconds=0.5))
    monkeypatch.setattr(delivering, "SCHEDULE", (0, *[0.5] * 9))


def test_the_steps_are_steps() -> None:
    assert {*BEFORE, *AFTER} <= set(STEPS)
    assert {step for step in STEPS if step.startswith("hook.")} <= {*BEFORE, *AFTER}


def sweep_until_told(webhook: Webhook) -> Delivery:
    """What any sweeper does, until the one delivery there is has come to its end."""
    sweeper, ends = Sweeper(2), time.monotonic() + PATIENCE_SECONDS
    while not webhook.deliveries.filter(status="delivered").exists():
        assert time.monotonic() < ends
        sweeper.look()
        time.sleep(0.1)
    sweeper.finish()
    return webhook.deliveries.get()


def assert_told(receiver: Receiver, delivery: Delivery, step: str) -> None:
    """At least once; again only where nobody could know; always the same message."""
    messages = receiver.messages
    assert {(m.id, m.body) for m in messages} == {(delivery.message_id, messages[0].body)}
    assert len(messages) == (2 if step in AFTER else 1)
    assert delivery.attempts.filter(outcome="delivered").count() == 1
    assert not delivery.attempts.filter(outcome="open").exists()


def kill_at(step: str) -> None:
    database = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}"
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database.format(**connection.settings_dict),
        "SECRET_KEY": settings.SECRET_KEY,
        "COUNTERSIGN_KEYS": ",".join(settings.ENCRYPTION_KEYS),
        "BASE_URL": settings.BASE_URL,
    }
    command = [sys.executable, "-m", "tests.plans.dying_worker", step]
    died = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()[-2000:]


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_a_worker_that_is_killed_loses_nothing(
    step: str, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan("committed")
    with listening(support_agent) as (receiver, webhook, secret):
        happened(plan)
        kill_at(step)
        delivery = sweep_until_told(webhook)
        assert_told(receiver, delivery, step)
        assert receiver.messages[-1].verified_by(secret)
    assert_unaffected(plan)


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_an_exception_loses_nothing(
    step: str,
    support_agent: Agent,
    make_plan: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met: list[str] = []

    def act(name: str, key: object) -> None:
        if name == step and not met:
            met.append(name)
            raise InjectedError

    monkeypatch.setattr(failpoints, "_act", act)
    plan = make_plan("committed")
    with listening(support_agent) as (receiver, webhook, _):
        happened(plan)
        delivery = sweep_until_told(webhook)
        assert_told(receiver, delivery, step)
    assert met == [step]
    assert_unaffected(plan)


def assert_unaffected(plan: Plan) -> None:
    """Whatever becomes of a delivery, the plan and its trail are as they were."""
    before = plan.status, plan.status_at, plan.closed_at
    plan.refresh_from_db()
    assert (plan.status, plan.status_at, plan.closed_at) == before
    assert Event.objects.filter(plan_id=plan.plan_id).count() == 1


def test_a_worker_that_is_stopped_past_its_lease_is_overtaken(
    support_agent: Agent,
    make_plan: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It wakes and sends as well: the same webhook-id makes that harmless (FM-56)."""
    claimed, overtaken = threading.Event(), threading.Event()

    def act(name: str, key: object) -> None:
        if name == "hook.claimed" and not claimed.is_set():
            claimed.set()
            overtaken.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(failpoints, "_act", act)
    with listening(support_agent) as (receiver, webhook, _):
        happened(make_plan("committed"))
        telling.tell_all()
        stopped = threading.Thread(target=_deliver, args=(webhook.pk,))
        stopped.start()
        claimed.wait(PATIENCE_SECONDS)
        delivery = sweep_until_told(webhook)
        overtaken.set()
        stopped.join()
        assert [message.id for message in receiver.messages] == [delivery.message_id] * 2
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts_made) == ("delivered", 2)


def _deliver(pk: int) -> None:
    try:
        webhooks.deliver(pk)
    finally:
        connection.close()
