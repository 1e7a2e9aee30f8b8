"""Everything that this package raises on purpose.

Three families: what the server refused (`Refused`), what the guard refused before a request left
this process (`Misuse`), and what a target could not do (`TargetFault`). Each has the `next_action`
that an agent branches on. No message and no attribute holds a plan token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from countersign_agent.problems import NextAction, Problem


class CountersignError(Exception):
    """Whatever went wrong; the docstring of the class says what."""

    next_action: NextAction = "investigate"

    def __init__(
        self, message: str | None = None, *, next_action: NextAction | None = None
    ) -> None:
        super().__init__(message or " ".join((self.__doc__ or "").split()))
        self.next_action = next_action or type(self).next_action


class Unanswered(CountersignError):
    """The server gave no answer in time; the same call may be made again."""

    next_action: NextAction = "retry_same"

    def __init__(self, message: str | None = None, *, may_have_arrived: bool = True) -> None:
        super().__init__(message)
        self.may_have_arrived = may_have_arrived
        """Whether the server may have acted on it."""


class UnexpectedAnswer(CountersignError):
    """An answer came that no Countersign server of this version gives."""


# ── Refused by the server: one class per thing an agent can do about it ──────────────────────────
class Refused(CountersignError):
    """The server refused the request."""

    codes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, problem: Problem) -> None:
        where = "".join(f" ({each.pointer}: {each.detail})" for each in problem.errors[:3])
        super().__init__(f"{problem.code}: {problem.detail}{where}")
        self.problem = problem
        self.code = problem.code
        self.next_action = problem.next_action


class RequestFault(Refused):
    """The request is wrong, and the same one fails again."""

    next_action: NextAction = "fix_request"


class Unauthenticated(Refused):
    """The API key is missing, unknown, expired or revoked."""

    next_action: NextAction = "stop"
    codes = ("unauthenticated",)


class Forbidden(Refused):
    """The API key may not do this, or a policy forbids the write."""

    next_action: NextAction = "stop"
    codes = ("missing-scope", "not-allowed", "policy-denied", "machine-cannot-decide")


class NotFound(Refused):
    """There is nothing here, or it is another agent's."""

    next_action: NextAction = "stop"
    codes = ("not-found",)


class PlanUnusable(Refused):
    """The plan expires too soon, too late, or has expired: make a new dry run."""

    next_action: NextAction = "replan"
    codes = ("already-expired", "window-too-short", "window-too-long", "plan-expired")


class PlanAlreadySubmitted(Refused):
    """This plan ID was submitted before, with other content or by another agent."""

    next_action: NextAction = "replan"
    codes = ("plan-already-submitted",)


class PredecessorUnresolved(Refused):
    """The plan to be replaced is being committed, or its outcome is not known yet."""

    next_action: NextAction = "wait"
    codes = ("predecessor-unresolved", "commit-in-flight", "not-replannable")


class PredecessorCommitted(Refused):
    """The plan to be replaced was committed: nothing is left to replace."""

    next_action: NextAction = "done"
    codes = ("predecessor-committed",)


class TaskEnded(Refused):
    """The task has ended; nothing is accepted for it any more."""

    next_action: NextAction = "stop"
    codes = ("task-ended",)


class IntentClosed(Refused):
    """The intent is over: settled, abandoned or committed."""

    next_action: NextAction = "stop"
    codes = ("intent-closed",)


class ReplanNotHeld(Refused):
    """The re-plan is not leased to this agent any more."""

    next_action: NextAction = "stop"
    codes = ("replan-not-held",)


class TooManyPending(Refused):
    """The agent has as many open plans as it may have: wait until people decided some."""

    next_action: NextAction = "wait"
    codes = ("too-many-pending",)


class RateLimited(Refused):
    """More requests in a minute than the agent may send."""

    next_action: NextAction = "retry_same"
    codes = ("rate-limited",)


class ServerAway(Refused):
    """The server's database is away. Nothing was stored."""

    next_action: NextAction = "retry_same"
    codes = ("database-away",)


class ServerFault(Refused):
    """Something went wrong at the server."""

    codes = ("internal-error",)


# ── Refused here, before a request leaves the process ────────────────────────────────────────────
class Misuse(CountersignError):
    """The guard refused, and nothing was sent."""

    next_action: NextAction = "fix_request"


class UnknownPlan(Misuse):
    """No plan of this ID is in the state of this task."""


class PlanReplaced(Misuse):
    """A newer plan has taken this one's place; an older one is never sent."""

    def __init__(self, plan_id: str, replaced_by: str) -> None:
        super().__init__(f"{plan_id} was replaced by {replaced_by}, and is never sent.")
        self.plan_id, self.replaced_by = plan_id, replaced_by


class TokenDisagreement(Misuse):
    """The plan token is not the one that belongs to this plan: an older plan's, or none."""


class FingerprintDisagreement(Misuse):
    """An input fingerprint is not the one that the target gave with the plan."""


class InputsChanged(Misuse):
    """The inputs are not those that the plan was made for: make a new plan for them."""

    next_action: NextAction = "replan"


class OutcomeUnknown(Misuse):
    """It is not known whether an earlier commit was applied; only its own retry may follow."""

    next_action: NextAction = "retry_same"

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"Whether {plan_id} was applied is not known yet. No other plan may be made or sent "
            f"for the same thing; ask for {plan_id} again."
        )
        self.plan_id = plan_id


class PlanSubmitted(Misuse):
    """The plan was handed over: people decide about it, and the server commits it."""

    next_action: NextAction = "wait"


class PlanOver(Misuse):
    """Nothing more can be done with this plan."""

    next_action: NextAction = "stop"


class TaskOver(Misuse):
    """The task has ended here: its tokens are dropped."""

    next_action: NextAction = "stop"


class StateHeld(Misuse):
    """Another process works on this task, or holds this file."""

    next_action: NextAction = "retry_same"


class StateDamaged(Misuse):
    """The stored state cannot be read; nothing is guessed from it."""

    next_action: NextAction = "investigate"


class NotConfigured(Misuse):
    """The guard has no client, or no target of that name."""


# ── A target that did not give what was asked ────────────────────────────────────────────────────
class TargetFault(CountersignError):
    """The target did not do its part."""


class DryRunRefused(TargetFault):
    """The target refused the dry run: the write is not possible like this."""

    next_action: NextAction = "fix_request"

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.status} {problem.code}: {problem.detail}")
        self.problem = problem


class TargetAway(TargetFault):
    """The target gave no usable answer to a dry run or a read; nothing was changed."""

    next_action: NextAction = "retry_same"


class TargetMisbehaved(TargetFault):
    """The target's answer breaks its contract."""


def family(root: type[CountersignError] = CountersignError) -> Iterator[type[CountersignError]]:
    """Every class of the tree, parents first."""
    yield root
    for child in root.__subclasses__():
        yield from family(child)


_BY_CODE: dict[str, type[Refused]] = {
    code: kind for kind in family(Refused) if issubclass(kind, Refused) for code in kind.codes
}


def refusal(problem: Problem) -> Refused:
    """The exception for a problem: by its code, else by what the server says to do."""
    by_code = _BY_CODE.get(problem.code)
    if by_code is not None:
        return by_code(problem)
    if problem.next_action == "fix_request" or 400 <= problem.status < 500:
        return RequestFault(problem)
    return ServerFault(problem)
