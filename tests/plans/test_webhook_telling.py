"""Events become deliveries: each once for each webhook of its agent, late commits included."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from approvals.decisions import Ballot, decide
from audit import actors
from audit.actions import Action
from audit.models import Era, Event
from audit.recording import record
from plans import receivers, telling, webhooks
from plans.clock import clock
from plans.management.commands.sweep import Sweeper
from plans.models import Agent, Delivery, Plan, ToldUpTo, Webhook
from plans.models import DeliveryAttempt as Attempts
from plans.status import Status
from plans.sweeper import EVERY_SECOND, due_work, tell
from tests.plans.receiver import happened, listening, queued
from tests.plans.story import at_once, pending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]
URL = "http://127.0.0.1:1/"


def hook(agent: Agent, url: str = URL) -> Webhook:
    return receivers.add(agent, url, internal=True, actor=actors.OPERATOR)[0]


@pytest.fixture
def webhook(support_agent: Agent) -> Webhook:
    return hook(support_agent)


def types(webhook: Webhook) -> list[str]:
    rows = webhook.deliveries.order_by("pk")
    return list(rows.values_list("event__action", flat=True))


def test_what_the_feed_tells_is_told(webhook: Webhook, ada: User, support_agent: Agent) -> None:
    plan = pending(support_agent)
    decide(ada, plan.pk, Ballot("approve", "", plan.digest))
    assert telling.tell_all() == {webhook.pk}
    assert types(webhook) == ["plan.submitted", "plan.verified", "plan.approved"]
    assert telling.tell_all() == set()
    assert Delivery.objects.count() == 3
    assert {delivery.status for delivery in webhook.deliveries.all()} == {"waiting"}


def test_only_its_own_agent_is_told(
    webhook: Webhook, otto: User, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    stranger = hook(Agent.objects.create(name="stranger", owner=otto))
    second = hook(support_agent, f"{URL}second")
    happened(make_plan())
    assert telling.tell_all() == {webhook.pk, second.pk}
    assert (types(stranger), types(second)) == ([], ["plan.committed"])


def test_nothing_that_was_before_is_told(
    support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    """What was missed is in the feed: a webhook is a hint on top of it (A-14)."""
    plan = make_plan()
    happened(plan)
    telling.tell_all()
    assert not ToldUpTo.objects.exists()
    webhook = hook(support_agent)
    telling.tell_all()
    receivers.switch_off(webhook.pk, actor=actors.OPERATOR)
    happened(plan)
    telling.tell_all()
    receivers.switch_on(webhook.pk, actor=actors.OPERATOR)
    happened(plan, Action.PLAN_FAILED, "failed")
    telling.tell_all()
    assert types(webhook) == ["plan.failed"]


def test_an_agent_that_is_switched_off_is_told_nothing(
    webhook: Webhook, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    Agent.objects.update(active=False)
    happened(make_plan())
    assert telling.tell_all() == set()


def test_a_transaction_that_commits_late_is_not_missed(
    webhook: Webhook, make_plan: Callable[..., Plan]
) -> None:
    """Its number is smaller than one that is there already: both wait for it."""
    plan = make_plan()
    written, go = threading.Event(), threading.Event()

    def late() -> None:
        with transaction.atomic():
            record(Action.PLAN_APPROVED, actors.CLOCK, plan.subject(), to_status="approved")
            written.set()
            go.wait(10)

    def early() -> set[int]:
        written.wait(10)
        happened(plan)
        told = telling.tell_all()
        go.set()
        return told

    assert at_once([late, early]) == [None, set()]
    telling.tell_all()
    assert types(webhook) == ["plan.approved", "plan.committed"]


def test_eight_sweepers_tell_once(webhook: Webhook, make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    for _ in range(30):
        happened(plan)
    assert not [r for r in at_once([partial(telling.tell_page, 7)] * 8) if isinstance(r, Exception)]
    while telling.tell_page(7)[0]:
        pass
    told = list(webhook.deliveries.order_by("pk").values_list("event_id", flat=True))
    assert told == list(Event.objects.filter(agent="support-agent", to_status="committed")
                        .order_by("id").values_list("id", flat=True))  # fmt: skip
    assert len(told) == 30


def test_after_a_restore_a_new_era_is_told(
    webhook: Webhook, make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan()
    happened(plan)
    telling.tell_all()
    Era.objects.create(number=2, reason="restored")
    columns = {"agent": "support-agent", "to_status": "failed", "era": 2, "xid": 3}
    actor = dict.fromkeys(("actor_kind", "actor_id", "actor_label"), "system")
    Event.objects.bulk_create([Event(action="plan.failed", **actor, **columns)])
    telling.tell_all()
    assert types(webhook) == ["plan.committed", "plan.failed"]


def test_the_log_is_forgotten_after_a_month(
    webhook: Webhook, make_plan: Callable[..., Plan]
) -> None:
    old, young, waiting = (queued(webhook, happened(make_plan())) for _ in range(3))
    for delivery, days in ((old, 31), (young, 29)):
        Delivery.objects.filter(pk=delivery.pk).update(
            status="delivered", next_attempt_at=None, closed_at=clock() - timedelta(days=days)
        )
    old.attempts.create(number=1)
    telling.prune()
    assert set(Delivery.objects.values_list("pk", flat=True)) == {young.pk, waiting.pk}


def test_the_sweep_tells_and_delivers(support_agent: Agent, make_plan: Callable[..., Plan]) -> None:
    with listening(support_agent) as (receiver, webhook, secret):
        happened(make_plan())
        assert tell in {work.act for work in EVERY_SECOND}
        sweeper = Sweeper(2)
        while not receiver.messages:
            sweeper.look()
        sweeper.finish()
        assert receiver.messages[0].verified_by(secret)["type"] == "plan.committed"
        assert webhook.deliveries.get().status == "delivered"


@pytest.mark.fm(54)
def test_a_receiver_that_is_down_changes_no_plan(
    ada: User, support_agent: Agent, approved: Callable[..., Plan], target: Any
) -> None:
    """FM-54: the plan is committed as ever, the delivery waits and comes."""
    webhook = hook(support_agent)
    plan = approved()
    sweeper = Sweeper(2)
    while Plan.objects.get(pk=plan.pk).status != Status.COMMITTED or not _tried(webhook):
        sweeper.look()
    sweeper.finish()
    assert len(target.commits) == 1
    failed = webhook.deliveries.filter(tries=1)
    assert {delivery.status for delivery in failed} == {"waiting"}
    webhook.refresh_from_db()
    assert webhook.failing_since is not None
    assert not Event.objects.filter(action__startswith="webhook.switched").exists()


def _tried(webhook: Webhook) -> bool:
    return webhook.deliveries.filter(tries=1, event__to_status="committed").exists()


@pytest.mark.fm(54)
def test_receivers_that_hang_hold_up_no_commit_and_not_each_other(
    support_agent: Agent,
    approved: Callable[..., Plan],
    make_plan: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FM-54: they fill their own lane, and the one that is well has its turn."""
    monkeypatch.setattr(webhooks, "READ_SECONDS", 3.0)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(listening(support_agent, "hang"))
        receiver, _, secret = stack.enter_context(listening(support_agent))
        happened(make_plan())
        sweeper, ends = Sweeper(2), time.monotonic() + 20
        while Attempts.objects.filter(outcome="open").count() != 2:
            assert time.monotonic() < ends
            sweeper.look()
        plan = approved()
        while Plan.objects.get(pk=plan.pk).status != Status.COMMITTED:
            sweeper.look()
        # Both still hang: the commit waited for neither.
        assert Attempts.objects.filter(outcome="open").count() == 2
        while not receiver.messages:
            assert time.monotonic() < ends
            sweeper.look()
        sweeper.finish()
        assert receiver.messages[0].verified_by(secret)


def test_without_a_webhook_nothing_is_done(
    make_plan: Callable[..., Plan], django_assert_num_queries: Callable[..., Any]
) -> None:
    happened(make_plan())
    with django_assert_num_queries(3):
        assert telling.tell_all() == set()
    assert not [work for work in due_work() if work.key[0] == "deliver"]
