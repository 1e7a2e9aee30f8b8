"""Who meets in a journey: the agent's program, people at their browsers, and billing as judge."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx

from demo.credentials import Credentials
from demo.reviewer import Form, Reviewer
from tests.journeys.product import PATIENCE

type Plan = dict[str, Any]


def is_(*statuses: str) -> Callable[[Plan], bool]:
    """For a wait: the plan has come to one of these statuses."""
    return lambda plan: plan["status"] in statuses


@dataclass(frozen=True, slots=True)
class Draft:
    """A dry run's answer, and the inputs that it was made for; it holds a token: never printed."""

    inputs: str
    plan: dict[str, Any] = field(repr=False)


class Agent:
    """The support agent's program: its API key, its dry runs, its long polls."""

    def __init__(self, credentials: Credentials) -> None:
        self.app = credentials.as_agent()
        self.billing = credentials.billing_as_agent()

    def close(self) -> None:
        self.app.close()
        self.billing.close()

    def dry_run(self, invoice: str, cents: int = 48_000, lives: int | None = None) -> Draft:
        """`lives`: seconds; billing's usual ten minutes otherwise."""
        inputs = f'{{"amount_cents":{cents},"invoice_id":"{invoice}"}}'
        headers = {"Content-Type": "application/json"}
        if lives is not None:
            headers["Plan-Seconds"] = str(lives)
        answer = self.billing.post("/refund/dry_run", content=inputs, headers=headers)
        return Draft(inputs, _said(answer, 200))

    def submit(self, draft: Draft, **members: Any) -> Plan:
        """Post the dry run's answer as it came; each invoice is a task of its own."""
        body = self._wish(draft.inputs) | {"plan": draft.plan} | members
        return _said(self.app.post("/plans", json=body), 201)

    def pending(self, invoice: str, cents: int = 48_000, lives: int | None = None) -> Plan:
        """A plan that people can decide on."""
        plan = self.submit(self.dry_run(invoice, cents, lives))
        return self.wait(plan, lambda now: now["status"] != "verifying")

    def ask(self, invoice: str, cents: int) -> dict[str, Any]:
        """`POST /intents`: the app makes the dry run."""
        inputs = {"amount_cents": cents, "invoice_id": invoice}
        body = self._wish(json.dumps(inputs)) | {"inputs": inputs}
        return _said(self.app.post("/intents", json=body), 201)

    def _wish(self, inputs: str) -> dict[str, Any]:
        return {
            "target": "billing",
            "operation": "refund",
            "task_id": f"invoice-{json.loads(inputs)['invoice_id']}",
            "inputs": inputs,
            "reason": "Arrived damaged.",
        }

    def read(self, plan: Plan) -> Plan:
        return _said(self.app.get(f"/plans/billing/{plan['plan_id']}"), 200)

    def wait(self, plan: Plan, reached: Callable[[Plan], bool], seconds: float = PATIENCE) -> Plan:
        """Long-poll a plan until it is as wanted."""
        return self.watch(f"/plans/billing/{plan['plan_id']}", reached, seconds)[-1]

    def watch(
        self, path: str, reached: Callable[[Any], bool], seconds: float = PATIENCE
    ) -> list[dict[str, Any]]:
        """Long-poll until it is as wanted; everything that was told on the way."""
        told: list[dict[str, Any]] = []
        tag, deadline = "", time.monotonic() + seconds
        while time.monotonic() < deadline:
            known = {"If-None-Match": tag} if tag else {}
            answer = self.app.get(path, headers={"Prefer": "wait=20"} | known)
            if answer.status_code == httpx.codes.NOT_MODIFIED:
                continue
            told.append(_said(answer, 200))
            tag = answer.headers["ETag"]
            if reached(told[-1]):
                return told
        raise AssertionError(f"{path} stays at {[each['status'] for each in told]}")

    def successor(self, dead: Plan) -> Plan:
        """The plan that replaced a dead one, once people can decide on it.

        It may have died as well: a report of a write that is sent again reaches it, too.
        """
        while True:
            dead = self.wait(dead, lambda now: bool(now["replaced_by"]))
            fresh = {"plan_id": dead["replaced_by"]}
            dead = self.wait(fresh, lambda now: now["status"] == "pending" or now["replaced_by"])
            if dead["status"] == "pending":
                return dead

    def events(self, plan: Plan) -> list[str]:
        """The feed from its very beginning, as far as it is about this plan: where it went."""
        told, cursor = [], ""
        while True:
            query = {"limit": "200"} | ({"after": cursor} if cursor else {})
            page = _said(self.app.get("/events", params=query), 200)
            told += [e["to"] for e in page["items"] if e["plan_id"] == plan["plan_id"] and e["to"]]
            if not page["items"]:
                return told
            cursor = page["next"]

    def claim(self) -> dict[str, Any] | None:
        """A re-plan that waits for the agent."""
        answer = self.app.post("/replans/claim", json={}, headers={"Prefer": "wait=5"})
        return None if answer.status_code == 204 else _said(answer, 200)

    def end(self, plan: Plan) -> None:
        """The task is over: whatever is still open is abandoned."""
        body = {"outcome": "the customer withdrew"}
        _said(self.app.post(f"/tasks/{plan['task_id']}/end", json=body), 200)


