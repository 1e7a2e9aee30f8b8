"""The direct way's commit: once, with one key, until its outcome is proved (T-3 … T-9)."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Final

from countersign_agent.errors import PlanOver
from countersign_agent.exchanges import Answer
from countersign_agent.flows import Flow, do
from countersign_agent.secret import Secret
from countersign_agent.state import Attempt, HeldIntent, HeldPlan, TaskState
from countersign_agent.surroundings import Surroundings
from countersign_agent.targets import CommitCall
from countersign_agent.verdicts import Verdict, confirm, judge, read_state, says_open

# Attempts that left nothing behind: they do not count as sent.
_HARMLESS: Final = frozenset({"not_sent", "later"})
_JITTER: Final = 0.2


def unusable(around: Surroundings, intent: HeldIntent, plan: HeldPlan) -> str:
    """Why a plan may not be sent for the first time: `stale`, `expired`, or nothing (empty)."""
    if plan.dirty:
        return "stale"
    margin = plan.margin(around.target(intent.target).seconds)
    return "expired" if around.clock() + margin >= plan.expires_at else ""


class Commit:
    """One plan's way from its first attempt to a proof, or to the end of patience."""

    def __init__(
        self, around: Surroundings, state: TaskState, intent: HeldIntent, plan: HeldPlan
    ) -> None:
        self.around, self.state, self.intent, self.plan = around, state, intent, plan
        self.target = around.target(intent.target)
        self.quiet_until_read = False

    def carry_out(self, seconds: float) -> Flow[Verdict | None]:
        """Send, and go on until it is proved what became of it; None: it is not, or not sent.

        Only `_send` and `_read` leave the process. The plan's status and its attempts are stored
        before and after each.
        """
        ends = self.around.monotonic() + seconds
        while self._sent or not unusable(self.around, self.intent, self.plan):
            verdict = yield from self._send() if self._may_send() else self._read()
            if verdict is not None and (yield from self._settled(verdict)):
                return verdict
            pause = self._pause(verdict)
            if self.around.monotonic() + pause >= ends:
                break
            yield from self.around.wait(pause)
        return None

    # ── One step ────────────────────────────────────────────────────────────────────────────
    def _send(self) -> Flow[Verdict]:
        """One attempt, stored before it leaves; a crash from here on leaves it `begun`."""
        plan, unknown = self.plan, self._sent > 0
        attempt = Attempt(len(plan.attempts) + 1, self.around.clock())
        call = self._call(attempt.number)
        plan.attempts.append(attempt)
        plan.status = "committing"
        yield from self.around.keep(self.state)
        exchange = yield from do(self.target.commit, call)
        verdict = judge(exchange, plan.plan_id, earlier_unknown=unknown)
        if verdict.believed_after_a_read:
            verdict = yield from self._confirmed(verdict)
        attempt.outcome, attempt.reason = verdict.kind, verdict.reason
        if verdict.kind == "unknown" and isinstance(exchange, Answer):
            # It talks, and proves nothing: ask for the plan's state before it is sent again.
            return (yield from self._read()) or verdict
        return verdict

    def _call(self, number: int) -> CommitCall:
        token, plan = self.plan.token, self.plan
        if token is None:
            raise PlanOver(f"The token of {plan.plan_id} is gone.")
        members = {"plan_token": token.reveal(), "input_fingerprint": plan.fingerprint}
        body = Secret(json.dumps(members, ensure_ascii=False, separators=(",", ":")))
        return CommitCall(self.intent.operation, plan.plan_id, body, plan.key, number)

    def _read(self) -> Flow[Verdict | None]:
        """The plan's state by its ID: what it proves, if anything."""
        plan = self.plan
        exchange = yield from do(self.target.read, plan.plan_id)
        verdict = read_state(
            exchange,
            plan.plan_id,
            readable=self.target.promises.consumed_plans_readable,
            past_expiry=self.around.clock() >= plan.expires_at,
        )
        working = verdict is not None and verdict.kind == "unknown"
        self.quiet_until_read = working
        return verdict

    def _confirmed(self, first: Verdict) -> Flow[Verdict]:
        """A first 409, 410 or 412 is believed when the plan was not applied behind our back."""
        plan = self.plan
        exchange = yield from do(self.target.read, plan.plan_id)
        readable = self.target.promises.consumed_plans_readable
        read = read_state(exchange, plan.plan_id, readable=readable, past_expiry=False)
        return confirm(first, read, open_now=says_open(exchange, plan.plan_id))

    # ── What it means ───────────────────────────────────────────────────────────────────────
    def _settled(self, verdict: Verdict) -> Flow[bool]:
        """Write down what was proved; whether that is the end of it."""
        plan = self.plan
        plan.reason = verdict.problem.detail or verdict.reason if verdict.problem else ""
        match verdict.kind:
            case "applied":
                plan.status, plan.result = "committed", verdict.result
            case "conflicted" | "expired" | "failed":
                plan.status, plan.changed = verdict.kind, verdict.changed
            case "unknown":
                plan.status = "unresolved" if verdict.partly else "unknown"
            case "not_sent" | "later":
                plan.status = "unknown" if self._sent else "planned"
        done = plan.over or plan.status == "unresolved"
        if done:
            plan.drop_token()
        yield from self.around.keep(self.state)
        return done

    @property
    def _sent(self) -> int:
        """Attempts that may have been applied."""
        return sum(each.outcome not in _HARMLESS for each in self.plan.attempts)

    def _may_send(self) -> bool:
        """Whether the next step is a commit; a read otherwise (T-9, T-11)."""
        plan, promises, now = self.plan, self.target.promises, self.around.clock()
        if not self._sent:
            return True
        if plan.token is None or not promises.idempotency or self.quiet_until_read:
            return False
        first = next(each for each in plan.attempts if each.outcome not in _HARMLESS)
        kept = timedelta(seconds=promises.key_retention_seconds / 2)
        in_time = now < plan.expires_at or promises.enforces_expiry
        few = self._sent <= len(self.around.patience.retry_delays)
        return few and in_time and now < first.begun_at + kept

    def _pause(self, verdict: Verdict | None) -> float:
        """Seconds until the next step. What the target asks for is a lower bound."""
        patience = self.around.patience
        tries = max(1, len(self.plan.attempts))
        may = self._may_send()
        delay = patience.retry_delays[min(tries, len(patience.retry_delays)) - 1]
        pause = delay * random.uniform(1 - _JITTER, 1 + _JITTER) if may else patience.read_every
        if self.quiet_until_read:
            pause = min(pause, 1.0)
        return max(pause, (verdict.pause if verdict else None) or 0.0)
