"""Ten agents read along while their plans move and the web process is killed (A-14, R-1, R-2).

Each feed is compared with the trail: in order, none lost, none twice, and nobody else's.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final

import psycopg
import pytest

from demo.credentials import AGENT, Credentials
from plans.feed import TOLD
from tests.journeys.people import Billing, Person, Plan, is_
from tests.journeys.product import PATIENCE, Product, eventually
from tests.journeys.stubborn import LAST, Desk, Reader, Worker
from tests.journeys.wire import Wire

AGENTS: Final = 10
STORIES_EACH: Final = 3
# The web process is killed when the agents have been told so many events between them.
KILLED_AT: Final = (30, 80, 130)
NEW_AGENTS: Final = f"""
from django.contrib.auth.models import User
from audit import actors
from plans.configuration.api_keys import create_api_key
from plans.models import Agent
dana = User.objects.get(username="dana")
for number in range({AGENTS}):
    agent = Agent.objects.create(name=f"reader-{{number}}", owner=dana)
    print(create_api_key(agent, actors.OPERATOR).reveal())
"""
MEMBERS: Final = ("id", "type", "plan_id", "from", "to", "task_id")
TRAIL: Final = """
    SELECT agent, id, action, plan_id, from_status, to_status, task_id FROM audit_event
    WHERE agent LIKE 'reader-%%' AND (to_status <> '' OR action = ANY(%s)) ORDER BY era, xid, id
"""
type Story = Callable[[Worker, Desk, str], Plan]


def approved(agent: Worker, desk: Desk, invoice: str) -> Plan:
    plan = agent.pending(invoice)
    desk.decide(agent, plan, "approve")
    return agent.wait(plan, is_("committed"))


def written(agent: Worker, desk: Desk, invoice: str) -> Plan:
    """A-10, R-1: stale by a write, planned again by the server, then not wanted any more."""
    plan = agent.pending(invoice)
    agent.say(f"/tasks/{plan['task_id']}/writes", objects=[f"invoice/{invoice}"], tool="line")
    fresh = agent.successor(plan)
    return agent.say(f"/plans/billing/{fresh['plan_id']}/abandonment", reason="intent_changed")


def changed(agent: Worker, desk: Desk, invoice: str) -> Plan:
    """A-13: the reviewer wants less; the agent claims that and plans less."""
    plan = agent.pending(invoice)
    desk.decide(agent, plan, "request_changes")
    replan = agent.wait(plan, is_("changes_requested"))["replan"]
    work = agent.say("/replans/claim", replan_id=replan["id"])
    assert work["reason"] == "less"
    less = agent.submit(agent.dry_run(invoice, 20_000), replan_id=work["id"])
    plan = agent.wait(less, is_("pending"))
    desk.decide(agent, plan, "reject")
    return plan


def moved(agent: Worker, desk: Desk, invoice: str) -> Plan:
    """The target refuses what the world has overtaken; the server plans what is left."""
    plan = agent.pending(invoice)
    desk.billing.refund_elsewhere(invoice, 20_000)
    desk.decide(agent, plan, "approve")
    fresh = agent.successor(agent.wait(plan, is_("conflicted")))
    desk.decide(agent, fresh, "approve")
    return agent.wait(fresh, is_("committed"))


def lapsed(agent: Worker, desk: Desk, invoice: str) -> Plan:
    """Nobody decides in time; the fresh plan is left open for the end of the task."""
    draft = agent.dry_run(invoice, lives=9)
    return agent.successor(agent.submit(draft))


def asked(agent: Worker, desk: Desk, invoice: str) -> Plan:
    """A-12: the server makes the dry run, too. Asked twice when the answer was lost."""
    path = f"/intents/{agent.ask(invoice, 48_000)['intent_id']}"
    plan = agent.watch(path, lambda now: bool(now["plan"]))[-1]["plan"]
    plan = agent.wait(plan, is_("pending"))
    desk.decide(agent, plan, "approve")
    return agent.wait(plan, is_("committed"))


STORIES: Final[tuple[Story, ...]] = (approved, written, changed, moved, lapsed, asked)


@pytest.fixture
def credentials(product: Product, wire: Wire) -> list[Credentials]:
    """Those of ten agents more."""
    printed = product.manage("shell", "-v", "0", "-c", NEW_AGENTS)
    keys = [line for line in printed.split() if line.startswith("cs_")]
    assert len(keys) == AGENTS
    known = product.credentials
    return [replace(known, raw=known.raw | {"agents": {AGENT: {"api_key": k}}}) for k in keys]


@pytest.fixture
def workers(credentials: list[Credentials]) -> Iterator[list[Worker]]:
    workers = [Worker(each) for each in credentials]
    yield workers
    for worker in workers:
        worker.close()


@pytest.fixture
def readers(credentials: list[Credentials]) -> Iterator[list[Reader]]:
    readers = [Reader(each) for each in credentials]
    for reader in readers:
        reader.start()
    yield readers
    for reader in readers:
        reader.app.close()


def live(number: int, agent: Worker, desk: Desk) -> None:
    """Three stories, from another one on than the agent beside; every task comes to an end."""
    for turn in range(STORIES_EACH):
        invoice = desk.billing.new_invoice()
        story = STORIES[(number + turn) % len(STORIES)]
        agent.end(story(agent, desk, invoice))
    agent.say(f"/tasks/{LAST}/end")


def kill_web(product: Product) -> None:
    """From one moment to the next; the supervisor starts it again, on the same port."""
    old = product.pid("web")
    os.kill(old, signal.SIGKILL)
    assert eventually(lambda: product.pid("web") not in (0, old))


def told_so_far(readers: list[Reader], events: int) -> bool:
    return sum(len(reader.told) for reader in readers) >= events


def told_or_over(readers: list[Reader], events: int, lives: list[Future[None]]) -> bool:
    """Whether so much was told; a life that failed fails the test at once."""
    for life in lives:
        if life.done():
            life.result()
    return told_so_far(readers, events)


def trail(product: Product) -> dict[str, list[dict[str, Any]]]:
    """What each agent had to be told, up to its last word."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with psycopg.connect(product.credentials.database_url) as database:
        for agent, *event in database.execute(TRAIL, [list(TOLD)]):
            so_far = found[agent]
            if not so_far or so_far[-1]["task_id"] != LAST:
                so_far.append(dict(zip(MEMBERS, event, strict=True)))
    return found


