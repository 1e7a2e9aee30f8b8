"""Reading a plan back from its target, by its ID: for verification, confirmation and resolution."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

from plans import custody, gateway, health
from plans.exchanges import Answer, Call, Endpoint, Exchange
from plans.models import Plan, Target
from plans.outcomes import Reading, read_state
from plans.sending import unknown_deadline

# The longest that an unknown plan goes unread, until a person must look (T-9).
READ_EVERY: Final = timedelta(seconds=5)


def endpoint(target: Target) -> Endpoint:
    """Where and how long, with the app's credential for this target and no other (SEC-17)."""
    credential = None
    if target.credential is not None:
        credential = custody.Secret(custody.decrypt(target.credential).decode())
    return Endpoint(
        base_url=target.base_url,
        internal=target.internal,
        credential=credential,
        connect_timeout=target.connect_timeout_seconds,
        read_timeout=target.read_timeout_seconds,
        total_timeout=target.total_timeout_seconds,
    )


# A read that decides nothing by itself need not wait as long as a commit may.
READ_SECONDS = 10.0


def read_plan(plan: Plan) -> Exchange:
    """`GET plan_path` with the plan ID filled in. The caller holds no transaction (T-3)."""
    target = plan.target
    path = target.plan_path.replace("{plan_id}", quote(plan.plan_id, safe=""))
    deadline = time.monotonic() + min(READ_SECONDS, target.total_timeout_seconds)
    exchange = gateway.exchange(endpoint(target), Call("GET", path), deadline=deadline)
    health.note(target.pk, exchange)
    return without_secrets(exchange, plan_secrets(plan))


def without_secrets(exchange: Exchange, secrets: Sequence[str]) -> Exchange:
    """The answer before anybody reads it, with what only we may know masked (A-18).

    Whatever is made of it later (a code in small letters, words cut short) is clean as well.
    """
    if not isinstance(exchange, Answer):
        return exchange
    text = custody.mask(exchange.body.decode("utf-8", "surrogateescape"), secrets)
    headers = {name: custody.mask(value, secrets) for name, value in exchange.headers.items()}
    return replace(exchange, body=text.encode("utf-8", "surrogateescape"), headers=headers)


def judge_reading(plan: Plan, exchange: Exchange, now: datetime) -> Reading:
    """What the read says of the plan; `now` is PostgreSQL's, after the lock (T-8)."""
    return read_state(
        exchange,
        plan_id=plan.plan_id,
        consumed_plans_readable=plan.target.consumed_plans_readable,
        past_expiry=now >= plan.expires_at,
    )


def following_read(plan: Plan, now: datetime) -> datetime:
    """When an unknown plan is looked at again; without a read-back, only at its deadline (T-10)."""
    deadline = unknown_deadline(plan, now)
    return min(now + READ_EVERY, deadline) if plan.target.reads_back else deadline


def plan_secrets(plan: Plan) -> list[str]:
    """The texts that no stored answer may hold: the token, while we have it, and the credential."""
    tokens = [] if plan.token is None else [custody.decrypt(plan.token).decode()]
    return tokens + target_secrets(plan.target)


def target_secrets(target: Target) -> list[str]:
    """What the target knows of us and might repeat: in an echo, a dump, a page for developers."""
    return [] if target.credential is None else [custody.decrypt(target.credential).decode()]
