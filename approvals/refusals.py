"""A target that refuses the app's credential: since when, and what waits (T-2, T-7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from approvals.papers import Papers
from plans.outcomes import CREDENTIAL_REFUSED
from plans.status import Status


@dataclass(frozen=True, slots=True)
class Refusal:
    """`said`: what it answered to; `sends`: whether approved plans wait for an operator."""

    at: datetime
    said: str
    sends: bool


def refusal(papers: Papers) -> Refusal | None:
    """What there is to say on the page of a plan; None: its credential was not refused."""
    return _to_a_commit(papers) or _to_a_read(papers)


def _to_a_commit(papers: Papers) -> Refusal | None:
    """The credential's circuit: it concerns every plan that is still to come, and its cause."""
    plan = papers.plan
    opened_at, told = plan.target.circuit_opened_at, (plan.problem or {}).get("status")
    if opened_at is None or (plan.is_terminal and told not in CREDENTIAL_REFUSED):
        return None
    return Refusal(opened_at, plan.target.circuit_reason, sends=True)


def _to_a_read(papers: Papers) -> Refusal | None:
    """While a plan waits for the target's word on it, and the last thing it heard was a refusal."""
    plan, at = papers.plan, papers.health.refused_at
    waits_since = {Status.VERIFYING: plan.received_at, Status.UNKNOWN: plan.first_sent_at}
    since = waits_since.get(Status(plan.status))
    if at is None or since is None or at < since:
        return None
    return Refusal(at, papers.health.fault, sends=False)
