"""What happens to plans in tests, in the words of the product: through the verbs, never by rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals.decisions import Ballot, decide
from audit import actors
from plans import verification
from plans.errors import Problem
from plans.intents import IntentRequest, intent_status
from plans.lifecycle import Verb, transition
from plans.models import Agent, Intent, Plan, Replan
from plans.submission import Submission, submit
from tests.plans.planning_target import Body, PlanningTarget, dry_run

INPUTS = b'{"amount_cents":48000,"invoice_id":"4412"}'
INPUTS_VALUE = {"amount_cents": 48000, "invoice_id": "4412"}
# What a test must never look at by itself: the schema's own tables.
NOT_OURS = ("django_migrations", "django_content_type", "auth_permission")


def submission(plan: Body | None = None, /, **members: Any) -> Submission:
    """The refund of the story, with a dry run of its own unless the test brings one."""
    return Submission(
        **{
            "target": "billing",
            "operation": "refund",
            "task_id": "task-1",
            "inputs": INPUTS,
            "inputs_value": INPUTS_VALUE,
            "plan": plan or dry_run(),
            **members,
        }
    )


def submitted(agent: Agent, plan: Body | None = None, /, **members: Any) -> Plan:
    """A new plan, waiting to be read back."""
    row, created = submit(agent, submission(plan, **members))
    assert created
    return row


def pending(agent: Agent, plan: Body | None = None, /, **members: Any) -> Plan:
    """A plan that waits for people, without a word to its target."""
    row = submitted(agent, plan, **members)
    facts = {"verification": Plan.Verification.VERIFIED}
    verification._accept(row, facts, Verb.VERIFY)
    return fresh(row)


def fresh(plan: Plan) -> Plan:
    return Plan.objects.with_names().get(pk=plan.pk)


def moved(plan: Plan, verb: Verb, **changes: Any) -> Plan:
    """Follow one arrow by hand, as the part of the product that owns it would."""
    with transaction.atomic():
        row = Plan.objects.locked_with_intent(plan.pk)
        return transition(row, verb, actor=actors.COMMITTER, **changes)


def read_back(
    agent: Agent, planning: PlanningTarget, /, dry: Body | None = None, **told: Any
) -> Plan:
    """Submit a plan, let the target tell it with those members changed, and verify it."""
    dry = dry or dry_run()
    plan = submitted(agent, dry)
    planning.knows(dry).update(told)
    verification.verify(plan.pk)
    return fresh(plan)


def read_again(plan: Plan) -> Plan:
    """As if the wait for the next try were over; try."""
    Plan.objects.filter(pk=plan.pk).update(verify_at=plan.received_at)
    verification.verify(plan.pk)
    return fresh(plan)


def approved(person: User, plan: Plan) -> Plan:
    plan = fresh(plan)
    return decide(person, plan.pk, Ballot("approve", "", plan.digest))


def past(plan: Plan, seconds: float = 3600) -> Plan:
    """As if the plan had been received that much earlier: its time is over."""
    earlier = timedelta(seconds=seconds)
    row = fresh(plan)
    Plan.objects.filter(pk=plan.pk).update(
        received_at=row.received_at - earlier,
        expires_at=row.expires_at - earlier,
        decide_by=row.decide_by - earlier,
    )
    return fresh(plan)


def due_now(replan: Replan) -> Replan:
    """As if the back-off were over."""
    Replan.objects.filter(pk=replan.pk).update(next_try_at=replan.created_at)
    replan.refresh_from_db()
    return replan


def row_counts() -> dict[str, int]:
    """How many rows each table has."""
    names = [m._meta.db_table for m in apps.get_models(include_auto_created=True)]
    with connection.cursor() as cursor:
        counts = {}
        for name in sorted({*names} - {*NOT_OURS}):
            cursor.execute(f'SELECT count(*) FROM "{name}"')
            counts[name] = cursor.fetchone()[0]
    return counts


def refused(agent: Agent, sent: Submission) -> Problem:
    """The refusal, after which every table has as many rows as before it."""
    before = row_counts()
    with pytest.raises(Problem) as refusal:
        submit(agent, sent)
    assert row_counts() == before
    return refusal.value


def at_once[T](acts: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """Run every act in a thread of its own, all from one barrier; results in their order."""
    barrier = threading.Barrier(len(acts))
    results: list[T | Exception] = [RuntimeError("never ran")] * len(acts)

    def run(index: int, act: Callable[[], T]) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(10)
            results[index] = act()
        except Exception as fault:  # the test looks at it
            results[index] = fault
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def wish(**members: object) -> IntentRequest:
    """What an agent wants, for `open_intent`."""
    asked = {
        "target": "billing",
        "operation": "refund",
        "task_id": "task-1",
        "inputs": INPUTS,
        "inputs_value": INPUTS_VALUE,
    }
    return IntentRequest(**{**asked, **members})  # type: ignore[arg-type]


def status_of(intent: Intent) -> str:
    """As the API tells it now."""
    intent.refresh_from_db()
    return intent_status(intent, intent.plans.order_by("-revision").first())
