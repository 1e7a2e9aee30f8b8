"""What a check works with: plans, reads and commits at the target, each with one clear end.

A call that gets no answer ends the check that made it, with a finding; a target that stops
answering ends the run.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from countersign_agent.conformance.clocks import skew
from countersign_agent.conformance.planned import Planned, faults, take
from countersign_agent.conformance.quoting import Quoting
from countersign_agent.conformance.strictness import COMMITS, read_answer
from countersign_agent.conformance.subject import Allowance, MoveFailed, Subject
from countersign_agent.conformance.wire import Call, Who, Wire
from countersign_agent.documents import NotStrict
from countersign_agent.exchanges import NOTHING, Answer, NotSent
from countersign_agent.problems import read_problem, retry_after
from countersign_agent.secret import Secret

# So many calls without an answer, one after the other, and no more are made.
PATIENCE: Final = 3
# A target that asks for patience gets it so often, and so long; seconds.
TIMES_LATER: Final = 4
LONGEST_PAUSE: Final = 10.0
# Beyond `expires_at`: a target may cut the moment to whole seconds.
GRACE: Final = timedelta(seconds=1.2)
USED_UP: Final = (
    "all inputs are true by now: give more of them, two to go to and fro, or one for each plan"
)
_WORDS: Final = {
    "timeout": "no answer in time",
    "deadline": "no answer in time",
    "too-large": "an answer of more than 1 MiB",
    "malformed": "an answer that is no HTTP, or that is compressed",
}


class Wrong(Exception):
    """The target broke its contract in a way that ends the check. Safe to print."""


class Silence(Wrong):
    """A call got no whole answer. `late`: none came in time."""

    def __init__(self, words: str, *, late: bool) -> None:
        super().__init__(words)
        self.late = late


class NotRun(Exception):
    """The check could not be made; the message says what it lacks. Safe to print."""


class Over(Exception):
    """No further check can be made. `by_target`: it is the target's doing."""

    def __init__(self, words: str, *, by_target: bool = True) -> None:
        super().__init__(words)
        self.by_target = by_target


