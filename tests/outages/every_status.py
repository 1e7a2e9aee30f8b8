"""One plan in each status, brought there by the same clicks and answers as ever."""

from __future__ import annotations

import threading
from typing import Any, Final

from plans.status import Status
from tests.faults.scripted_target import CHANGED, Step, answer, drop, hang
from tests.journeys.people import Person, Plan, is_
from tests.outages.cast import StageAgent
from tests.outages.stage import Stage, new_invoice

CLOSED_BY_THE_TARGET: Final[dict[Status, Step]] = {
    Status.CONFLICTED: answer(409, {"changed": CHANGED}),
    Status.FAILED: answer(400),
    Status.EXPIRED: answer(410),
}
CLOSED_BY_ADA: Final = {Status.REJECTED: "reject", Status.CHANGES_REQUESTED: "request_changes"}


class EveryStatus:
    """`plans` by status; the commit that is in flight ends when `gate` is set."""

    def __init__(self, stage: Stage, agent: StageAgent, ada: Person) -> None:
        self.stage, self.agent, self.ada, self.target = stage, agent, ada, stage.target
        self.gate = threading.Event()
        self.plans: dict[Status, Plan] = {}
        self._close()
        self.plans[Status.PENDING] = agent.fresh()
        waiting = {name: agent.fresh() for name in ("unresolved", "unknown", "sent", "held")}
        # From here reads say nothing, resends are minutes away, and nobody else is sent.
        self.target.says = answer(503)
        stage.sql("UPDATE plans_target SET retry_delays_seconds = '{600}'")
        self._lose_track(waiting["unknown"], waiting["unresolved"])
        self._send(waiting["sent"])
        stage.sql("UPDATE plans_target SET circuit_opened_at = clock_timestamp()")
        ada.approve_now(waiting["held"])
        self.plans[Status.APPROVED] = waiting["held"]
        self.plans[Status.VERIFYING] = agent.submit(agent.dry_run(new_invoice()))

    def statuses(self) -> dict[str, str]:
        """What each plan is now, by what it was when all of them were there."""
        return {str(was): self.agent.read(plan)["status"] for was, plan in self.plans.items()}

    def mend(self) -> None:
        """The target is as it should be, and whatever waits is due."""
        self.target.says = None
        self.stage.sql("UPDATE plans_target SET circuit_opened_at = NULL")
        for mark in ("verify_at", "next_attempt_at", "next_read_at"):
            past = "clock_timestamp() - interval '1 second'"
            self.stage.sql(f"UPDATE plans_plan SET {mark} = {past} WHERE {mark} IS NOT NULL")

    def _close(self) -> None:
        for status, step in CLOSED_BY_THE_TARGET.items():
            self.target.play(step)
            self._sent(status, self.agent.fresh())
        self._sent(Status.COMMITTED, self.agent.fresh())
        for status, verdict in CLOSED_BY_ADA.items():
            self.plans[status] = self.agent.fresh()
            self.ada.decide(self.plans[status], verdict, "No.")
        self.plans[Status.STALE] = dirty = self.agent.fresh()
        self._post(f"/tasks/{dirty['task_id']}/writes", {"objects": ["*"], "tool": "t"})
        self.plans[Status.ABANDONED] = given_up = self.agent.fresh()
        self._post(f"/plans/billing/{given_up['plan_id']}/abandonment", {"reason": "other"})
        self.plans[Status.SUPERSEDED] = old = self.agent.fresh()
        draft = self.agent.dry_run(new_invoice())
        self.agent.submit(draft, replaces=old["plan_id"], task_id=old["task_id"])
        lie = self.agent.dry_run(new_invoice())
        self.target.plans[lie.plan["plan_id"]]["input_fingerprint"] = "sha256:another"
        wrong = self.agent.submit(lie)
        self.plans[Status.MISMATCHED] = self.agent.wait(wrong, is_("mismatched"))

    def _sent(self, status: Status, plan: Plan) -> None:
        self.ada.approve_now(plan)
        self.plans[status] = self.agent.wait(plan, is_(status))

    def _lose_track(self, unknown: Plan, unresolved: Plan) -> None:
        for plan in (unknown, unresolved):
            self.target.play(drop())
            self._sent(Status.UNKNOWN, plan)
        ago = "clock_timestamp() - interval '1 day'"
        late = f"UPDATE plans_plan SET unknown_since = {ago}, next_read_at = {ago}"
        self.stage.sql(f"{late} WHERE plan_id = %s", unresolved["plan_id"])
        self.plans[Status.UNKNOWN] = unknown
        self.plans[Status.UNRESOLVED] = self.agent.wait(unresolved, is_("unresolved"))

    def _send(self, plan: Plan) -> None:
        self.stage.patience(20)
        self.target.play(hang(applies=True, until=self.gate))
        self._sent(Status.COMMITTING, plan)

    def _post(self, path: str, body: dict[str, Any]) -> None:
        assert self.agent.app.post(path, json=body).status_code == 200
