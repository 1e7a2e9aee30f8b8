"""Intents that the server plans itself: for targets that this process has no way to (A-12)."""

from __future__ import annotations

from typing import Final

from countersign_agent.flows import Flow
from countersign_agent.handing_over import Review
from countersign_agent.problems import NextAction
from countersign_agent.results import Intent
from countersign_agent.state import HeldIntent
from countersign_agent.views import Outcome, reviewed_outcome

PLANNING_SECONDS: Final = 10.0
"""How long the server's dry run is waited for."""
_FEED_LULL: Final = 5.0
"""Seconds without a further event after which a request has surely not been carried out."""


class Opening(Review):
    """One intent that is opened at the server."""

    def open(self, seconds: float = PLANNING_SECONDS) -> Flow[Outcome]:
        """Ask the server, once, and wait until it has a plan or says that there is none."""
        intent = yield from self._opened()
        ends = self.around.monotonic() + seconds
        while intent.plan is None and intent.next_action in ("wait", "replanning"):
            left = ends - self.around.monotonic()
            if left < 1:
                break
            intent = yield from self.api.wait_for_intent(intent, left)
        if intent.plan is not None:
            plan = yield from self.adopt(self.take(intent.plan), intent.plan)
            return reviewed_outcome(self.intent, plan)
        yield from self.around.keep(self.state)
        return _without_plan(intent)

    def _opened(self) -> Flow[Intent]:
        held = self.intent
        if held.intent_id:
            return (yield from self.api.read_intent(held.intent_id))
        found = (yield from self._found()) if held.opened_there else None
        held.opened_there = True
        yield from self.around.keep(self.state)
        intent = found or (yield from self._asked(held))
        held.intent_id = intent.intent_id
        yield from self.around.keep(self.state)
        return intent

    def _asked(self, held: HeldIntent) -> Flow[Intent]:
        return (
            yield from self.api.open_intent(
                target=held.target,
                operation=held.operation,
                task_id=self.state.task_id,
                inputs=held.inputs,
                summary=held.summary,
                reason=held.reason,
            )
        )

    def _found(self) -> Flow[Intent | None]:
        """An earlier request that was not answered: the feed of events knows if it arrived."""
        known = {each.intent_id for each in self.state.intents}
        cursor: str | None = None
        while True:
            page = yield from self.api.read_events(cursor, limit=200, wait=_FEED_LULL)
            for event in page.items:
                mine = event.type == "intent.opened" and event.task_id == self.state.task_id
                if mine and event.intent_id and event.intent_id not in known:
                    intent = yield from self.api.read_intent(event.intent_id)
                    if self._is_ours(intent):
                        return intent
            if not page.items:
                return None
            cursor = page.next

    def _is_ours(self, intent: Intent) -> bool:
        held = self.intent
        wanted = (held.target, held.operation, held.inputs)
        return (intent.target, intent.operation, intent.asked.inputs.encode()) == wanted


def _without_plan(intent: Intent) -> Outcome:
    action: NextAction = intent.next_action
    status = "planning" if intent.status == "open" else intent.status
    reason = intent.replan.reason or intent.replan.last_error if intent.replan else ""
    return Outcome(status, action, reason=reason or intent.closed_reason or "")
