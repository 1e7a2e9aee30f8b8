"""The agent's submission: once, whole or not at all (A-1 … A-4, A-20, A-22)."""

from __future__ import annotations

from collections.abc import Callable
from traceback import TracebackException
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from plans import custody
from plans.lifecycle import Verb
from plans.models import Agent, Evidence, Intent, Plan, Target
from plans.status import TERMINAL, Status
from plans.submission import EvidenceItem, submit
from tests.plans.planning_target import Body, dry_run
from tests.plans.story import (
    at_once,
    fresh,
    moved,
    past,
    pending,
    refused,
    row_counts,
    submission,
    submitted,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


@pytest.fixture
def other_agent(dana: User) -> Agent:
    return Agent.objects.create(name="other-agent", owner=dana)


def test_a_plan_is_stored_with_its_intent_evidence_and_event(support_agent: Agent) -> None:
    dry = dry_run(note="kept")
    found = [EvidenceItem("ticket", "refund me", "https://help.example/1"), EvidenceItem("x", "y")]
    plan, created = submit(
        support_agent, submission(dry, summary="Refund", reason="Broken", evidence=found)
    )
    plan = fresh(plan)
    assert (created, plan.status, plan.revision) == (True, Status.VERIFYING, 1)
    assert (plan.summary, plan.reason) == ("Refund", "Broken")
    assert bytes(plan.inputs) == bytes(plan.intent.inputs) == submission().inputs
    assert plan.intent.latest_revision == 1
    assert [e.label for e in Evidence.objects.filter(plan=plan)] == ["ticket", "x"]
    assert b'"note":"kept"' in bytes(plan.document)
    assert plan.idempotency_key.startswith("idem_")
    assert [e.action for e in Event.objects.all()] == ["plan.submitted"]


def test_the_token_is_encrypted_and_only_in_its_own_columns(support_agent: Agent) -> None:
    dry = dry_run()
    plan = fresh(submitted(support_agent, dry))
    token = dry["plan_token"].encode()
    assert plan.token is not None
    assert plan.commit_body is not None
    assert custody.decrypt(plan.token) == token
    body = custody.decrypt(plan.commit_body)
    fingerprint = dry["input_fingerprint"]
    assert body == b'{"plan_token":"%s","input_fingerprint":"%s"}' % (token, fingerprint.encode())
    assert token not in bytes(plan.document) + bytes(plan.token) + bytes(plan.commit_body)
    assert plan.token_sha256 == custody.token_digest(dry["plan_token"])


# ── A-3: natural idempotency ─────────────────────────────────────────────────────────────────


def test_the_same_submission_again_is_the_plan_that_is_here(support_agent: Agent) -> None:
    sent = submission(evidence=[EvidenceItem("ticket", "please")])
    plan, _ = submit(support_agent, sent)
    before = row_counts()
    assert submit(support_agent, sent) == (plan, False)
    assert row_counts() == before


def test_the_order_of_members_does_not_make_another_submission(support_agent: Agent) -> None:
    dry = dry_run()
    plan = submitted(support_agent, dry)
    turned = dict(reversed(dry.items()))
    assert submit(support_agent, submission(turned)) == (plan, False)


@pytest.mark.parametrize("status", [*sorted(TERMINAL), "pending", "approved", "committing"])
def test_the_same_submission_is_recognised_in_every_status(
    status: str, support_agent: Agent
) -> None:
    sent = submission(task_id="task-1")
    plan, _ = submit(support_agent, sent)
    Plan.objects.filter(pk=plan.pk).update(status=status, token=None, commit_body=None)
    past(plan)
    existing, created = submit(support_agent, sent)
    assert (existing.pk, existing.status, created) == (plan.pk, status, False)


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": "task-2"},
        {"summary": "other"},
        {"reason": "other"},
        {"evidence": [EvidenceItem("a", "b")]},
        {"idempotency_key": "key-12345678"},
        {"inputs": b'{"invoice_id":"4412", "amount_cents":48000}'},
    ],
)
def test_other_content_under_the_same_id_is_refused(
    change: dict[str, Any], support_agent: Agent
) -> None:
    dry = dry_run()
    submitted(support_agent, dry)
    refusal = refused(support_agent, submission(dry, **change))
    assert (refusal.status, refusal.code) == (409, "plan-already-submitted")
    assert refusal.members["plan_id"] == dry["plan_id"]


@pytest.mark.parametrize(
    "change",
    [{"plan_token": "ptok_another_one_000"}, {"note": 1}, {"expires_at": "2031-01-01T00:00:00Z"}],
)
def test_another_dry_run_under_the_same_id_is_refused(
    change: Body, support_agent: Agent, billing: Target
) -> None:
    billing.max_window_seconds = 10**9
    billing.save()
    dry = dry_run()
    submitted(support_agent, dry)
    assert refused(support_agent, submission({**dry, **change})).code == "plan-already-submitted"


