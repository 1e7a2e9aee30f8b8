"""The verbs of one task, for both ways out. No verb takes a token to send, or gives one away."""

from __future__ import annotations

from collections.abc import Sequence

from countersign_agent.ending import end
from countersign_agent.flows import Flow, alone
from countersign_agent.reviewed import ReviewedWay
from countersign_agent.views import PlanView, TaskEnd, Written, plan_view


class Task(ReviewedWay):
    """Everything that an agent can do within one task."""

    def plans(self) -> Flow[tuple[PlanView, ...]]:
        """Every plan of the task, the oldest first; what a restarted program goes on from."""
        state = yield from self.open()
        return tuple(plan_view(intent, plan) for intent, plan in state.plans())

    def wrote(self, objects: Sequence[str], tool: str) -> Flow[Written]:
        """A tool wrote to these objects (`["*"]`: to any); reads are free and never reported.

        Plans that cover them are dirty: planned again before anything of them is sent.
        """
        return (yield from self.written(objects, tool))

    def end(self, outcome: str = "") -> Flow[TaskEnd]:
        """The task is over: every token is dropped, what is open is abandoned and recorded."""
        return (yield from alone(self.lock, self._end(outcome)))

    def _end(self, outcome: str) -> Flow[TaskEnd]:
        state = yield from self.open()
        ended = yield from end(self.around, state, outcome)
        yield from self.close()
        return ended
