"""Which policies match a plan, and the risk and the demands that come of it (B-7, B-10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from approvals.models import Policy
from approvals.policies import conditions, facts
from approvals.policies.conditions import Unclear
from approvals.policies.demands import Demands, Match, added_up
from audit.statements import Statement
from plans.models import Operation, Plan
from plans.oversight import RISK_RANK, Wish

_ACTIVE: Final = Statement(lambda: Policy.objects.filter(active=True).order_by("name"))


@dataclass(frozen=True, slots=True)
class Judgement:
    risk: str
    demands: Demands


def judge(plan: Plan) -> Judgement:
    """The policies of this moment on what the target told: one query."""
    policies = _ACTIVE.all()
    risk = _own_risk(plan)
    if not policies:
        return Judgement(risk, Demands())
    found = facts.of_plan(plan)
    matches: dict[str, Match] = {}
    while True:
        matches |= {match.policy.name: match for match in _matching(policies, found, risk)}
        raised = _raised(risk, matches.values())
        if raised == risk:
            return Judgement(risk, added_up(matches.values()))
        # Conditions may read the risk, so a raised one asks all of them again.
        risk = raised


def denial(wish: Wish) -> str | None:
    """The name of a policy that denies what the agent itself says; None: people will see it.

    What is not known yet is withheld, and only a clear yes denies: the target's own values are
    judged once they have been read.
    """
    policies = [policy for policy in _ACTIVE.all() if policy.deny]
    if not policies:
        return None
    operation = wish.operation
    names: facts.Facts = {
        "target": operation.target.name,
        "operation": operation.name,
        "agent": wish.agent.name,
        "inputs": dict(wish.inputs),
    }
    found = [names] if wish.actions is None else facts.of_actions(names, wish.actions)
    for match in _matching(policies, found, operation.risk):
        if not match.unclear and not match.withheld:
            return match.policy.name
    return None


def _own_risk(plan: Plan) -> str:
    """The operation's risk; at least high where nothing could be read back (B-10)."""
    risk = plan.operation.risk
    return risk if plan.verified else _higher(risk, Operation.Risk.HIGH)


def _higher(one: str, other: str) -> str:
    return min(one, other, key=RISK_RANK.__getitem__)


def _raised(risk: str, matches: Iterable[Match]) -> str:
    """Policies raise a risk and never lower it; an unclear one counts as critical (B-7)."""
    for match in matches:
        risk = _higher(risk, match.policy.raise_risk or risk)
        if match.unclear:
            risk = Operation.Risk.CRITICAL.value
    return risk


def _matching(
    policies: Iterable[Policy], found: Sequence[facts.Facts], risk: str
) -> Iterable[Match]:
    for policy in policies:
        if match := _match(policy, [each | {"risk": risk} for each in found]):
            yield match


def _match(policy: Policy, found: Sequence[facts.Facts]) -> Match | None:
    """True of one object is true of the plan; else no answer is never a no (SEC-28, T-2)."""
    unclear: Unclear | None = None
    for each in found:
        try:
            if conditions.holds(policy.when, each):
                return Match(policy)
        except Unclear as fault:
            unclear = unclear if unclear and not unclear.reads else fault
    if unclear is None:
        return None
    return Match(policy, withheld=unclear.reads) if unclear.reads else Match(policy, str(unclear))
