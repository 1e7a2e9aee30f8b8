"""A target, its plans and their reviewers, as many as the matrix has rows, in a few statements."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import Group, User

from plans import custody
from plans.canonical import sha256_hex
from plans.enrolment import commit_body
from plans.models import Agent, Intent, Operation, Plan, Target
from plans.oversight import oversight
from plans.status import Status
from tests.faults.durable_store import planned
from tests.faults.target_process import TargetProcess
from tests.matrix.combinations import FAMILIES, HOUSES, Row

# Little patience: an attempt may take a second, and its lease two.
PATIENCE: Final[dict[str, Any]] = {
    "internal": True,
    "plan_path": "/plans/{plan_id}",
    "connect_timeout_seconds": 1,
    "read_timeout_seconds": 1,
    "total_timeout_seconds": 1,
    "min_window_seconds": 3,
    "enforces_expiry": True,
    "consumed_plans_readable": True,
}
GIVEN_UP_AFTER: Final = {"hopeless": 6, "forgetful": 6}
LIVES_SECONDS: Final = 600
# Its first attempt says nothing that counts, so that the plan's state is read at once.
ASKED_AFTER: Final = {True: "500, after", False: "500, before"}


@dataclass(frozen=True, slots=True)
class Staged:
    """One row and its plan, which waits for its reviewer."""

    row: Row
    plan: Plan

    @property
    def key(self) -> object:
        """By which the row's step knows this plan from the others."""
        if self.row.family == "replan":
            return self.plan.intent_id
        return self.plan.plan_id if self.row.step.startswith("send.") else self.plan.pk


@dataclass(frozen=True, slots=True)
class World:
    """Ada reviews everything; Dana's agent asks."""

    ada: User
    agent: Agent
    operations: dict[str, Operation]


def make_world(target: TargetProcess) -> World:
    """One target for each house of the target process."""
    reviewers, _ = Group.objects.get_or_create(name="reviewers")
    ada, dana = (User.objects.create_user(name) for name in ("ada", "dana"))
    ada.groups.set([reviewers])
    agent = Agent.objects.create(name="support-agent", owner=dana, rate_tokens=600)
    houses = {"plain", "patient", *(house for house, _ in HOUSES.values())}
    operations = {}
    for house in sorted(houses):
        row = Target.objects.create(
            name=f"billing-{house}",
            base_url=target.url(house),
            credential=custody.encrypt(b"credential-of-the-matrix"),
            retry_delays_seconds=[6, 1] if house == "patient" else [0.2, 0.5, 1, 2],
            unknown_deadline_seconds=GIVEN_UP_AFTER.get(house, 150),
            key_retention_seconds=3 if house == "forgetful" else 86_400,
            **PATIENCE,
        )
        row.reviewers.set([reviewers])
        operations[house] = Operation.objects.create(
            target=row,
            name="refund",
            title="Refund {delta.refunded_cents:money:USD} on {object}",
            formats={"refunded_cents": "money:USD"},
            dry_run_path="/refund/dry_run",
            commit_path="/refund/commit",
            ops=["update"],
            fields=["refunded_cents", "status"],
        )
    return World(ada, agent, operations)


def stage(world: World, target: TargetProcess, rows: Iterable[Row]) -> list[Staged]:
    """A verified plan that waits for Ada, for every row; the target knows it and its mode."""
    rows, now = list(rows), datetime.now(UTC)
    documents = [
        planned({"invoice_id": str(1000 + n), "amount_cents": 100 + n}, LIVES_SECONDS)
        for n in range(len(rows))
    ]
    pairs = list(zip(rows, documents, strict=True))
    names = [_names(world, row) for row, _ in pairs]
    intents = Intent.objects.bulk_create(
        Intent(
            **each,
            inputs=_inputs(document),
            latest_revision=1,
            lives_until=now + timedelta(days=7),
        )
        for each, (_, document) in zip(names, pairs, strict=True)
    )
    plans = Plan.objects.bulk_create(
        Plan(**each, intent=intent, **_columns(document, now))
        for each, intent, (_, document) in zip(names, intents, pairs, strict=True)
    )
    for plan in plans:
        for name, value in oversight().assess(plan).columns().items():
            setattr(plan, name, value)
    shown = ["title", "asked", "risk", "risk_rank", "policy_version", "digest", "demands"]
    Plan.objects.bulk_update(plans, [*shown, "approvals_required"], batch_size=200)
    target.register(documents)
    staged = [Staged(row, plan) for row, plan in zip(rows, plans, strict=True)]
    target.play(*(order for each in staged for order in _orders(each)))
    return staged


def _names(world: World, row: Row) -> dict[str, Any]:
    operation = world.operations[row.house]
    about = {"target": operation.target, "operation": operation, "agent": world.agent}
    return about | {"task_id": f"{row.step}, {row.act}, {row.mode}"}


def _inputs(document: dict[str, Any]) -> bytes:
    return json.dumps(document["inputs"], sort_keys=True).encode()


def _columns(document: dict[str, Any], now: datetime) -> dict[str, Any]:
    token, expires = document["plan_token"], datetime.fromisoformat(document["expires_at"])
    body = commit_body(token, document["input_fingerprint"])
    return {
        "plan_id": document["plan_id"],
        "revision": 1,
        "status": Status.PENDING,
        "token": custody.encrypt(token.encode()),
        "token_sha256": custody.token_digest(token),
        "commit_body": custody.encrypt(body),
        "request_sha256": sha256_hex(document["plan_id"].encode()),
        "input_fingerprint": document["input_fingerprint"],
        "inputs": _inputs(document),
        "document": b"{}",
        "actions": document["actions"],
        "covers": document["covers"],
        "expires_at_text": document["expires_at"],
        "expires_at": expires,
        "decide_by": expires - timedelta(seconds=1),
        "received_at": now,
        "plan_created_at": now,
        "verification": Plan.Verification.VERIFIED,
        "verified_at": now,
        "connection_version": 1,
        "idempotency_key": f"idem_{document['plan_id']}",
    }


def _orders(staged: Staged) -> list[tuple[str, str, str]]:
    """What the target does with this row's calls."""
    row, plan = staged.row, staged.plan
    kind = FAMILIES[row.family].kind
    if kind == "commit":
        return [(plan.plan_id, "commit", row.ordered)]
    if kind == "read":
        lost = ASKED_AFTER[plan.pk % 2 == 0]
        return [(plan.plan_id, "commit", lost), (plan.plan_id, "read", row.mode)]
    invoice = json.loads(bytes(plan.inputs))["invoice_id"]
    return [(plan.plan_id, "commit", "409 changed"), (invoice, "dry_run", row.mode)]
