"""The story of the product, over real HTTP, with every process that `make demo` starts."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from subprocess import CompletedProcess

import httpx
import pytest

from tests.journeys.logs import leaking
from tests.journeys.people import Agent, Billing, Person, Plan, actions, is_, the, words
from tests.journeys.product import SHORT, Product
from tests.journeys.wire import Wire, all_alike


def test_ada_approves_what_she_read_and_it_is_committed_once(
    agent: Agent, ada: Person, mona: Person, billing: Billing, wire: Wire
) -> None:
    invoice = billing.new_invoice(48_000)
    draft = agent.dry_run(invoice, 48_000)
    submitted = agent.submit(draft)
    key = submitted["commit"]["idempotency_key"]
    plan = agent.wait(submitted, is_("pending"))
    assert plan["verified"]

    page = ada.sees(plan)
    assert f"Refund 480.00 USD on invoice/{invoice}" in page
    assert re.search(r"refunded_cents 0\.00 USD\d* 480\.00 USD", page)
    with ThreadPoolExecutor(1) as meanwhile:
        path = f"/plans/billing/{plan['plan_id']}"
        watching = meanwhile.submit(agent.watch, path, is_("committed"))
        ada.approve_now(plan)
        told = [each["status"] for each in watching.result()]

    assert told.count("committed") == 1
    assert agent.events(plan).count("committed") == 1
    (effect,) = billing.effects(invoice)
    assert (effect["amount_cents"], effect["idempotency_key"]) == (48_000, key)
    (commit,) = wire.commits(key)
    secrets = {name: draft.plan[name] for name in ("plan_token", "input_fingerprint")}
    carries_only_these = commit.members == secrets
    assert carries_only_these, "a commit carries token and fingerprint, and nothing else"
    the_trail_of_one_commit(mona, plan, key, draft.plan["plan_token"])


def the_trail_of_one_commit(mona: Person, plan: Plan, key: str, token: str) -> None:
    """What Mona can prove: who decided on what, and that the key was there before the attempt."""
    trail = mona.trail(plan=plan["plan_id"])
    assert actions(trail) == [
        "plan.submitted",
        "plan.verified",
        "decision.recorded",
        "plan.approved",
        "attempt.started",
        "attempt.closed",
        "plan.committed",
    ]
    assert [event["id"] for event in trail] == sorted(event["id"] for event in trail)
    assert the("plan.submitted", trail)["details"]["idempotency_key"] == key
    assert the("attempt.started", trail)["details"]["idempotency_key"] == key
    decision = the("decision.recorded", trail)
    assert (decision["actor_kind"], decision["actor"]) == ("person", "ada")
    assert decision["details"]["shown_digest"] == plan["content_digest"]
    table = mona.export("csv", plan=plan["plan_id"])
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["id"], row["action"]) for row in rows] == [
        (str(event["id"]), event["action"]) for event in trail
    ]
    told = token in table or token in json.dumps(trail)
    assert not told, "the trail holds a plan token"


def test_a_world_that_moved_comes_back_as_revision_2_and_is_committed(
    agent: Agent, ada: Person, mona: Person, billing: Billing
) -> None:
    invoice = billing.new_invoice(48_000)
    plan = agent.pending(invoice, 48_000)
    billing.refund_elsewhere(invoice, 20_000)
    ada.approve_now(plan)

    dead = agent.wait(plan, is_("conflicted"))
    conflict = dead["commit"]["conflict"]
    (change,) = conflict["changed"]
    assert "refunded_cents" in change["path"]
    assert (change["planned"], change["current"]) == (0, 20_000)
    assert conflict["plan_created_at"]
    assert billing.effects(invoice) == []

    fresh = agent.successor(dead)
    dead = agent.read(dead)
    assert (fresh["revision"], fresh["intent_id"]) == (2, dead["intent_id"])
    assert (fresh["replaces"], dead["replaced_by"]) == (dead["plan_id"], fresh["plan_id"])
    old, new = ada.sees(dead), ada.sees(fresh)
    assert "Revision 2 has taken its place" in old
    assert fresh["plan_id"] in old
    assert "refunded_cents moved from 0.00 USD to 200.00 USD" in new
    assert "the refund is now 280.00 USD, it was 480.00 USD" in new
    assert "Asked for 480.00 USD" in new

    ada.approve_now(fresh)
    done = agent.wait(fresh, is_("committed"))
    assert done["commit"]["result"]["amount_cents"] == 28_000
    assert done["commit"]["idempotency_key"] != dead["commit"]["idempotency_key"]
    (effect,) = billing.effects(invoice)
    assert effect["amount_cents"] == 28_000
    assert agent.events(fresh).count("committed") == 1
    trail = actions(mona.trail(intent=plan["intent_id"]))
    moved, queued = trail.index("plan.conflicted"), trail.index("replan.queued")
    assert moved < queued < trail.index("replan.completed") < trail.index("plan.committed")


def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    agent: Agent, ada: Person, mona: Person, billing: Billing, wire: Wire
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice)
    billing.arm("apply_then_timeout", seconds=20)
    ada.approve_now(plan)

    done = agent.wait(plan, is_("committed"))
    key = done["commit"]["idempotency_key"]
    commits = wire.commits(key)
    assert len(commits) > 1
    assert all_alike(commits)
    numbers = [commit.headers["attempt"] for commit in commits]
    assert numbers == [str(number) for number in range(1, len(commits) + 1)]
    (effect,) = billing.effects(invoice)
    assert effect["idempotency_key"] == key
    assert done["commit"]["result"]["refund_id"] == effect["refund_id"]
    told = agent.events(plan)
    assert "unknown" in told
    assert told.count("committed") == 1
    outcomes = [
        event["details"]["outcome"]
        for event in mona.trail(plan=plan["plan_id"])
        if event["action"] == "attempt.closed"
    ]
    assert len(outcomes) == len(commits)
    assert (outcomes[0], outcomes[-1]) == ("unknown", "applied")


@pytest.fixture(scope="module")
def told(product: Product, wire: Wire) -> Iterator[Future[CompletedProcess[str]]]:
    """The demo's own story, told while others wait. It orders a fault: nobody else may commit."""
    with ThreadPoolExecutor(1) as meanwhile:
        yield meanwhile.submit(product.story, "--auto", "--silence", "20", "--window", str(SHORT))


