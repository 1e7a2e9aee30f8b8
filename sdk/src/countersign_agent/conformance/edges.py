"""Checks of the target's edge: who is let in, how it refuses, how much it takes. No commits.

Where a commit is called here, the token is made up on the spot: there is nothing to apply.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from countersign_agent.conformance.bench import Bench, NotRun, Silence
from countersign_agent.conformance.clocks import skew
from countersign_agent.conformance.findings import Look
from countersign_agent.conformance.strictness import read_answer
from countersign_agent.conformance.wire import Call, Who
from countersign_agent.documents import NotStrict
from countersign_agent.exchanges import Answer
from countersign_agent.secret import Secret

LARGEST_SKEW: Final = 60.0
# A header of whole seconds that travelled for a while shows less as nothing.
TELLABLE_SKEW: Final = 5.0
MIB: Final = 2**20
DEEP: Final = 5_000


def credentials(bench: Bench) -> Iterator[str]:
    """SEC-38: nobody plans, reads or commits without a credential."""
    plan = bench.plan()
    calls = {
        "a dry run": bench.dry_run(plan.inputs, who=Who.NOBODY),
        "reading a plan": bench.read(plan.plan_id, who=Who.NOBODY),
        "a commit": bench.commit(plan, token=_made_up(), who=Who.NOBODY),
    }
    for what, answer in calls.items():
        if answer.status not in (401, 403):
            yield f"{what} without a credential {bench.said(answer)} instead of 401"


def agent(bench: Bench) -> Iterator[str]:
    """SEC-38: the agent's credential may plan and read, and cannot commit."""
    if not bench.wire.has_agent:
        raise NotRun("needs the agent's credential (--agent-credential)")
    plan = bench.plan()
    for what, answer in (
        ("makes a dry run", bench.dry_run(plan.inputs, who=Who.AGENT)),
        ("reads a plan", bench.read(plan.plan_id, who=Who.AGENT)),
    ):
        if answer.status != 200:
            yield f"the agent's credential {what} and is refused: {bench.said(answer)}"
    real = bench.allowance.commits
    answer = bench.commit(plan, token=None if real else _made_up(), who=Who.AGENT)
    if 200 <= answer.status < 300:
        bench.commits += real
        yield f"the agent's credential committed a plan: it {bench.said(answer)} instead of 403"
    elif answer.status not in (401, 403):
        yield (
            f"a commit with the agent's credential {bench.said(answer)} instead of 403: "
            "the target looked at the plan token before it looked at the credential"
        )
    if real and (state := bench.state(plan)) != "open":
        yield f"after the agent's commit the plan reads back as {bench.quote(state)}, not open"


@dataclass(frozen=True, slots=True)
class _Bad:
    """A dry run that has to be refused, and with what."""

    what: str
    body: bytes
    statuses: frozenset[int]
    content_type: str = "application/json"
    coding: str = ""


_MALFORMED: Final = frozenset({400, 422})
_BAD: Final = (
    _Bad("a body that is not JSON", b'{"a":', _MALFORMED),
    _Bad("an empty body", b"", frozenset({400, 411, 422})),
    _Bad("a list in place of the inputs", b"[]", _MALFORMED),
    _Bad("a name that stands twice", b'{"a":1,"\\u0061":2}', _MALFORMED),
    _Bad("NaN in the inputs", b'{"a":NaN}', _MALFORMED),
    _Bad("bytes that are not UTF-8", b'{"a":"\xff"}', _MALFORMED),
    _Bad("text/plain", b"{}", frozenset({400, 415, 422}), "text/plain"),
    _Bad("a compressed body", b"{}", frozenset({400, 415, 422}), coding="gzip"),
)


def problems(bench: Bench) -> Iterator[str]:
    """A-16 at the target: refusals are problem documents, and bad input is never a 500."""
    for bad in _BAD:
        headers = {"Content-Type": bad.content_type}
        headers |= {"Content-Encoding": bad.coding} if bad.coding else {}
        answer = bench.dry_run(bad.body, headers=headers)
        if answer.status not in bad.statuses:
            wanted = " or ".join(map(str, sorted(bad.statuses)))
            yield f"{bad.what} {bench.said(answer)} instead of {wanted}"
        else:
            yield from _shape(bench, bad.what, answer)
    unknown = bench.read(f"plan_{secrets.token_hex(8)}")
    yield from _shape(bench, "an unknown plan ID", unknown)
    # The dry run of a plan that nobody has is the cheapest commit there is to refuse.
    plan = bench.plan()
    yield from _shape(bench, "an unknown plan token", bench.commit(plan, token=_made_up()))
    nobody = bench.read(plan.plan_id, who=Who.NOBODY)
    yield from _shape(bench, "a call without a credential", nobody)


def _shape(bench: Bench, what: str, answer: Answer) -> Iterator[str]:
    """RFC 9457."""
    if answer.status < 400:
        # Another check says that this is no refusal.
        return
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/problem+json":
        yield f"the refusal of {what} has the type {bench.quote(kind)}, not problem+json"
        return
    try:
        body = read_answer(answer.body)
    except NotStrict as fault:
        yield f"the refusal of {what}: {fault}"
        return
    if body.get("status", answer.status) != answer.status:
        said = bench.quote(body.get("status"))
        yield f"the refusal of {what} says status {said} in a {answer.status}"
    if not any(isinstance(body.get(name), str) and body[name] for name in ("code", "type")):
        yield f"the refusal of {what} has neither `code` nor `type`: programs cannot tell it"


def sizes(bench: Bench) -> Iterator[str]:
    """SEC-31, T-4: a body of any size is refused without being read."""
    plan = bench.plan()
    heavy = plan.inputs + b" " * MIB
    for what, body in (
        ("1 MiB of spaces after the inputs", heavy),
        (f"inputs nested {DEEP:,} levels deep", b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"),
    ):
        try:
            answer = bench.dry_run(body)
        except Silence as cut:
            words = f"{what}: {cut}; an answer of 413 would say why"
            yield words if cut.late else Look(words)
            continue
        if answer.status < 400:
            yield f"{what}: it {bench.said(answer)}; nothing limits what one request may cost"
        elif answer.status >= 500:
            yield f"{what}: it {bench.said(answer)}: a request broke the server"
    answer = bench.read(plan.plan_id)
    try:
        read_answer(answer.body)
    except NotStrict as fault:
        if "larger" in str(fault):
            yield f"the read-back of one plan: {fault}, which is more than the app reads"


def clock(bench: Bench) -> Iterator[str]:
    """C-2: both clocks show the same time, to a minute."""
    sent = bench.now()
    path = bench.subject.plan("plan_0000000000000000") or bench.subject.dry_run()
    answer = bench.send(Call("GET", path))
    text = answer.headers.get("date")
    if text is None:
        yield "no `Date` header: nobody can tell whether the clocks agree"
        return
    found = skew(text, sent, bench.now())
    if found is None:
        yield f"`Date` is {bench.quote(text)}, which is no HTTP date"
        return
    way = "ahead of" if found > 0 else "behind"
    if abs(found) > LARGEST_SKEW:
        yield f"the target's clock is {abs(found):.0f} s {way} ours; 60 s are the most"
    elif abs(found) > TELLABLE_SKEW:
        yield Look(f"the target's clock is {abs(found):.0f} s {way} ours")


def _made_up() -> Secret:
    """A token that belongs to no plan."""
    return Secret(secrets.token_urlsafe(32))
