"""Checks of the dry run and of the plan as it reads back. They commit nothing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

import rfc8785

from countersign_agent.conformance.bench import Bench, NotRun, Wrong, broken
from countersign_agent.conformance.findings import Look
from countersign_agent.conformance.planned import Planned, faults, window_faults
from countersign_agent.conformance.strictness import read_answer
from countersign_agent.documents import NotStrict
from countersign_agent.exchanges import Answer
from countersign_agent.instants import read_instant

# The world may move between two dry runs by somebody else's hand; not every time.
TRIES: Final = 3


def dry_run(bench: Bench) -> Iterator[str]:
    """T-1, A-1, A-19."""
    first = bench.plan_or_answer()
    if isinstance(first, Answer):
        yield from _no_plan(bench, first)
        return
    yield from window_faults(first.told, bench.now())
    second = bench.plan(first.inputs)
    if second.plan_id == first.plan_id:
        yield "two dry runs were given one `plan_id`"
    if second.token == first.token:
        yield "two dry runs were given one `plan_token`"
    yield from _writes(bench, [first, second])
    if "covers" not in first.told:
        yield Look("no `covers`: every write of the agent's task makes such a plan stale")
    if "created_at" not in first.told:
        yield Look("no `created_at`: the app takes the time of receipt instead")


def _writes(bench: Bench, plans: list[Planned]) -> Iterator[str]:
    """Somebody else may move the world between two dry runs; not between any two."""
    while len(plans) < TRIES + 1 and plans[-1].before != plans[-2].before:
        plans.append(bench.plan(plans[0].inputs))
    if len(plans) > TRIES and plans[-1].before != plans[-2].before:
        yield f"every one of {len(plans)} dry runs found another world: does a dry run write?"


def _no_plan(bench: Bench, answer: Answer) -> Iterator[str]:
    if not 200 <= answer.status < 300:
        yield f"the dry run {bench.said(answer)} instead of 200 with a plan{broken(answer)}"
        return
    if answer.status != 200:
        yield f"the dry run answered {answer.status} instead of 200"
    try:
        yield from faults(read_answer(answer.body))
    except NotStrict as fault:
        yield f"the dry run answered {answer.status}, and {fault}"


def read_back(bench: Bench) -> Iterator[str]:
    """T-2: what is read back is what was planned."""
    if not bench.subject.plan_path:
        raise Wrong("plans cannot be read back: nothing that people see can be verified")
    plan = bench.plan()
    answer = bench.read(plan.plan_id)
    if answer.status != 200:
        raise Wrong(f"reading a fresh plan by its ID {bench.said(answer)} instead of 200")
    try:
        told = read_answer(answer.body)
    except NotStrict as fault:
        raise Wrong(f"the plan reads back with 200, and {fault}") from None
    yield from _differences(plan, told)
    if told.get("status") != "open":
        yield f"a fresh plan reads back with `status` {bench.quote(told.get('status'))}, not open"
    if "inputs" not in told:
        yield Look("no `inputs`: people see what the agent says it asked for, unconfirmed")
    elif not _same_inputs(plan.inputs, told["inputs"]):
        yield "`inputs` reads back differently from what was sent"
    yield from _stranger(bench)


def _differences(plan: Planned, told: Mapping[str, Any]) -> Iterator[str]:
    for name in ("plan_id", "input_fingerprint", "actions", "covers"):
        if name in plan.told and _jcs(plan.told[name]) != _jcs(told.get(name)):
            yield f"`{name}` reads back differently from the dry run's"
    for name in ("expires_at", "created_at"):
        if name in plan.told and _instant(told.get(name)) != _instant(plan.told[name]):
            yield f"`{name}` reads back as another time than the dry run's"


def _stranger(bench: Bench) -> Iterator[str]:
    answer = bench.read(f"plan_{secrets.token_hex(8)}")
    if answer.status != 404:
        yield f"a plan ID that was never given out {bench.said(answer)} instead of 404"


def key_order(bench: Bench) -> Iterator[str]:
    """The fingerprint is over values, not over the bytes that carried them."""
    wish = bench.plan().inputs
    turned = json.dumps(_turned(json.loads(wish)), indent=1, ensure_ascii=True).encode()
    for _ in range(TRIES):
        one, two, three = bench.plan(wish), bench.plan(turned), bench.plan(wish)
        if one.fingerprint == two.fingerprint == three.fingerprint:
            return
        if one.before == two.before == three.before:
            break
    else:
        raise NotRun("the world moved by itself between every two dry runs")
    if one.fingerprint != three.fingerprint:
        yield "the same inputs, byte for byte, over the same state gave another fingerprint"
    else:
        yield "the same inputs with their names in another order gave another fingerprint"


def state_moves(bench: Bench) -> Iterator[str]:
    """The fingerprint covers the state that the plan was made from."""
    first = bench.plan()
    bench.mover(first)()
    second = bench.plan(first.inputs)
    if second.fingerprint == first.fingerprint:
        if second.before == first.before and bench.allowance.move is not None:
            raise NotRun("--move-state changed nothing that this plan is about")
        yield "the state that the plan covers moved, and the fingerprint stayed the same"


def _turned(value: Any) -> Any:
    """The same value with the members of every object in the opposite order."""
    if isinstance(value, dict):
        return {name: _turned(each) for name, each in reversed(value.items())}
    if isinstance(value, list):
        return [_turned(each) for each in value]
    return value


def _same_inputs(sent: bytes, told: Any) -> bool:
    """JCS-equal; a target may return the object or its text."""
    try:
        value = read_answer(told.encode()) if isinstance(told, str) else told
    except ValueError:
        return False
    return _jcs(json.loads(sent)) == _jcs(value)


def _jcs(value: Any) -> bytes | None:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, ValueError, TypeError):
        return None


def _instant(text: object) -> object:
    try:
        return read_instant(text)
    except ValueError:
        return None