class Bench:
    """One run at one target. Its methods raise Wrong, NotRun and Over, and nothing else."""

    def __init__(self, subject: Subject, wire: Wire, allowance: Allowance) -> None:
        self.subject, self.wire, self.allowance = subject, wire, allowance
        self.quote = Quoting(wire.secrets)
        self.ends = time.monotonic() + allowance.run_seconds
        self.commits = 0
        self.oldest: tuple[Planned, str, Answer] | None = None
        """The first plan that was applied, its key, and the answer."""
        self.skew = 0.0
        """Seconds that the target's clock is ahead, by its latest answer."""
        self._turn = 0
        self._silent = 0
        self._lock = threading.Lock()
        self._dying: list[Planned] | None = None

    def now(self) -> datetime:
        return datetime.now(UTC)

    # ── Calls ───────────────────────────────────────────────────────────────────────────────
    def send(self, call: Call) -> Answer:
        """A whole answer, of whatever kind; one that asks for patience is waited for."""
        for _ in range(TIMES_LATER):
            answer = self._sent(call)
            if answer.status != 429:
                return answer
            asked = retry_after(answer)
            time.sleep(1.0 if asked is None else min(asked, LONGEST_PAUSE))
        raise Over("the target limits the pace of calls (429), and did not relent", by_target=False)

    def _sent(self, call: Call) -> Answer:
        if time.monotonic() > self.ends:
            raise Over("the time for the whole run was over", by_target=False)
        sent = self.now()
        exchange = self.wire.send(call)
        if isinstance(exchange, Answer):
            self._silent = 0
            self.skew = skew(exchange.headers.get("date", ""), sent, self.now()) or 0.0
            return exchange
        if isinstance(exchange, NotSent):
            raise Over(f"the target cannot be reached ({exchange.reason})")
        with self._lock:
            self._silent += 1
        where = f"{call.method} {call.path}"
        why = _WORDS.get(exchange.reason, "the connection broke off")
        if self._silent >= PATIENCE:
            raise Over(f"{PATIENCE} calls in a row got no answer (the last, {where}: {why})")
        raise Silence(f"{where}: {why}", late="in time" in why)

    def dry_run(
        self, body: bytes, *, who: Who = Who.APP, headers: dict[str, str] | None = None
    ) -> Answer:
        return self.send(Call("POST", self.subject.dry_run(), body, headers or {}, who))

    def read(self, plan_id: str, *, who: Who = Who.APP) -> Answer:
        if not self.subject.plan_path:
            raise NotRun("needs a way to read plans back (plan_path)")
        return self.send(Call("GET", self.subject.plan(plan_id), who=who))

    def commit(
        self,
        plan: Planned,
        key: str | None = None,
        *,
        token: Secret | None = None,
        fingerprint: str | None = None,
        who: Who = Who.APP,
        attempt: int = 1,
    ) -> Answer:
        """One commit of a plan as the app sends it; an empty `key` leaves the header out."""
        members = {
            "plan_token": (token or plan.token).reveal(),
            "input_fingerprint": fingerprint or plan.fingerprint,
        }
        headers = {"Plan-Id": plan.plan_id, "Attempt": str(attempt)}
        key = new_key() if key is None else key
        if key:
            quoted = self.subject.key_style == "sf-string"
            headers["Idempotency-Key"] = f'"{key}"' if quoted else key
        body = json.dumps(members, separators=(",", ":")).encode()
        return self.send(Call("POST", self.subject.commit(), body, headers, who))

    # ── Plans ───────────────────────────────────────────────────────────────────────────────
    def plan(self, inputs: bytes | None = None, *, short: bool = False) -> Planned:
        """A fresh plan, for these inputs or for the first that the target will plan."""
        found = self.plan_or_answer(inputs, short=short)
        if isinstance(found, Planned):
            return found
        if self.is_settled(found):
            raise NotRun(USED_UP)
        why = self.said(found) if found.status >= 300 else "the answer is none"
        raise NotRun(f"the dry run gave no plan: {why}")

    def plan_or_answer(
        self, inputs: bytes | None = None, *, short: bool = False
    ) -> Planned | Answer:
        """A plan; or the answer that is none."""
        wishes = [inputs] if inputs is not None else self._wishes()
        headers = dict(self.subject.short_plans if short else NOTHING)
        for wish in wishes:
            answer = self.dry_run(wish, headers=headers)
            if answer.status == 200:
                return self._planned(answer, wish)
            if not self.is_settled(answer):
                break
            self._turn += 1
        return answer

    def _wishes(self) -> list[bytes]:
        pool = self.subject.inputs
        return [pool[(self._turn + place) % len(pool)] for place in range(len(pool))]

    def _planned(self, answer: Answer, inputs: bytes) -> Planned | Answer:
        try:
            body = read_answer(answer.body)
        except NotStrict:
            return answer
        if next(faults(body), None) is not None:
            return answer
        plan = take(body, inputs)
        self.quote.hide(plan.token)
        return plan

    def dying(self) -> list[Planned]:
        """Two plans that are past their expiry now. Waits for it, once in a run."""
        if self._dying is None:
            plans = [self.plan(short=True) for _ in range(2)]
            last = max(plan.expires_at for plan in plans)
            # It is the target's clock that decides.
            wait = (last + GRACE - self.now()).total_seconds() + max(0.0, -self.skew)
            if wait > self.allowance.wait_seconds:
                lacks = "; let the target make a short one (--short-plans), or wait (--wait)"
                raise NotRun(f"the plan lives {wait:.0f} s more{lacks}")
            if time.monotonic() + wait > self.ends:
                raise NotRun("the run ends before a plan expires")
            time.sleep(max(0.0, wait))
            self._dying = plans
        return self._dying

    def applied(self, plan: Planned, key: str) -> Answer:
        """The answer to a commit that has to succeed."""
        answer = self.commit(plan, key)
        if not self.is_applied(answer, plan):
            raise NotRun(f"a plan could not be applied: {self.said(answer)}")
        self.commits += 1
        if self.oldest is None:
            self.oldest = plan, key, answer
        return answer

    def mover(self, plan: Planned) -> Callable[[], None]:
        """What changes something that this plan covers: the hook, or another plan like it."""
        if self.allowance.move is not None:
            return self._hook(self.allowance.move)
        if not self.allowance.commits:
            raise NotRun("needs --move-state, or --commit")
        other = self.plan(plan.inputs)
        return lambda: (self.applied(other, new_key()), None)[1]

    def restorer(self) -> Callable[[], None] | None:
        """What undoes a move; None: nobody said how."""
        restore = self.allowance.restore
        return None if restore is None or self.allowance.move is None else self._hook(restore)

    def _hook(self, hook: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                hook()
            except MoveFailed as fault:
                raise NotRun(f"the world did not move: {fault}") from None

        return run

    # ── What an answer says ─────────────────────────────────────────────────────────────────
    def body(self, answer: Answer) -> dict[str, Any]:
        """The strict JSON object in it; empty for anything else."""
        try:
            return read_answer(answer.body, COMMITS)
        except NotStrict:
            return {}

    def is_applied(self, answer: Answer, plan: Planned) -> bool:
        """Whether it is a success as the app believes one (T-6)."""
        body = self.body(answer)
        whole = body.get("plan_id") == plan.plan_id and "result" in body
        return 200 <= answer.status < 300 and whole and body.get("status") == "applied"

    def is_settled(self, answer: Answer) -> bool:
        """Whether the dry run says that the wish is true already."""
        return read_problem(answer).code == "nothing-to-change"

    def state(self, plan: Planned) -> object:
        """The plan's `status` as the target reads it back."""
        answer = self.read(plan.plan_id)
        if answer.status != 200:
            raise Wrong(f"reading the plan back {self.said(answer)}")
        return self.body(answer).get("status")

    def said(self, answer: Answer) -> str:
        """An answer in a few words that are safe to print: `answered 409 “state-changed”`."""
        code = read_problem(answer).code if answer.status >= 400 else ""
        return f"answered {answer.status}" + (f" {self.quote(code)}" if code else "")


def replayed(answer: Answer) -> bool:
    """Whether the answer says of itself that it is a stored one."""
    return answer.headers.get("idempotent-replayed", "").lower() in ("true", "?1")


def broken(answer: Answer) -> str:
    """Where to look for the reason of a 5xx: the answer does not tell it."""
    return "; the target's log says why" if answer.status >= 500 else ""


def new_key() -> str:
    """An idempotency key that was never used."""
    return f"check_{uuid.uuid4().hex}"
