"""Where the story is played: the agent's API, the target, and Ada's browser."""

import json
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from demo.agent.desk import accepted
from demo.credentials import TARGET, Credentials
from demo.reviewer import Reviewer

Plan = dict[str, Any]
PATIENCE = 1800.0
EVENTS_SECONDS = 15.0
UNDECIDED = ("verifying", "pending")


class Untrue(Exception):
    """A claim of the story does not hold."""


def expect(holds: bool, claim: str) -> None:
    """Print a claim that holds; raise Untrue with it otherwise."""
    if not holds:
        raise Untrue(f"not true: {claim}")
    print(f"   ok: {claim}", flush=True)


def only[T](items: Sequence[T], what: str) -> T:
    """The one of `items`; Untrue when there are none or more."""
    if len(items) != 1:
        raise Untrue(f"not true: there is one {what} (there are {len(items)})")
    return items[0]


def money(cents: int) -> str:
    """48000 as `480.00 USD`."""
    return f"{cents / 100:.2f} USD"


class Stage:
    """One telling of the story, with a task and invoices of its own."""

    def __init__(self, credentials: Credentials, auto: bool) -> None:
        self.credentials = credentials
        self.auto = auto
        self.task_id = f"story-{time.time_ns() // 1_000_000}"
        self.app = credentials.as_agent()
        self.dry_runs = credentials.billing_as_agent()
        self.billing = credentials.billing_as_app()
        self.ada = Reviewer(credentials.base_url)
        self.cursor = ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in (self.app, self.dry_runs, self.billing, self.ada.browser):
            client.close()

    def open(self) -> None:
        """Sign Ada in, and remember where the agent's events end now."""
        self.ada.sign_in("ada", self.credentials.password("ada"))
        self._read_events()

    def title(self, number: int, words: str) -> None:
        """Announce a step."""
        print(f"\n{number}. {words}", flush=True)

    def say(self, words: str) -> None:
        """Print what happens."""
        print(f"   {words}", flush=True)

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    # ── The target ──────────────────────────────────────────────────────────────────────────
    def new_invoice(self, amount_cents: int) -> str:
        """An invoice that nobody else touches."""
        body = {
            "amount_cents": amount_cents,
            "customer": "Wren Hill Ceramics",
            "description": "Kiln controller",
        }
        return str(accepted(self.billing.post("/invoices", json=body))["invoice_id"])

    def move_world(self, plan: Plan, amount_cents: int) -> None:
        """Another process pays back a part, behind everybody's back."""
        number = plan["actions"][0]["target"].removeprefix("invoice/")
        path = f"/invoices/{number}/external_refund"
        accepted(self.billing.post(path, json={"amount_cents": amount_cents}))

    def arm(self, mode: str, seconds: int) -> None:
        """The next commit goes wrong in this way."""
        accepted(self.billing.post("/_faults", json={"commit": mode, "seconds": seconds}))

    def effects(self, plan: Plan) -> list[dict[str, Any]]:
        """What the target really did on the plan's invoice, by its own ledger."""
        number = plan["actions"][0]["target"].removeprefix("invoice/")
        items = accepted(self.billing.get("/_ledger"))["items"]
        return [effect for effect in items if effect["invoice_id"] == number]

    # ── The agent ───────────────────────────────────────────────────────────────────────────
    def submit(self, invoice: str, cents: int, summary: str, window: int | None = None) -> Plan:
        """Dry-run, and post the answer as it came; `window` asks billing for a short plan."""
        inputs = json.dumps(
            {"amount_cents": cents, "invoice_id": invoice}, sort_keys=True, separators=(",", ":")
        )
        headers = {"Content-Type": "application/json"}
        if window is not None:
            headers["Plan-Seconds"] = str(window)
        plan = accepted(self.dry_runs.post("/refund/dry_run", content=inputs, headers=headers))
        body = {
            "target": TARGET,
            "operation": "refund",
            "task_id": self.task_id,
            "inputs": inputs,
            "plan": plan,
            "summary": summary,
            "reason": "Part of the story of the demo.",
            "evidence": [{"label": "Customer's mail", "text": "Please see to this soon."}],
        }
        return dict(accepted(self.app.post("/plans", json=body)))

    def wait(self, plan: Plan, reached: Callable[[Plan], bool], seconds: float, what: str) -> Plan:
        """Long-poll the plan until it has `reached` what is waited for; Untrue after `seconds`."""
        path, tag = f"/plans/{TARGET}/{plan['plan_id']}", ""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            headers = {"Prefer": f"wait={max(1, min(25, int(left)))}"}
            answer = self.app.get(path, headers=headers | ({"If-None-Match": tag} if tag else {}))
            if answer.status_code == httpx.codes.NOT_MODIFIED:
                self.pause(0.05)  # a server that does not wait must not be hammered
                continue
            now: Plan = accepted(answer)
            if reached(now):
                return now
            tag = answer.headers["ETag"]
        raise Untrue(f"{what} of {plan['plan_id']} did not come within {seconds:.0f} s")

    def successor(self, dead: Plan, status: str) -> Plan:
        """The revision that a re-plan made of a dead plan, once people can decide on it."""
        replaced = self.wait(dead, lambda now: bool(now["replaced_by"]), 90, "a re-plan")
        expect(replaced["status"] == status, f"the old plan stays {status}")
        fresh = {"plan_id": replaced["replaced_by"]}
        fresh = self.wait(fresh, lambda now: now["status"] == "pending", 60, "a pending plan")
        expect(fresh["replaces"] == dead["plan_id"], f"{fresh['plan_id']} replaces it")
        return fresh

    def times_told(self, plan: Plan, status: str) -> int:
        """How many events of this telling say that the plan reached `status`."""
        deadline = time.monotonic() + EVENTS_SECONDS
        while time.monotonic() < deadline:
            self._read_events()
            told = [e for e in self.events if e["plan_id"] == plan["plan_id"]]
            if reached := [event for event in told if event["to"] == status]:
                return len(reached)
            self.pause(0.5)
        return 0

    def _read_events(self) -> None:
        """Read on from the cursor to the end of what there is."""
        while True:
            query = {"limit": "200"} | ({"after": self.cursor} if self.cursor else {})
            page = accepted(self.app.get("/events", params=query))
            self.events += page["items"]
            self.cursor = page["next"] or self.cursor
            if not page["items"]:
                return

    def end_task(self, plan: Plan) -> None:
        """The agent is done; what is open is abandoned."""
        path = f"/tasks/{plan['task_id']}/end"
        accepted(self.app.post(path, json={"outcome": "story told"}))

    # ── Ada ─────────────────────────────────────────────────────────────────────────────────
    def approve(self, plan: Plan) -> float | None:
        """Ada approves: by the page's form (the `time.monotonic()` of the click), or in person."""
        plan = self.wait(plan, lambda now: now["status"] == "pending", 30, "a pending plan")
        if not self.auto:
            self.say(f"please approve as ada: {plan['links']['review']}")
            self.say("(her password is in .demo/credentials.json)")
            self.wait(plan, lambda now: now["status"] not in UNDECIDED, PATIENCE, "a decision")
            return None
        form = self.ada.decision_form(self.ada.page(plan["plan_id"], TARGET))
        clicked = time.monotonic()
        answer = self.ada.approve(plan["plan_id"], TARGET, form)
        expect(answer.status_code == httpx.codes.SEE_OTHER, "Ada approved")
        return clicked
