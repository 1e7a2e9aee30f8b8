"""Checks of a plan's other ends: the world moved, or its time is over. Both are for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from countersign_agent.conformance.bench import Bench, NotRun, new_key
from countersign_agent.conformance.findings import Look
from countersign_agent.conformance.planned import Planned
from countersign_agent.exchanges import Answer
from countersign_agent.instants import read_instant
from countersign_agent.problems import read_problem


def conflict(bench: Bench) -> Iterator[str]:
    """T-7: the world moved: 409, what changed, and when the plan was made."""
    plan, answer = _refused_as_moved(bench)
    if 200 <= answer.status < 300:
        bench.commits += 1
        yield f"the world moved, and the plan was applied all the same: it {bench.said(answer)}"
        return
    if answer.status not in (409, 412):
        yield f"the world moved, and the commit {bench.said(answer)} instead of 409"
        return
    body = bench.body(answer)
    yield from _changed(body.get("changed"))
    try:
        told = read_instant(body.get("plan_created_at"))
    except ValueError:
        yield "the 409 has no `plan_created_at` that is an RFC 3339 time with an offset"
    else:
        if "created_at" in plan.told and told != read_instant(plan.told["created_at"]):
            yield "`plan_created_at` of the 409 is not the plan's `created_at`"


def _refused_as_moved(bench: Bench) -> tuple[Planned, Answer]:
    plan = bench.plan()
    bench.mover(plan)()
    return plan, bench.commit(plan, new_key())


def _changed(items: Any) -> Iterator[str]:
    """T-7: without paths a 409 proves nothing, and the outcome would stay unknown."""
    if not isinstance(items, list) or not items:
        yield "the 409 has no `changed` that names at least one path"
        return
    for number, each in enumerate(items):
        if not isinstance(each, dict) or not isinstance(each.get("path"), str) or not each["path"]:
            yield f"`changed/{number}` of the 409 has no `path`"
            continue
        missing = [name for name in ("planned", "current") if name not in each]
        if missing:
            yield f"`changed/{number}` of the 409 lacks {' and '.join(missing)}"
        elif each["planned"] == each["current"]:
            yield f"`changed/{number}` of the 409 has the same value for planned and current"


def final(bench: Bench) -> Iterator[str]:
    """T-8: `not_applied` is a final word, even when the world moves back."""
    plan = bench.plan()
    bench.mover(plan)()
    key = new_key()
    first = bench.commit(plan, key)
    if first.status not in (409, 412):
        raise NotRun(f"the moved world was not refused: it {bench.said(first)}")
    state = bench.state(plan)
    if state not in ("not_applied", "open"):
        yield f"a plan that was refused as moved reads back as {bench.quote(state)}"
    elif state == "open":
        yield Look("a plan that was refused as moved reads back as open: that promises nothing")
    back = bench.restorer()
    if back is not None:
        back()
    yield from _insisted(bench, plan, key, state)


def _insisted(bench: Bench, plan: Planned, key: str, state: object) -> Iterator[str]:
    """Further commits of a plan whose first was refused, and what its state says after them."""
    for what, answer in (
        ("the same key again", bench.commit(plan, key, attempt=2)),
        ("a new key", bench.commit(plan)),
    ):
        if 200 <= answer.status < 300:
            bench.commits += 1
            promise = "" if state == "open" else f" after it said {bench.quote(state)}"
            yield f"a plan that was refused as moved was applied by {what}{promise}"
            return
        if answer.status >= 500:
            yield f"a plan that was refused as moved, and {what}: it {bench.said(answer)}"
    if (later := bench.state(plan)) != state:
        yield f"its state read {bench.quote(state)}, and {bench.quote(later)} later"


def expired(bench: Bench) -> Iterator[str]:
    """T-8: past its time a plan reads back as expired."""
    plan = bench.dying()[0]
    answer = bench.read(plan.plan_id)
    if answer.status == 404:
        yield Look("an expired plan is gone (404); while it stays readable, all is told")
        return
    if answer.status != 200:
        yield f"reading an expired plan {bench.said(answer)} instead of 200"
        return
    state = bench.body(answer).get("status")
    if state != "expired":
        yield f"a plan past its `expires_at` reads back as {bench.quote(state)}, not expired"


def expiry(bench: Bench) -> Iterator[str]:
    """T-7, T-9: the target itself refuses what is late."""
    plan = bench.dying()[1]
    answer = bench.commit(plan)
    if 200 <= answer.status < 300:
        bench.commits += 1
        yield f"a plan past its `expires_at` was applied: it {bench.said(answer)}"
        return
    says_so = read_problem(answer).code in ("expired", "plan-expired")
    if answer.status != 410 and not (says_so and 400 <= answer.status < 500):
        yield f"a commit past `expires_at` {bench.said(answer)} instead of 410"
    read = bench.read(plan.plan_id)
    state = bench.body(read).get("status")
    if read.status != 404 and state != "expired":
        yield f"a plan that was refused as late reads back as {bench.quote(state)}, not expired"
