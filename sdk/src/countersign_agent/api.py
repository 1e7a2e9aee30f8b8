"""The REST interface, once: every verb is a flow that the two clients run in their own way.

Safe requests, and those that a server takes once however often they come, are repeated until their
deadline; a request that would do something twice is repeated only when it surely never arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from countersign_agent import submissions
from countersign_agent.calling import LONGEST_WAIT, Caller, read_answer
from countersign_agent.exchanges import Answer
from countersign_agent.flows import Flow
from countersign_agent.results import (
    Abandonment,
    Claim,
    EndedTask,
    EventPage,
    Intent,
    Plan,
    PlanPage,
    Replan,
    Writes,
)
from countersign_agent.secret import Secret

Reason = Literal["task_end", "intent_changed", "expiry", "other"]
NOT_MODIFIED: Final = 304


class Api:
    """What an agent can ask the server for. Every verb raises `Refused` kinds or `Unanswered`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    # ── Plans ────────────────────────────────────────────────────────────────────────────────
    def submit_plan(
        self,
        *,
        target: str,
        operation: str,
        task_id: str,
        inputs: bytes | str | Mapping[str, Any],
        plan: Secret | Mapping[str, Any],
        summary: str = "",
        reason: str = "",
        evidence: Sequence[Mapping[str, str]] = (),
        replaces: str | None = None,
        replan_id: int | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[Plan]:
        """Hand over a dry run's answer, as it came (a Secret keeps it byte for byte).

        The same submission again answers with the plan that is there.
        """
        words = {"summary": summary, "reason": reason, "evidence": list(evidence)}
        links = {"replaces": replaces, "replan_id": replan_id, "idempotency_key": idempotency_key}
        wish = submissions.wish(target, operation, task_id, inputs, words | links)
        body = submissions.with_plan(wish, plan)
        answer = yield from self._caller.call("POST", "/plans", body=body, again=True)
        return _plan(answer)

    def read_plan(self, target: str, plan_id: str) -> Flow[Plan]:
        """The plan, in whatever status."""
        answer = yield from self._caller.call("GET", _path("plans", target, plan_id))
        return _plan(answer)

    def wait_for_plan(self, plan: Plan, seconds: float = LONGEST_WAIT) -> Flow[Plan]:
        """The plan as soon as it is other than this one; the same when nothing changes in time."""
        path = _path("plans", plan.target, plan.plan_id)
        answer = yield from self._caller.call("GET", path, wait=seconds, etag=plan.etag)
        return plan if answer.status == NOT_MODIFIED else _plan(answer)

    def list_plans(
        self,
        *,
        status: str | None = None,
        task_id: str | None = None,
        intent_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Flow[PlanPage]:
        """Your plans, newest first; `next` is the cursor of the page after."""
        query = _query(
            status=status, task_id=task_id, intent_id=intent_id, limit=limit, cursor=cursor
        )
        answer = yield from self._caller.call("GET", f"/plans{query}")
        return PlanPage.read(read_answer(answer))

    def abandon_plan(
        self, target: str, plan_id: str, reason: Reason, note: str = ""
    ) -> Flow[Abandonment]:
        """End the plan's intent. `abandon_noted`: a commit is in flight, the target decides."""
        path = f"{_path('plans', target, plan_id)}/abandonment"
        body = submissions.text({"reason": reason, "note": note or None})
        answer = yield from self._caller.call("POST", path, body=body, again=True)
        members = read_answer(answer)
        return Abandonment(Plan.read(members), members["abandonment"])

    def add_evidence(
        self, target: str, plan_id: str, label: str, *, text: str = "", url: str = ""
    ) -> Flow[Plan]:
        """Something found later, shown to people as the agent's words."""
        path = f"{_path('plans', target, plan_id)}/evidence"
        body = submissions.text({"label": label, "text": text or None, "url": url or None})
        answer = yield from self._caller.call("POST", path, body=body)
        return _plan(answer)

    # ── Intents ──────────────────────────────────────────────────────────────────────────────
    def open_intent(
        self,
        *,
        target: str,
        operation: str,
        task_id: str,
        inputs: bytes | str | Mapping[str, Any],
        summary: str = "",
        reason: str = "",
    ) -> Flow[Intent]:
        """Say what should be written; the server does the dry run. Not repeated when unanswered."""
        words = {"summary": summary, "reason": reason}
        body = submissions.text(submissions.wish(target, operation, task_id, inputs, words))
        answer = yield from self._caller.call("POST", "/intents", body=body)
        return _intent(answer)

    def read_intent(self, intent_id: str) -> Flow[Intent]:
        """What was asked, what is planned, what changed, the last decision."""
        answer = yield from self._caller.call("GET", _path("intents", intent_id))
        return _intent(answer)

    def wait_for_intent(self, intent: Intent, seconds: float = LONGEST_WAIT) -> Flow[Intent]:
        """The intent as soon as it is other than this one; the same when nothing changes."""
        path = _path("intents", intent.intent_id)
        answer = yield from self._caller.call("GET", path, wait=seconds, etag=intent.etag)
        return intent if answer.status == NOT_MODIFIED else _intent(answer)

    # ── Tasks ────────────────────────────────────────────────────────────────────────────────
    def report_writes(self, task_id: str, objects: Sequence[str], tool: str) -> Flow[Writes]:
        """A tool wrote to these objects; `["*"]`: it may have been any."""
        body = submissions.text({"objects": list(objects), "tool": tool})
        path = f"{_path('tasks', task_id)}/writes"
        answer = yield from self._caller.call("POST", path, body=body, again=True)
        return Writes.read(read_answer(answer))

    def end_task(self, task_id: str, outcome: str = "") -> Flow[EndedTask]:
        """The task is over: what is open of it is abandoned."""
        body = submissions.text({"outcome": outcome or None})
        path = f"{_path('tasks', task_id)}/end"
        answer = yield from self._caller.call("POST", path, body=body, again=True)
        return EndedTask.read(read_answer(answer))

    # ── Re-plans and events ──────────────────────────────────────────────────────────────────
    def claim_replan(
        self, replan_id: int | None = None, *, wait: float | None = None
    ) -> Flow[Claim | None]:
        """Lease a re-plan that waits for this agent for 60 s: any, or this one (again)."""
        body = submissions.text({"replan_id": replan_id})
        answer = yield from self._caller.call(
            "POST", "/replans/claim", body=body, wait=wait, again=replan_id is not None
        )
        return Claim.read(read_answer(answer)) if answer.body else None

    def fail_replan(self, replan_id: int, reason: str) -> Flow[Replan]:
        """It cannot be planned now, and why; people read the reason, and it is offered again."""
        body = submissions.text({"reason": reason})
        path = f"{_path('replans', str(replan_id))}/failure"
        answer = yield from self._caller.call("POST", path, body=body)
        return Replan.read(read_answer(answer))

    def read_events(
        self, after: str | None = None, *, limit: int | None = None, wait: float | None = None
    ) -> Flow[EventPage]:
        """What happened to your plans, in order. Keep `next`, and go on from there."""
        path = f"/events{_query(after=after, limit=limit)}"
        answer = yield from self._caller.call("GET", path, wait=wait)
        return EventPage.read(read_answer(answer))


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _query(**members: str | int | None) -> str:
    given = {name: value for name, value in members.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _plan(answer: Answer) -> Plan:
    return replace(Plan.read(read_answer(answer)), etag=answer.headers.get("etag", ""))


def _intent(answer: Answer) -> Intent:
    return replace(Intent.read(read_answer(answer)), etag=answer.headers.get("etag", ""))
