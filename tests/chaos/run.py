"""One history: the whole product, its crowd and its faults, for some seconds; then the judge."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from tests.chaos.checker import Effect, Figures, History, Story, Verdict, figures, judge
from tests.chaos.crowd import REFUSED, Crowd, ask, hand_out, review
from tests.chaos.faults import Hammer, spoil_answers
from tests.journeys.people import Agent, Billing, Person
from tests.journeys.product import ROOT, Product, eventually

AGENTS: Final = 3
REVIEWERS: Final = 4
UNKNOWN_DEADLINE: Final = 20
# 5-faults, invariant 4: three minutes, or the target's deadline and a minute where that is later.
LIVENESS_SECONDS: Final = max(180, UNKNOWN_DEADLINE + 60)
# A commit that billing still holds after the last fault must have come to its end.
LAST_FAULT_SECONDS: Final = 5.0
CONFIG: Final = f"""
[[targets]]
name = "billing"
base_url = "{{url}}"
credential = "env:BILLING_TOKEN"
connect_timeout_seconds = 1
read_timeout_seconds = 1
total_timeout_seconds = 2
retry_delays_seconds = [0.2, 0.5, 1, 2]
unknown_deadline_seconds = {UNKNOWN_DEADLINE}
min_window_seconds = 3
idempotency = true
enforces_expiry = true
consumed_plans_readable = true

[[agents]]
name = "support-agent"
owner = "dana"
pending_cap = 1000
rate_limit_per_minute = 60000
"""
STORIES: Final = """
SELECT plan.plan_id, plan.idempotency_key, plan.status, plan.actions,
  (SELECT event.to_status FROM audit_event event
    WHERE event.plan_id = plan.plan_id AND event.to_status <> ''
    ORDER BY event.id DESC LIMIT 1) AS trail,
  ARRAY(SELECT attempt.outcome FROM plans_attempt attempt
    WHERE attempt.plan_id = plan.id ORDER BY attempt.number) AS outcomes,
  (SELECT count(*) FROM approvals_decision decision
    WHERE decision.plan_id = plan.id AND verdict = 'approve' AND withdrawn_at IS NULL) AS approvals,
  extract(epoch FROM plan.closed_at - plan.approved_at)::float AS settled_after
FROM plans_plan plan ORDER BY plan.id
"""
AT_WORK: Final = """
SELECT count(*) AS left FROM plans_plan
WHERE status IN ('approved', 'committing', 'unknown', 'verifying')
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run's end: what was found, how much happened, and how long the quiet took (seconds)."""

    verdict: Verdict
    figures: Figures
    met: dict[str, int]
    quiet_after: float


def play(seed: int, seconds: float, say: Callable[[str], None] = print) -> Outcome:
    """Start the product in a home of its own, break it for `seconds`, and judge what is left.

    The home stays when the judge found something; its address is said.
    """
    product = Product()
    kept = False
    try:
        product.start()
        _configure(product)
        crowd = Crowd(seed)
        _rage(product, crowd, seconds)
        quiet_after = _calm(product)
        history = _history(product, crowd)
        verdict = judge(history)
        kept = bool(verdict.findings)
        return Outcome(verdict, figures(history), dict(crowd.met), quiet_after)
    finally:
        if kept:
            product.stop()
            say(f"Everything that is left of it is in {product.home}")
        else:
            product.wipe()


def _configure(product: Product) -> None:
    """Little patience, so that much goes wrong in little time."""
    file = product.home / "chaos.toml"
    file.write_text(CONFIG.format(url=product.credentials.billing_url))
    token = product.credentials.raw["targets"]["billing"]["token"]
    product.manage("apply_config", str(file), BILLING_TOKEN=token)


def _rage(product: Product, crowd: Crowd, seconds: float) -> None:
    """Everybody at once, until the time is over; an actor's own fault is raised here."""
    with ExitStack() as stack:
        ada = Person(product.credentials, "ada")
        stack.callback(ada.browser.close)
        agents = [Agent(product.credentials) for _ in range(AGENTS + 1)]
        billings = [Billing(product.credentials) for _ in range(AGENTS + 1)]
        for agent, billing in zip(agents, billings, strict=True):
            stack.callback(agent.close)
            stack.callback(billing.client.close)
        parts: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            *((ask, (crowd, f"agent {n}", agents[n], billings[n])) for n in range(AGENTS)),
            *((review, (crowd, f"reviewer {n}", ada)) for n in range(REVIEWERS)),
            (hand_out, (crowd, agents[AGENTS])),
            (spoil_answers, (crowd, billings[AGENTS])),
            (Hammer(crowd, product).swing, ()),
        ]
        with ThreadPoolExecutor(len(parts)) as pool:
            running = [pool.submit(part, *arguments) for part, arguments in parts]
            timer = threading.Timer(seconds, crowd.stop.set)
            timer.start()
            for each in running:
                each.result()
            timer.join()


def _calm(product: Product) -> float:
    """No more faults; how many seconds until nothing that people decided on waits for a machine."""
    began = time.monotonic()
    billing = Billing(product.credentials)
    order = {"commit": "none"}
    assert eventually(lambda: _answers(lambda: billing.client.post("/_faults", json=order)), 60)
    billing.client.close()
    eventually(lambda: _at_work(product) == 0, LIVENESS_SECONDS)
    quiet_after = time.monotonic() - began
    time.sleep(max(0.0, LAST_FAULT_SECONDS - quiet_after))
    return quiet_after


def _answers(call: Callable[[], Any]) -> bool:
    try:
        return bool(call().is_success)
    except REFUSED:
        return False


def _read(product: Product, query: str) -> list[dict[str, Any]]:
    address = product.credentials.database_url
    with psycopg.connect(address, row_factory=dict_row) as connection:
        connection.read_only = True
        return list(connection.execute(query))


def _at_work(product: Product) -> int:
    try:
        return int(_read(product, AT_WORK)[0]["left"])
    except psycopg.OperationalError:
        return -1


def _history(product: Product, crowd: Crowd) -> History:
    """First what Countersign says, then the ledger: a late effect would be seen."""
    stories = tuple(_story(row) for row in _read(product, STORIES))
    checked = subprocess.run(
        [sys.executable, "manage.py", "verify_audit"],
        cwd=ROOT,
        env=product.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    billing = Billing(product.credentials)
    items = billing.client.get("/_ledger").raise_for_status().json()["items"]
    billing.client.close()
    return History(
        ledger=tuple(
            Effect(item["plan_id"], item["idempotency_key"], item["amount_cents"]) for item in items
        ),
        stories=stories,
        acknowledged=frozenset(crowd.acknowledged),
        chain_holds=checked.returncode == 0,
        chain_report=checked.stdout + checked.stderr,
    )


def _story(row: dict[str, Any]) -> Story:
    (change,) = [each for each in row["actions"] if each["field"] == "refunded_cents"]
    return Story(
        plan_id=row["plan_id"],
        key=row["idempotency_key"],
        cents=change["to"] - change["from"],
        status=row["status"],
        trail=row["trail"],
        outcomes=tuple(row["outcomes"]),
        approvals=row["approvals"],
        settled_after=row["settled_after"],
    )