class Person(Reviewer):
    """Somebody signed in, who uses pages and forms and nothing else."""

    def __init__(self, credentials: Credentials, name: str) -> None:
        super().__init__(credentials.base_url)
        self.sign_in(name, credentials.password(name))

    def sees(self, plan: Plan) -> str:
        """The words of the plan's page."""
        return words(self.page(plan["plan_id"], "billing"))

    def form(self, plan: Plan) -> Form:
        """The decision form of the page that is open in front of the person."""
        return self.decision_form(self.page(plan["plan_id"], "billing"))

    def decide(
        self, plan: Plan, verdict: str = "approve", note: str = "", form: Form | None = None
    ) -> httpx.Response:
        """Press a button of the plan's page, or of one that was opened before (`form`)."""
        form = form or self.form(plan)
        return self.browser.post(
            f"/plans/billing/{plan['plan_id']}/decision/",
            data=form.fields | {"verdict": verdict, "note": note},
        )

    def approve_now(self, plan: Plan) -> None:
        """Open the page, press Approve, and find that it was taken."""
        answer = self.decide(plan)
        assert answer.status_code == httpx.codes.SEE_OTHER, words(answer.text)

    def export(self, form: str, **filters: str) -> str:
        """The audit trail as a file."""
        answer = self.browser.get("/audit/export", params={"format": form, **filters})
        assert answer.status_code == 200, answer.text
        return answer.text

    def trail(self, **filters: str) -> list[dict[str, Any]]:
        """The audit trail's events, oldest first."""
        return [json.loads(line) for line in self.export("jsonl", **filters).splitlines()]


class Billing:
    """The target as its owner sees it: moves the world, orders faults, and has the ledger."""

    def __init__(self, credentials: Credentials) -> None:
        self.client = credentials.billing_as_app()

    def new_invoice(self, cents: int = 48_000) -> str:
        """An invoice that nobody else touches."""
        answer = self.client.post("/invoices", json={"amount_cents": cents})
        return str(_said(answer, 201)["invoice_id"])

    def refund_elsewhere(self, invoice: str, cents: int) -> None:
        """Another process pays back a part."""
        path = f"/invoices/{invoice}/external_refund"
        _said(self.client.post(path, json={"amount_cents": cents}), 200)

    def arm(self, mode: str, seconds: float) -> None:
        """The next commit goes wrong in this way."""
        _said(self.client.post("/_faults", json={"commit": mode, "seconds": seconds}), 200)

    def effects(self, invoice: str) -> list[dict[str, Any]]:
        """What was really paid back by commits, by the ledger."""
        items = _said(self.client.get("/_ledger"), 200)["items"]
        return [effect for effect in items if effect["invoice_id"] == invoice]


class _Words(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def words(page: str) -> str:
    """A page's text without its marks, in single spaces."""
    return re.sub(r"\s+", " ", "".join(_Words(page).parts))


def _said(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, f"{answer.url.path}: {answer.status_code} {answer.text}"
    return dict(answer.json())


def actions(events: list[dict[str, Any]]) -> list[str]:
    return [event["action"] for event in events]


def the(action: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    """The one event of this kind."""
    (found,) = [event for event in events if event["action"] == action]
    return found