def as_in_the_trail(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] or "" for name in MEMBERS}


def follow(told: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Each plan's statuses; every event begins where the one before it ended."""
    ways: dict[str, list[str]] = {}
    for item in told:
        if item["to"]:
            way = ways.setdefault(item["plan_id"], ["verifying"])
            assert item["from"] == way[-1], f"{item} after {way}"
            way.append(item["to"])
    return ways


def test_ten_agents_are_told_everything_once_and_in_order(
    product: Product,
    workers: list[Worker],
    readers: list[Reader],
    ada: Person,
    billing: Billing,
) -> None:
    desk = Desk(ada, billing)
    with ThreadPoolExecutor(AGENTS) as pool:
        lives = [pool.submit(live, n, worker, desk) for n, worker in enumerate(workers)]
        for told in KILLED_AT:
            assert eventually(partial(told_or_over, readers, told, lives))
            kill_web(product)
        for each in lives:
            each.result(PATIENCE)
    for reader in readers:
        reader.join(PATIENCE)
    expected = trail(product)
    statuses: set[str] = set()
    for number, reader in enumerate(readers):
        heard = [as_in_the_trail(item) for item in reader.told]
        assert heard == expected[f"reader-{number}"]
        assert reader.cuts >= len(KILLED_AT)
        ways = follow(reader.told)
        assert len(ways) >= STORIES_EACH
        statuses.update(*ways.values())
    assert statuses >= {
        *("pending", "approved", "committing", "committed", "rejected", "abandoned"),
        *("stale", "changes_requested", "conflicted", "expired"),
    }
    events = sum(len(each) for each in expected.values())
    print(f"{events} events, {sum(r.cuts for r in readers)} cut connections")