@pytest.mark.usefixtures("told")
def test_nobody_at_the_desk_and_a_dead_plan_cannot_be_approved(
    agent: Agent, ada: Person, mona: Person, billing: Billing
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice, lives=SHORT)
    form = ada.form(plan)

    dead = agent.wait(plan, is_("expired"))
    fresh = agent.successor(dead)
    assert (fresh["revision"], fresh["replaces"]) == (2, plan["plan_id"])
    refused = ada.decide(plan, form=form)
    assert refused.status_code == httpx.codes.GONE
    assert "Your decision was not recorded" in words(refused.text)
    assert fresh["plan_id"] in ada.sees(plan)
    assert agent.read(plan)["status"] == "expired"
    assert billing.effects(invoice) == []
    expired = the("plan.expired", mona.trail(plan=plan["plan_id"]))
    assert (expired["actor_kind"], expired["actor_id"]) == ("system", "clock")
    agent.end(fresh)
    assert agent.read(fresh)["status"] == "abandoned"


def test_the_story_of_the_demo_holds(told: Future[CompletedProcess[str]]) -> None:
    story = told.result()
    assert "The story holds." in story.stdout, story.stdout + story.stderr
    assert story.returncode == 0


def test_an_agent_asks_by_curl_and_hears_that_it_is_done(
    agent: Agent, ada: Person, billing: Billing
) -> None:
    invoice = billing.new_invoice()
    intent = agent.ask(invoice, 1_500)
    assert intent["status"] == "open"
    path = f"/intents/{intent['intent_id']}"
    plan = agent.watch(path, lambda now: (now["plan"] or {}).get("status") == "pending")[-1]["plan"]
    assert "Refund 15.00 USD" in ada.sees(plan)
    ada.approve_now(plan)
    done = agent.watch(path, is_("committed"))[-1]
    assert (done["next_action"], done["decision"]["by"]) == ("done", "ada")
    (effect,) = billing.effects(invoice)
    assert effect["amount_cents"] == 1_500


def test_a_rejection_is_the_end_and_the_agent_reads_why(
    agent: Agent, ada: Person, billing: Billing
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice)
    assert ada.decide(plan, "reject").status_code == 422
    answer = ada.decide(plan, "reject", "This customer was paid by cheque.")
    assert answer.status_code == httpx.codes.SEE_OTHER

    rejected = agent.wait(plan, is_("rejected"))
    decision = rejected["decision"]
    assert (decision["verdict"], decision["by"]) == ("reject", "ada")
    assert decision["note"] == "This customer was paid by cheque."
    assert (rejected["next_action"], rejected["replan"]) == ("stop", None)
    assert billing.effects(invoice) == []


def test_requested_changes_are_claimed_and_planned_again_by_the_agent(
    agent: Agent, ada: Person, billing: Billing
) -> None:
    invoice = billing.new_invoice()
    plan = agent.pending(invoice, 48_000)
    answer = ada.decide(plan, "request_changes", "Half of it, please.")
    assert answer.status_code == httpx.codes.SEE_OTHER

    claimed = agent.claim()
    assert claimed is not None
    assert claimed["plan"]["plan_id"] == plan["plan_id"]
    assert (claimed["cause"], claimed["reason"]) == ("changes_requested", "Half of it, please.")
    assert claimed["plan"]["decision"]["note"] == "Half of it, please."
    draft = agent.dry_run(invoice, 24_000)
    fresh = agent.submit(draft, replan_id=claimed["id"], task_id=claimed["task_id"])
    fresh = agent.wait(fresh, is_("pending"))
    assert (fresh["revision"], fresh["replaces"]) == (2, plan["plan_id"])
    assert "Half of it, please." in ada.sees(plan)
    assert "the refund is now 240.00 USD, it was 480.00 USD" in ada.sees(fresh)
    ada.approve_now(fresh)
    agent.wait(fresh, is_("committed"))
    (effect,) = billing.effects(invoice)
    assert effect["amount_cents"] == 24_000


def test_no_process_has_logged_a_token(
    product: Product, agent: Agent, ada: Person, billing: Billing, wire: Wire
) -> None:
    plan = agent.pending(billing.new_invoice())
    ada.approve_now(plan)
    agent.wait(plan, is_("committed"))
    assert leaking(product, wire) == []
