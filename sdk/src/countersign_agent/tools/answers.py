"""What a tool answers: JSON values with the contract's `next_action`, and never a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from countersign_agent.documents import as_json
from countersign_agent.errors import CountersignError, Refused
from countersign_agent.problems import NextAction
from countersign_agent.views import Outcome, PlanView, TaskEnd, Written

type Answer = dict[str, Any]

WHAT_NEXT: Final[Mapping[NextAction, str]] = {
    "wait": "A person has to decide, or it is being applied. Ask for the plan's status later.",
    "done": "Nothing is left to do.",
    "replan": "This plan is over. Propose the write again if it is still wanted.",
    "replanning": "A fresh plan is being made by itself. Ask for the plan's status later.",
    "stop": "It will not be done. Do not try again; tell whoever asked for it.",
    "investigate": "It is not known what happened. A person has to look; do not try another way.",
    "fix_request": "The request was wrong and nothing was done. Correct it.",
    "retry_same": "Nothing is known yet. Make exactly the same call again in a while.",
    "commit": "The plan was made and nobody was asked yet. Propose the write.",
}
_PLANNING: Final = "The plan is being made. Call propose_write again with the same arguments."
_CHANGES: Final = (
    "The person wants something else: read the note, and propose the changed inputs with this"
    " plan_id in `replaces`."
)


def about_plan(outcome: Outcome) -> Answer:
    """An outcome as a model needs it; keys and fingerprints stay where they are used."""
    answer = _answer(outcome.next_action, _what_next(outcome)) | {"status": outcome.status}
    if outcome.plan is not None:
        answer["plan"] = _plan(outcome.plan)
    if outcome.successor is not None:
        answer["successor"] = _plan(outcome.successor)
    return answer | _present(
        result=as_json(outcome.result),
        changed=as_json(outcome.changed),
        decision=as_json(outcome.decision),
        reason=outcome.reason,
    )


def about_writes(written: Written) -> Answer:
    """What a reported write did."""
    again = [*written.dirty, *written.stale]
    return _answer("replanning" if again else "done") | {
        "planned_again": again,
        "in_flight": list(written.in_flight),
        "reported": written.reported,
    }


def about_end(ended: TaskEnd) -> Answer:
    """What the end of the task left behind."""
    action: NextAction = "investigate" if ended.unresolved else "done"
    if not ended.recorded:
        action = "retry_same"
    return {**_answer(action), **as_json(ended)}


def about_error(error: CountersignError) -> Answer:
    """A refusal: what kind, in words, and what to do."""
    code = {"code": error.code} if isinstance(error, Refused) else {}
    return _answer(error.next_action) | {
        "error": {"kind": type(error).__name__, "detail": str(error), **code}
    }


def about_defect(error: Exception) -> Answer:
    """Something that must not happen. The message stays here: nobody knows what it holds."""
    detail = f"This tool failed inside ({type(error).__name__}). Nothing is known of the call."
    return _answer("investigate") | {"error": {"kind": "Defect", "detail": detail}}


def _what_next(outcome: Outcome) -> str:
    if outcome.status == "planning" and outcome.next_action in ("wait", "replanning"):
        return _PLANNING
    decided = outcome.decision
    if outcome.next_action == "replan" and decided and decided.verdict == "request_changes":
        return _CHANGES
    return WHAT_NEXT[outcome.next_action]


def _answer(action: NextAction, what_next: str = "") -> Answer:
    return {"next_action": action, "what_next": what_next or WHAT_NEXT[action]}


def _plan(plan: PlanView) -> Answer:
    shown = as_json(plan)
    for name in ("input_fingerprint", "idempotency_key"):
        del shown[name]
    return _present(**shown)


def _present(**members: Any) -> Answer:
    return {name: value for name, value in members.items() if value not in (None, "", [])}
