"""What the support agent does, one small step at a time, over REST as any agent would."""

import json
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from demo.credentials import TARGET, Credentials

from .cases import Case, case_about, new_invoice

MOST_OPEN = 8
STOCK = 12
# A person who follows the README finds these untouched.
RESERVED = frozenset({"4412", "4471"})
OVER = frozenset({"committed", "rejected", "abandoned", "superseded", "mismatched", "failed"})
FORGOTTEN_AFTER = timedelta(minutes=20)
AMOUNT = re.compile(r"\d[\d,]{0,8}(?:\.\d{2})?")


class Refused(Exception):
    """An HTTP answer that is no success: status, code, and when to come again."""

    def __init__(self, answer: httpx.Response) -> None:
        code = _code(answer)
        super().__init__(f"{answer.request.method} {answer.request.url.path}: {code}")
        self.code = code
        after = answer.headers.get("Retry-After", "")
        self.retry_after = float(after) if re.fullmatch(r"[0-9]{1,3}", after) else 0.0


def _code(answer: httpx.Response) -> str:
    try:
        return f"{answer.status_code} {answer.json()['code']}"
    except (ValueError, KeyError, TypeError):
        return str(answer.status_code)


def accepted(answer: httpx.Response) -> Any:
    """The JSON of a success (None when it is empty); anything else raises Refused."""
    if not answer.is_success:
        raise Refused(answer)
    try:
        return answer.json() if answer.content else None
    except ValueError:
        raise Refused(answer) from None


@dataclass
class Desk:
    """The agent's desk: never more than `MOST_OPEN` intents on it."""

    app: httpx.Client
    billing: httpx.Client
    chance: random.Random = field(default_factory=random.Random)

    @classmethod
    def opened(cls, credentials: Credentials) -> "Desk":
        """A desk of the running demo."""
        return cls(credentials.as_agent(), credentials.billing_as_agent())

    def step(self) -> str:
        """Do the most useful thing; says what it was. Raises Refused or httpx.TransportError."""
        if note := self.answer_one_request():
            return note
        plans = self.latest_plans()
        if len(plans) >= MOST_OPEN:
            return self.tidy(plans)
        return self.open_case({action["target"] for plan in plans for action in plan["actions"]})

    def latest_plans(self) -> list[dict[str, Any]]:
        """The current plan of each intent that is not over, newest first."""
        page = accepted(self.app.get("/plans", params={"limit": 200}))
        return [
            plan
            for plan in page["items"]
            if plan["status"] not in OVER and plan["replaced_by"] is None
        ]

    def open_case(self, taken: set[str]) -> str:
        """Find an invoice that no open plan touches, and ask for a refund on it."""
        case = case_about(self._invoice(taken), self.chance)
        if self.chance.random() < 0.25:
            accepted(self.app.post("/intents", json=self._words(case) | {"inputs": case.inputs}))
            return f"{case.task_id}: asked for a refund on invoice/{case.inputs['invoice_id']}"
        plan_id = self.submit(case)
        return f"{case.task_id}: posted {plan_id} on invoice/{case.inputs['invoice_id']}"

    def submit(self, case: Case, **members: Any) -> str:
        """Dry-run at billing and hand the answer over as it came: 1-product, step 1."""
        inputs = json.dumps(case.inputs, sort_keys=True, separators=(",", ":"))
        headers = {"Content-Type": "application/json"}
        plan = accepted(self.billing.post("/refund/dry_run", content=inputs, headers=headers))
        body = self._words(case) | {"inputs": inputs, "plan": plan, "evidence": case.evidence}
        accepted(self.app.post("/plans", json=body | members))
        return str(plan["plan_id"])

    def _words(self, case: Case) -> dict[str, Any]:
        return {
            "target": TARGET,
            "operation": "refund",
            "task_id": case.task_id,
            "summary": case.summary,
            "reason": case.reason,
        }

    def _invoice(self, taken: set[str]) -> dict[str, Any]:
        free = [
            invoice
            for status in ("paid", "partially_refunded")
            for invoice in self._invoices(status)
            if f"invoice/{invoice['invoice_id']}" not in taken
            and invoice["invoice_id"] not in RESERVED
        ]
        if len(free) < STOCK:
            sale = new_invoice(self.chance)
            return dict(accepted(self.billing.post("/invoices", json=sale)))
        return self.chance.choice(free)

    def _invoices(self, status: str) -> list[dict[str, Any]]:
        query: dict[str, str | int] = {"status": status, "limit": 200}
        return list(accepted(self.billing.get("/invoices", params=query))["items"])

    def tidy(self, plans: list[dict[str, Any]]) -> str:
        """The desk is full: give up the oldest task that nobody has looked at for long."""
        oldest = plans[-1]
        expired = datetime.fromisoformat(oldest["expires_at"]) + FORGOTTEN_AFTER
        if oldest["status"] != "expired" or expired > datetime.now(UTC):
            return f"{len(plans)} plans are waiting, that is enough"
        accepted(self.app.post(f"/tasks/{oldest['task_id']}/end", json={"outcome": "withdrawn"}))
        return f"{oldest['task_id']}: the customer withdrew"

    def answer_one_request(self) -> str | None:
        """Take one re-plan that waits for the agent (changes requested), and plan again."""
        replan = accepted(self.app.post("/replans/claim", json={}))
        if replan is None:
            return None
        try:
            plan_id = self.submit(self._revised(replan), replan_id=replan["id"])
        except Refused as refused:
            failure = {"reason": f"billing answered {refused.code}"}
            accepted(self.app.post(f"/replans/{replan['id']}/failure", json=failure))
            return f"{replan['task_id']}: could not plan again ({refused.code})"
        return f"{replan['task_id']}: planned again as {plan_id}, after the reviewer's note"

    def _revised(self, replan: dict[str, Any]) -> Case:
        """The case as the reviewer wants it: the amount in the note, else half of the wish."""
        inputs = json.loads(replan["asked"]["inputs"])
        words = f"Planned again: {replan['reason'] or replan['cause']}"
        if replan["cause"] == "changes_requested":
            named = AMOUNT.search(replan["reason"])
            wish = float(named[0].replace(",", "")) * 100 if named else inputs["amount_cents"] / 2
            inputs["amount_cents"] = max(1, round(wish))
            words = f"The reviewer wrote: {replan['reason']}"
        return Case(replan["task_id"], inputs, replan["asked"]["summary"], words, [])
