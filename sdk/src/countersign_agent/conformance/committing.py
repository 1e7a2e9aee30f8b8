"""Checks that apply plans: once, for one key, for one body, whatever is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final

from countersign_agent.conformance.bench import (
    Bench,
    NotRun,
    Over,
    Wrong,
    broken,
    new_key,
    replayed,
)
from countersign_agent.conformance.findings import Look
from countersign_agent.conformance.planned import Planned
from countersign_agent.conformance.strictness import COMMITS, read_answer
from countersign_agent.documents import NotStrict
from countersign_agent.exchanges import Answer
from countersign_agent.problems import read_problem

AT_ONCE: Final = 4
# The app's own retries of one unknown commit take 33 s, and it stops at half of the retention.
SHORTEST_RETENTION: Final = 120.0
# A first refusal with one of these is confirmed by a read before it is believed (T-7).
CONFIRMED: Final = (409, 410, 412)
TWICE: Final = "changed the world a second time (or somebody else did in that moment)"


def commit(bench: Bench) -> Iterator[str]:
    """T-6: what a success is, and that it reads back."""
    plan, key = bench.plan(), new_key()
    answer = bench.commit(plan, key)
    if bench.is_applied(answer, plan):
        bench.commits += 1
        bench.oldest = bench.oldest or (plan, key, answer)
    else:
        yield from _no_success(bench, answer, plan)
    if replayed(answer):
        yield "a first commit says that it is replayed"
    told = bench.body(bench.read(plan.plan_id))
    if told.get("status") != "applied":
        yield f"an applied plan reads back as {bench.quote(told.get('status'))}, not applied"
    elif told.get("result") != bench.body(answer).get("result"):
        yield "an applied plan reads back with another `result` than its commit gave"


def _no_success(bench: Bench, answer: Answer, plan: Planned) -> Iterator[str]:
    if answer.status >= 300:
        why = broken(answer) + _restless(bench, answer)
        raise Wrong(f"the commit of a fresh plan {bench.said(answer)} instead of 200{why}")
    try:
        body = read_answer(answer.body, COMMITS)
    except NotStrict as fault:
        raise Wrong(f"the commit answered {answer.status}, and {fault}") from None
    if body.get("plan_id") != plan.plan_id:
        yield "the success names another `plan_id`, or none"
    if body.get("status") != "applied":
        yield f"the success has `status` {bench.quote(body.get('status'))}, not applied"
    if "result" not in body:
        yield "the success has no `result`"


def _restless(bench: Bench, answer: Answer) -> str:
    """What a plan covers that moved between its dry run and a commit right after it."""
    changed = bench.body(answer).get("changed") if answer.status == 409 else None
    items = changed if isinstance(changed, list) else []
    paths = [one.get("path") for one in items if isinstance(one, dict)]
    if not paths:
        return ""
    named = ", ".join(bench.quote(each) for each in paths[:5])
    return f"; {named} moved: does the plan cover what changes by itself, like a time of reading?"


def replay(bench: Bench) -> Iterator[str]:
    """T-9: the same key again is the stored answer, and happens once."""
    plan, key = bench.plan(), new_key()
    first = bench.applied(plan, key)
    between = bench.plan_or_answer(plan.inputs)
    second = bench.commit(plan, key, attempt=2)
    yield from _same_answer(bench, first, second, "the same key again")
    after = bench.plan_or_answer(plan.inputs)
    if _moved(between, after):
        yield f"the same key again {TWICE}"


def _moved(between: Planned | Answer, after: Planned | Answer) -> bool:
    """Whether two dry runs saw two worlds; one that finds nothing to do sees one, too."""
    if isinstance(between, Planned) and isinstance(after, Planned):
        return between.before != after.before
    return isinstance(between, Planned) != isinstance(after, Planned)


def _same_answer(bench: Bench, first: Answer, second: Answer, what: str) -> Iterator[str]:
    if second.status != first.status:
        yield f"{what} {bench.said(second)} instead of the stored {first.status}"
        return
    if bench.body(second) != bench.body(first):
        yield f"{what} gave another answer than the stored one"
    if not replayed(second):
        yield f"{what} gave an answer without `Idempotent-Replayed: true`"


def key_reused(bench: Bench) -> Iterator[str]:
    """T-7: one key, two bodies: 422 and the code that says so."""
    first, key = bench.plan(), new_key()
    second = bench.plan(first.inputs)
    bench.applied(first, key)
    answer = bench.commit(second, key)
    if answer.status != 422:
        yield f"the same key with another plan's body {bench.said(answer)} instead of 422"
    elif (code := read_problem(answer).code) != "idempotency-key-reused":
        said = f"the code {bench.quote(code)}" if code else "no code"
        yield f"the 422 for a reused key has {said}, not idempotency-key-reused"
    if bench.state(second) == "applied":
        bench.commits += 1
        yield "the same key with another plan's body applied the other plan"


def key_needed(bench: Bench) -> Iterator[str]:
    """A commit without a key could not be repeated safely."""
    plan = bench.plan()
    answer = bench.commit(plan, "")
    yield from _refused(bench, answer, "a commit without an Idempotency-Key")
    yield from _still_open(bench, plan, "a commit without a key")


def fingerprint(bench: Bench) -> Iterator[str]:
    """Token and fingerprint belong together: one of another plan is refused."""
    plan = bench.plan()
    other = plan.fingerprint[:-1] + ("1" if plan.fingerprint[-1] != "1" else "2")
    answer = bench.commit(plan, fingerprint=other)
    yield from _refused(bench, answer, "a commit with another fingerprint")
    yield from _still_open(bench, plan, "a commit with another fingerprint")


def _refused(bench: Bench, answer: Answer, what: str) -> Iterator[str]:
    if 200 <= answer.status < 300:
        bench.commits += 1
        yield f"{what} was carried out: it {bench.said(answer)}"
    elif not 400 <= answer.status < 500:
        yield f"{what} {bench.said(answer)} instead of 400 or 422"


def _still_open(bench: Bench, plan: Planned, what: str) -> Iterator[str]:
    if (state := bench.state(plan)) not in ("open", "applied"):
        yield Look(f"{what} used the plan up: it reads back as {bench.quote(state)}")


def at_once(bench: Bench) -> Iterator[str]:
    """T-9, T-12: several commits of one plan in the same moment are one."""
    plan, key = bench.plan(), new_key()
    yield from _one_winner(bench, plan, [key] * AT_ONCE, "with one key")
    other = bench.plan()
    keys = [new_key() for _ in range(AT_ONCE)]
    yield from _one_winner(bench, other, keys, "with a key each")


def _one_winner(bench: Bench, plan: Planned, keys: list[str], how: str) -> Iterator[str]:
    answers = _sent_at_once(bench, plan, keys)
    heard = [answer for answer in answers if isinstance(answer, Answer)]
    fresh = [one for one in heard if bench.is_applied(one, plan) and not replayed(one)]
    state = _or_end(lambda: bench.state(plan))
    # Answers may be lost or wrong: then the plan itself tells whether it happened.
    bench.commits += len(fresh) or state == "applied"
    sent = f"{len(keys)} commits at once {how}"
    if len(fresh) > 1:
        # A stored answer says `Idempotent-Replayed: true`; these do not.
        yield f"{len(fresh)} of {sent} say that they applied it"
    if not fresh and len(heard) == len(keys):
        applied = state == "applied"
        yield f"none of {sent} " + ("says that it applied the plan" if applied else "was applied")
    lost = [one for one in heard if one.status >= 500]
    if lost:
        yield f"{len(lost)} of {sent} {bench.said(lost[0])}"
    for end in (*answers, state):
        if isinstance(end, Exception):
            raise end
    if state != "applied":
        yield f"after commits at once {how} the plan reads back as {bench.quote(state)}"


def _sent_at_once(bench: Bench, plan: Planned, keys: list[str]) -> list[Answer | Exception]:
    barrier = Barrier(len(keys))

    def send(key: str) -> Answer | Exception:
        barrier.wait(timeout=30)
        return _or_end(lambda: bench.commit(plan, key))

    with ThreadPoolExecutor(len(keys)) as threads:
        return list(threads.map(send, keys))


def _or_end[T](call: Callable[[], T]) -> T | Exception:
    """What it gives, or the exception that ends the check: raised when all is said."""
    try:
        return call()
    except (Wrong, Over, NotRun) as end:
        return end


def after_apply(bench: Bench) -> Iterator[str]:
    """T-7, SEC-3: an applied plan is used up, for every key."""
    plan = bench.plan()
    bench.applied(plan, new_key())
    between = bench.plan_or_answer(plan.inputs)
    answer = bench.commit(plan)
    if 200 <= answer.status < 300:
        yield f"an applied plan with a new key {bench.said(answer)} instead of 409"
    elif answer.status not in CONFIRMED:
        yield (
            f"an applied plan with a new key {bench.said(answer)}, which says “never applied”; "
            "409 says “look first”"
        )
    if (state := bench.state(plan)) != "applied":
        yield f"after another commit an applied plan reads back as {bench.quote(state)}"
    after = bench.plan_or_answer(plan.inputs)
    if _moved(between, after):
        bench.commits += 1
        yield f"an applied plan with a new key {TWICE}"


def retention(bench: Bench) -> Iterator[str]:
    """T-9: how long a key is kept is declared, and at least kept for this run."""
    declared = bench.subject.key_retention_seconds
    if declared is None:
        yield "how long keys are kept is not declared (--key-retention, `key_retention_seconds`)"
    elif declared < SHORTEST_RETENTION:
        needed = f"{SHORTEST_RETENTION:.0f} s"
        yield f"keys are kept for {declared:.0f} s; the app's own retries need {needed}"
    if not bench.allowance.commits:
        return
    if bench.oldest is None:
        bench.applied(bench.plan(), new_key())
    plan, key, first = bench.oldest or (bench.plan(), new_key(), Answer(0))
    again = bench.commit(plan, key, attempt=2)
    if again.status == first.status and bench.body(again) == bench.body(first):
        return
    yield f"the first key of this run was forgotten by its end: it {bench.said(again)}"
