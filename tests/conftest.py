"""The people, the target and the agent of every story, and a flush that knows the trail."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management.color import Style
from django.db.backends.postgresql.operations import DatabaseOperations

from plans import custody
from plans.models import Agent, ApiKey, Intent, Operation, Plan, Target
from plans.status import TERMINAL, Status

TRAIL = ("audit_event", "audit_seal", "audit_era")
ERA = "audit_era"
# A request whose browser has gone runs on for a moment. It holds some tables and wants others that
# the flush has already: a deadlock. Whoever still works after two seconds is not waited for.
OTHERS_END = """
DO $$ BEGIN
  FOR look IN 1..100 LOOP
    PERFORM pg_stat_clear_snapshot();
    EXIT WHEN NOT EXISTS (
      SELECT FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        AND xact_start IS NOT NULL);
    PERFORM pg_sleep(0.02);
  END LOOP;
END $$;
"""

REFUND_INPUTS = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "invoice_id": {"type": "string", "pattern": "^[0-9]{1,12}$"},
        "amount_cents": {"type": "integer", "minimum": 1},
    },
    "required": ["invoice_id", "amount_cents"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True, scope="session")
def _flush_passes_the_trail() -> Iterator[None]:
    """Between transactional tests Django truncates every table; the trail refuses (L-1).

    The triggers are off for that one statement, and the first era, which the migration wrote and
    the flush removes, is written again. The triggers themselves stay on for the tests.
    """
    original = DatabaseOperations.sql_flush
    patch = pytest.MonkeyPatch()
    patch.setattr(DatabaseOperations, "sql_flush", _bracketed(original))
    yield
    patch.undo()


def _bracketed(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def sql_flush(
        operations: DatabaseOperations, style: Style, tables: Sequence[str], **options: Any
    ) -> list[str]:
        statements = list(original(operations, style, tables, **options))
        for table in TRAIL:
            if table in tables:
                switch = f"ALTER TABLE {table} {{}} TRIGGER {table}_no_truncate;".format
                statements = [switch("DISABLE"), *statements, switch("ENABLE")]
        if ERA in tables:
            statements.append(f"INSERT INTO {ERA} (number, reason) VALUES (1, 'first start');")
        return [OTHERS_END, *statements]

    return sql_flush


def _person(name: str, *groups: str) -> User:
    """A person without a password (`client.force_login`): hashing one costs every test."""
    user = User.objects.create_user(name, f"{name}@example.com")
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return user


@pytest.fixture
def ada(db: None) -> User:
    """Reviews."""
    return _person("ada", "reviewers")


@pytest.fixture
def grace(db: None) -> User:
    """Reviews too, and leads."""
    return _person("grace", "reviewers", "leads")


@pytest.fixture
def mona(db: None) -> User:
    """Audits."""
    return _person("mona", "managers")


@pytest.fixture
def otto(db: None) -> User:
    """Operates; staff, with no permission that the test does not give."""
    user = _person("otto", "operators")
    user.is_staff = True
    user.save()
    return user


@pytest.fixture
def dana(db: None) -> User:
    """Reviews, and owns the support agent."""
    return _person("dana", "reviewers")


@pytest.fixture
def charlie(db: None) -> User:
    """Has no rights."""
    return _person("charlie")


@pytest.fixture
def billing(db: None) -> Target:
    """The billing target of the demo's configuration; `reviewers` review its plans."""
    target = Target.objects.create(
        name="billing",
        base_url="http://127.0.0.1:8001",
        internal=True,
        credential=custody.encrypt(b"billing-token-of-the-tests"),
        plan_path="/plans/{plan_id}",
        key_retention_seconds=86400,
        enforces_expiry=True,
        consumed_plans_readable=True,
    )
    target.reviewers.set([Group.objects.get_or_create(name="reviewers")[0]])
    return target


@pytest.fixture
def refund(billing: Target) -> Operation:
    """The one operation of billing."""
    return Operation.objects.create(
        target=billing,
        name="refund",
        title="Refund {delta.refunded_cents:money:USD} on {object}",
        asked="{inputs.amount_cents:money:USD}",
        formats={"refunded_cents": "money:USD"},
        dry_run_path="/refund/dry_run",
        commit_path="/refund/commit",
        inputs_schema=REFUND_INPUTS,
        ops=["update"],
        fields=["refunded_cents", "status"],
    )


@pytest.fixture
def support_agent(dana: User) -> Agent:
    """Dana's agent; its rate bucket is full."""
    return Agent.objects.create(name="support-agent", owner=dana, rate_tokens=600)


@pytest.fixture
def make_api_key(db: None) -> Callable[..., str]:
    """`make_api_key(agent, *scopes)` stores a key and returns its full text."""
    return _store_api_key


def _store_api_key(agent: Agent, *scopes: str) -> str:
    key_id, _, full = custody.new_api_key()
    ApiKey.objects.create(
        agent=agent,
        key_id=key_id,
        digest=custody.api_key_digest(full),
        scopes=list(scopes or ApiKey.SCOPES),
    )
    return full


@pytest.fixture
def api_key(support_agent: Agent, make_api_key: Callable[..., str]) -> str:
    """The full text of a key of the support agent, with every scope."""
    return make_api_key(support_agent)


@pytest.fixture
def make_plan(refund: Operation, support_agent: Agent) -> Callable[..., Plan]:
    """`make_plan(status=…, **columns)` stores a bare row: for what only looks at plans.

    No event, no attempt and no re-plan comes with it; the verbs make those.
    """

    def make(status: str = Status.PENDING, **columns: Any) -> Plan:
        return Plan.objects.create(**_columns(refund, support_agent, status) | columns)

    return make


def _columns(operation: Operation, agent: Agent, status: str) -> dict[str, Any]:
    """A verified refund of 480.00 USD with ten minutes to go, in its first revision."""
    now, number = datetime.now(UTC), uuid.uuid4().hex
    token = f"ptok_{number}{number}"
    secret = None if status in TERMINAL else custody.encrypt(token.encode())
    names = {"target": operation.target, "operation": operation, "agent": agent, "task_id": "t-1"}
    inputs = b'{"amount_cents":48000,"invoice_id":"4412"}'
    intent = Intent.objects.create(
        **names, inputs=inputs, latest_revision=1, lives_until=now + timedelta(days=7)
    )
    return names | {
        "intent": intent,
        "plan_id": f"plan_{number[:12]}",
        "revision": 1,
        "status": status,
        "token": secret,
        "token_sha256": custody.token_digest(token),
        "request_sha256": hashlib.sha256(number.encode()).hexdigest(),
        "input_fingerprint": f"sha256:{number}",
        "inputs": inputs,
        "document": b"{}",
        "actions": [
            {"op": "update", "target": "invoice/4412", "field": field, "from": was, "to": will}
            for field, was, will in (("refunded_cents", 0, 48000), ("status", "paid", "refunded"))
        ],
        "covers": ["invoice/4412"],
        "expires_at_text": (now + timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "expires_at": now + timedelta(minutes=10),
        "decide_by": now + timedelta(minutes=9, seconds=15),
        "received_at": now,
        "plan_created_at": now,
        "verification": Plan.Verification.VERIFIED,
        "verified_at": now,
        "connection_version": operation.target.connection_version,
        "title": "Refund 480.00 USD on invoice/4412",
        "idempotency_key": f"idem_{number}",
    }
