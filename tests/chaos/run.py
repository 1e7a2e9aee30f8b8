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
from urllib.parse import urlsplit

import psycopg
from psycopg.rows import dict_row

from tests.chaos.checker import Effect, Figures, History, Story, Verdict, figures, judge
from tests.chaos.crowd import REFUSED, Crowd, ask, hand_out, review
from tests.chaos.faults import Hammer, spoil_answers
from tests.chaos.weather import FAIR, Weather
from tests.journeys.people import Agent, Billing, Person
from tests.journeys.product import ROOT, Product, eventually

# A commit that billing still holds after the last fault must have come to its end.
HELD_SECONDS: Final = 2.0
CONFIG: Final = """
[[targets]]
name = "billing"
base_url = "{url}"
credential = "env:BILLING_TOKEN"
connect_timeout_seconds = 1
read_timeout_seconds = 1
total_timeout_seconds = 2
retry_delays_seconds = [0.2, 0.5, 1, 2]
unknown_deadline_seconds = {unknown_deadline}
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
  extract(epoch FROM plan.closed_at - plan.approved_at)::float AS settled_after,
  extract(epoch FROM clock_timestamp() - plan.status_at)::float AS stands
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


def play(
    seed: int, seconds: float, say: Callable[[str], None] = print, weather: Weather = FAIR
) -> Outcome:
    """Start the product in a home of its own, break it for `seconds`, and judge what is left.

    The home stays when the judge found what no mutant explains; its address is said.
    """
    product = Product(**weather.environment)
    kept = False
    try:
        product.start()
        _configure(product, weather)
        crowd = Crowd(seed, weather)
        _rage(product, crowd, seconds)
        calm = _calm(product, weather)
        history = _history(product, crowd, calm)
        verdict = judge(history)
        kept = bool(verdict.findings) and not weather.mutant
        return Outcome(verdict, figures(history), dict(crowd.met), calm.quiet_after)
    finally:
        if kept:
            product.stop()
            say(f"Everything that is left of it is in {product.home}")
        else:
            product.wipe()


def _configure(product: Product, weather: Weather) -> None:
    """Little patience, so that much goes wrong in little time; and billing as the weather says."""
    file = product.home / "chaos.toml"
    url, deadline = product.credentials.billing_url, weather.unknown_deadline
    file.write_text(CONFIG.format(url=url, unknown_deadline=deadline))
    token = product.credentials.raw["targets"]["billing"]["token"]
    product.manage("apply_config", str(file), BILLING_TOKEN=token)
    if weather.billing:
        address = urlsplit(product.credentials.database_url)._replace(path="/billing")
        with psycopg.connect(address.geturl()) as connection:
            connection.execute(weather.billing)


def _rage(product: Product, crowd: Crowd, seconds: float) -> None:
    """Everybody at once, until the time is over; an actor's own fault is raised here."""
    with ExitStack() as stack:
        ada = Person(product.credentials, "ada")
        stack.callback(ada.browser.close)
        count = crowd.weather.agents
        agents = [Agent(product.credentials) for _ in range(count + 1)]
        billings = [Billing(product.credentials) for _ in range(count + 1)]
        for agent, billing in zip(agents, billings, strict=True):
            stack.callback(agent.close)
            stack.callback(billing.client.close)
        parts: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            *((ask, (crowd, f"agent {n}", agents[n], billings[n])) for n in range(count)),
            *((review, (crowd, f"reviewer {n}", ada)) for n in range(crowd.weather.reviewers)),
            (hand_out, (crowd, agents[count])),
            (spoil_answers, (crowd, billings[count])),
        ]
        if crowd.weather.blows:
            parts.append((Hammer(crowd, product).swing, ()))
        with ThreadPoolExecutor(len(parts)) as pool:
            running = [pool.submit(part, *arguments) for part, arguments in parts]
            timer = threading.Timer(seconds, crowd.stop.set)
            timer.start()
            for each in running:
                each.result()
            timer.join()


@dataclass(frozen=True, slots=True)
class Calm:
    """`quiet_after`: seconds from the last fault until nothing waited for a machine."""

    began: float
    quiet_after: float

    @property
    def lasts(self) -> float:
        return time.monotonic() - self.began


def _calm(product: Product, weather: Weather) -> Calm:
    """No more faults: wait until everything that people decided on has ended, or should have."""
    billing = Billing(product.credentials)
    began = time.monotonic()
    order = {"commit": "none"}
    assert eventually(lambda: _answers(lambda: billing.client.post("/_faults", json=order)), 60)
    billing.client.close()
    eventually(lambda: _at_work(product) == 0, weather.liveness)
    calm = Calm(began, time.monotonic() - began)
    time.sleep(max(0.0, weather.longest_fault + HELD_SECONDS - calm.quiet_after))
    return calm


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


def _history(product: Product, crowd: Crowd, calm: Calm) -> History:
    """First what Countersign says, then the ledger: a late effect would be seen."""
    calm_for = calm.lasts
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
        calm_for=calm_for,
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
        stands=row["stands"],
    )