def test_another_agent_learns_only_that_the_id_is_taken(
    support_agent: Agent, other_agent: Agent
) -> None:
    sent = submission()
    submit(support_agent, sent)
    refusal = refused(other_agent, sent)
    assert refusal.code == "plan-already-submitted"
    assert "plan_status" not in refusal.members


def test_a_repeat_needs_no_room_and_no_rate(support_agent: Agent) -> None:
    sent = submission()
    plan, _ = submit(support_agent, sent)
    Agent.objects.update(pending_cap=1, rate_limit_per_minute=0)
    assert submit(support_agent, sent) == (plan, False)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", [None, "key-12345678"])
def test_eight_at_once_come_to_one_plan(key: str | None, support_agent: Agent) -> None:
    sent = submission(idempotency_key=key, evidence=[EvidenceItem("a", "b")])
    results = at_once([lambda: submit(support_agent, sent)] * 8)
    plan = Plan.objects.get()
    assert sorted(str(r) for r in results) == [str((plan, False))] * 7 + [str((plan, True))]
    assert (Intent.objects.count(), Event.objects.count(), Evidence.objects.count()) == (1, 1, 1)


@pytest.mark.django_db(transaction=True)
def test_eight_replacements_at_once_come_to_one_plan(support_agent: Agent) -> None:
    old = pending(support_agent)
    sent = submission(replaces=old.plan_id)
    results = at_once([lambda: submit(support_agent, sent)] * 8)
    assert sorted(r[1] for r in results if isinstance(r, tuple)) == [False] * 7 + [True]
    assert fresh(old).status == Status.SUPERSEDED
    assert Plan.objects.count() == 2


# ── A-4: the commit's idempotency key ────────────────────────────────────────────────────────


def test_a_key_is_unique_per_target_for_ever(support_agent: Agent) -> None:
    plan = submitted(support_agent, idempotency_key="key-12345678")
    moved(plan, Verb.ABANDON)
    refusal = refused(support_agent, submission(idempotency_key="key-12345678"))
    assert (refusal.status, refusal.code) == (409, "idempotency-key-taken")
    assert refusal.errors[0].pointer == "/idempotency_key"


def test_a_new_plan_of_an_intent_gets_a_new_key(support_agent: Agent) -> None:
    old = pending(support_agent)
    new = submitted(support_agent, replaces=old.plan_id)
    assert new.idempotency_key != old.idempotency_key


@pytest.mark.parametrize("key", ["", "x", "1234567", "k" * 129, "k" * 10_000, "schl\u00fcssel-1"])
def test_it_refuses_a_key_that_no_target_must_take(key: str, support_agent: Agent) -> None:
    assert refused(support_agent, submission(idempotency_key=key)).code == "invalid-idempotency-key"


@pytest.mark.parametrize("key", ["key 12345678", "key-12345678\n", "key-12345678\r\nX: 1"])
def test_it_refuses_a_key_that_could_end_a_header(key: str, support_agent: Agent) -> None:
    assert refused(support_agent, submission(idempotency_key=key)).code == "invalid-idempotency-key"


@pytest.mark.django_db(transaction=True)
def test_one_of_two_plans_with_one_key_wins(support_agent: Agent) -> None:
    acts = [lambda: submit(support_agent, submission(idempotency_key="key-12345678")) for _ in "12"]
    results = at_once(acts)
    assert sorted(type(r).__name__ for r in results) == ["IdempotencyKeyTaken", "tuple"]


# ── what stays ───────────────────────────────────────────────────────────────────────────────


def test_a_report_of_a_broken_database_shows_no_token(support_agent: Agent) -> None:
    sent = submission()

    def broken(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith('INSERT INTO "plans_plan"'):
            raise OperationalError("the disk is full")
        return execute(sql, *rest)

    with connection.execute_wrapper(broken), pytest.raises(OperationalError) as fault:
        submit(support_agent, sent)
    error, trace = fault.value, fault.value.__traceback__
    assert trace is not None
    # All frames but this one, with everything that is in them.
    report = TracebackException(type(error), error, trace.tb_next, capture_locals=True)
    text = "".join(report.format())
    assert "_insert" in text
    assert sent.plan["plan_token"] not in text + repr(sent)


def test_the_database_refuses_a_terminal_plan_with_a_token(
    make_plan: Callable[..., Plan],
) -> None:
    plan = make_plan(Status.PENDING)
    for status in sorted(TERMINAL):
        with pytest.raises(IntegrityError), transaction.atomic():
            Plan.objects.filter(pk=plan.pk).update(status=status)


@pytest.mark.parametrize("items", [0, 3])
def test_a_submission_costs_a_fixed_number_of_queries(items: int, support_agent: Agent) -> None:
    for _ in range(5):
        submitted(support_agent)
    sent = submission(evidence=[EvidenceItem("a", "b")] * items)
    with CaptureQueriesContext(connection) as seen:
        submit(support_agent, sent)
    statements = [q["sql"] for q in seen if not q["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(statements) == 9 + bool(items), "\n".join(statements)
