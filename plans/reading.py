"""Reading a plan back from its target, by its ID: for verification, confirmation and resolution."""

from __future__ import annotations

import time
from urllib.parse import quote

from plans import custody, gateway
from plans.exchanges import Call, Endpoint, Exchange
from plans.models import Plan, Target


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


def read_plan(target: Target, plan_id: str) -> Exchange:
    """`GET plan_path` with the plan ID filled in. The caller holds no transaction (T-3)."""
    path = target.plan_path.replace("{plan_id}", quote(plan_id, safe=""))
    deadline = time.monotonic() + min(READ_SECONDS, target.total_timeout_seconds)
    return gateway.exchange(endpoint(target), Call("GET", path), deadline=deadline)


def plan_secrets(plan: Plan) -> list[str]:
    """The texts that no stored answer may hold: the token, while we still have it (A-18)."""
    if plan.token is None:
        return []
    return [custody.decrypt(plan.token).decode()]
