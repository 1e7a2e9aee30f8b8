"""The counting target where commits of one plan meet: none wins, or the winner is not heard."""

from __future__ import annotations

import time
from typing import Any

from tests.conformance.counting import Ask, Counting, Plan, Refusal, Reply
from tests.conformance.faults.fault import Fault


class NobodyWins(Counting):
    """Whoever meets another commit of the plan gives way, and so does the other."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

    def find(self, body: dict[str, Any]) -> Plan:
        plan = super().find(body)
        if plan.status == "open" and self.met.count(plan.plan_id) > 1:
            raise Refusal(409, "in-progress")
        return plan

    def commit(self, ask: Ask) -> Reply:
        self.met.append(ask.headers["plan-id"])
        time.sleep(0.3)
        return super().commit(ask)


class WinsUnheard(Counting):
    """It applies the plan, once, and breaks while it answers."""

    def commit(self, ask: Ask) -> Reply:
        super().commit(ask)
        raise Refusal(500, "broken-pipe")


class WinsInSilence(Counting):
    """It applies the plan, once, and nobody ever hears of it."""

    def commit(self, ask: Ask) -> Reply:
        reply = super().commit(ask)
        time.sleep(1.5)
        return reply


_BROKEN = "4 of 4 commits at once with one key answered 500 “broken-pipe”"
FAULTS = (
    Fault(NobodyWins, "at-once", "none of 4 commits at once with one key was applied", alone=True),
    Fault(WinsUnheard, "at-once", _BROKEN, alone=True),
)
