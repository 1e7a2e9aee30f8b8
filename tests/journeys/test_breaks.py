"""What breaks while plans are under way: the broker, the sweeper, a worker; nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.journeys.people import Agent, Billing, Person, Plan, actions, is_, the
from tests.journeys.product import SHORT, Product, eventually
from tests.journeys.wire import Wire, all_alike


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """This process stands still until the block ends."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def interrupted(
    product: Product, agent: Agent, ada: Person, billing: Billing, wire: Wire
) -> tuple[Plan, int]:
    """A plan whose worker was killed while the target worked on it, and that worker."""
    plan = agent.pending(billing.new_invoice())
    worker = product.pid("worker-commit")
    with stopped(product.pid("sweeper")):
        billing.arm("apply_then_timeout", seconds=20)
        ada.approve_now(plan)
        assert eventually(lambda: bool(wire.commits(plan["commit"]["idempotency_key"])))
        os.kill(worker, signal.SIGKILL)
    return plan, worker


def test_a_killed_worker_comes_back_and_meanwhile_others_are_committed(
    product: Product, agent: Agent, ada: Person, billing: Billing, interrupted: tuple[Plan, int]
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice)
    ada.approve_now(plan)
    agent.wait(plan, is_("committed"))
    assert len(billing.effects(invoice)) == 1
    _, killed = interrupted
    assert eventually(lambda: product.pid("worker-commit") not in (0, killed))
    assert "worker-commit ended with -9" in product.said


def test_with_the_sweeper_stopped_workers_commit_and_an_expired_plan_is_still_refused(
    product: Product, agent: Agent, ada: Person, mona: Person, billing: Billing
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice, lives=SHORT)
    form = ada.form(plan)
    with stopped(product.pid("sweeper")):
        another = agent.pending(billing.new_invoice())
        ada.approve_now(another)
        agent.wait(another, is_("committed"))
        assert eventually(lambda: agent.read(plan)["decide_in_ms"] == 0)
        assert agent.read(plan)["status"] == "pending"
        refused = ada.decide(plan, form=form)
        assert refused.status_code == httpx.codes.GONE
        assert agent.read(plan)["status"] == "expired"
    trail = mona.trail(plan=plan["plan_id"])
    refusal = the("decision.refused", trail)
    assert (refusal["actor"], refusal["details"]["code"]) == ("ada", "plan-expired")
    assert "decision.recorded" not in actions(trail)
    assert billing.effects(invoice) == []
    agent.end(agent.successor(plan))


@pytest.mark.fm(23)
def test_what_a_killed_worker_had_sent_is_found_out_and_counted_once(
    agent: Agent, billing: Billing, wire: Wire, interrupted: tuple[Plan, int]
) -> None:
    plan, _ = interrupted
    done = agent.wait(plan, is_("committed"))
    key = done["commit"]["idempotency_key"]
    assert all_alike(wire.commits(key))
    invoice = plan["actions"][0]["target"].removeprefix("invoice/")
    (effect,) = billing.effects(invoice)
    assert effect["idempotency_key"] == key
    assert done["commit"]["result"]["refund_id"] == effect["refund_id"]
    told = agent.events(plan)
    assert "unknown" in told
    assert told.count("committed") == 1


@pytest.mark.fm(28)
def test_with_redis_dead_an_approval_is_quick_and_committed_within_ten_seconds(
    product: Product, agent: Agent, ada: Person, billing: Billing, wire: Wire
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice)
    form = ada.form(plan)
    key = plan["commit"]["idempotency_key"]
    product.manage("embedded", "stop", "valkey")
    try:
        clicked = time.monotonic()
        answer = ada.decide(plan, form=form)
        answered = time.monotonic() - clicked
        assert answer.status_code == httpx.codes.SEE_OTHER
        assert answered < 2
        assert eventually(lambda: bool(wire.commits(key)))
        assert time.monotonic() - clicked < 10
        agent.wait(plan, is_("committed"))
        (effect,) = billing.effects(invoice)
        assert effect["idempotency_key"] == key
        # And plans still come in, are read back, and can be seen.
        agent.end(agent.pending(billing.new_invoice()))
    finally:
        product.manage("embedded", "start", "valkey")
